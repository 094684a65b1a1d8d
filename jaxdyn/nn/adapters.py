"""A module of flax's as a network of pure functions, and the transformer as a module of flax's: linen and nnx.

``from_linen`` and ``from_nnx`` take a module to where a :class:`jaxdyn.nn.Network` goes: training steps, sweeps, language models. A
module is called with tokens and gives logits. With a key dropout is on: an argument ``deterministic``, ``train``, ``training`` or
``is_training`` of its ``__call__`` says so, an nnx module is also set by its ``train()`` and ``eval()``; a ``call`` of one's own
takes the place of all this. What is observed is what the module sows as an intermediate under that name: the values along a
leading axis, in the order of the submodules' names, numbers in them by their size. There is no trunk: the logits are whole.

:class:`LinenTransformer` and :class:`NnxTransformer` have the parameters of :class:`jaxdyn.nn.Network`, under the same names.
Only this module imports flax's modules: import it by name.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from flax import linen, nnx, traverse_util
from flax.errors import InvalidRngError
from jaxtyping import Array, Integer, PRNGKeyArray, PyTree

from jaxdyn.errors import UsageError, is_traced, one_line
from jaxdyn.nn.config import Transformer
from jaxdyn.nn.transformer import Network, apply, init, trunk

__all__ = ["LinenTransformer", "NnxTransformer", "from_linen", "from_nnx"]

SWITCHES = {"deterministic": False, "train": True, "training": True, "is_training": True}  # arguments, and their value in training
Call = Callable[[Any, Any, PRNGKeyArray | None], Any]


def from_linen(module: linen.Module, *, example: Any = None, call: Call | None = None) -> Network:
    """The network of a linen module, whose parameters are its collection ``params``; the module is the network's shape.

    A key is that of the stream ``dropout``; other streams get one made from it.

    Args:
        module: the module, without its parameters.
        example: an input of the shape for which parameters are made; by default one sequence of one token.
        call: ``call(module, tokens, key)`` calls the module, in training where the key is not None; by default ``module(tokens)``
            with the switch that ``__call__`` takes.

    Raises:
        UsageError: for what is no linen module, and for one with variables that are no parameters, such as means of a batch norm.
            Its network refuses weights of other shapes, names that are not sown, and dropout without a key.
    """
    if not isinstance(module, linen.Module):
        raise UsageError(f"module={_named(module)} is not allowed: it is a flax.linen module, an object without its parameters")
    example = jnp.zeros((1, 1), jnp.int32) if example is None else example
    call = _call_of(type(module)) if call is None else call

    def variables(key: PRNGKeyArray) -> Mapping[str, Any]:
        return module.init(key, example, method=lambda m, x: call(m, x, None))

    like = jax.eval_shape(variables, jax.random.key(0))
    if others := sorted(set(like) - {"params", "intermediates"}):
        raise UsageError(f"module={type(module).__name__} is not allowed: {_stateful(', '.join(others))}")
    like = like.get("params", {})

    def logits(params: PyTree, tokens: Any, *, key: PRNGKeyArray | None = None, observe: Sequence[str] = ()) -> Any:
        _check(params, like)
        given: dict[str, Any] = {"rngs": {} if key is None else {"dropout": key, "params": jax.random.fold_in(key, 1)}}
        given |= {"mutable": ["intermediates"]} if observe else {}
        try:
            out = module.apply({"params": params}, tokens, method=lambda m, x: call(m, x, key), **given)
        except InvalidRngError as error:
            raise UsageError(_undrawn(error)) from error
        return (out[0], _observed(out[1].get("intermediates", {}), observe)) if observe else out

    return Network(module, lambda key: variables(key).get("params", {}), logits)


def from_nnx(build: Callable[..., nnx.Module], *, call: Call | None = None) -> Network:
    """The network of an nnx module: its weights are a dict of the arrays of its ``nnx.Param``; ``build`` is the network's shape.

    The weights of a model that exists already are ``nnx.to_pure_dict(nnx.state(model, nnx.Param))``. A key makes new ones for all
    streams of random numbers in the module. Arrays that are no ``nnx.Variable`` are constants, of whatever key.

    Args:
        build: ``build(rngs=nnx.Rngs(key))`` makes the module: its class, or a ``functools.partial`` of it.
        call: as of :func:`from_linen`; by default the module's argument ``rngs`` is given, too, if it takes one.

    Raises:
        UsageError: for a module that has been made, what makes none, and a module with variables other than ``nnx.Param`` and
            streams of random numbers. Its network refuses weights of other shapes, names that are not sown, and dropout without a
            key.
    """
    if isinstance(build, nnx.Module) or not callable(build):
        raise UsageError(f"build={_named(build)} is not allowed: it makes a flax.nnx module from rngs, as the class of one does")
    with jax.ensure_compile_time_eval():  # in a traced program, too, its constants are arrays
        model = build(rngs=nnx.Rngs(0))
        if not isinstance(model, nnx.Module):
            raise UsageError(f"build={_named(build)} is not allowed: it made {_named(model)}, which is no flax.nnx module")
        reading, training, *states = _parts(model)
    like, streams, others, constants = states
    if others := [f"{type(x).__name__} {_path(path)}" for path, x in nnx.to_flat_state(others)]:
        raise UsageError(f"build={_named(build)} is not allowed: {_stateful(', '.join(others))}")
    like, streams = (jax.eval_shape(lambda x=x: nnx.to_pure_dict(x)) for x in (like, streams))
    call = _call_of(type(model)) if call is None else call

    def logits(params: PyTree, tokens: Any, *, key: PRNGKeyArray | None = None, observe: Sequence[str] = ()) -> Any:
        _check(params, like)
        given = _streams(streams, key)
        running = nnx.merge(reading if key is None else training, params, given, constants)
        out, seen = nnx.capture(lambda m: call(m, tokens, key), nnx.Intermediate)(running)
        if key is None and _drawn(given, nnx.to_pure_dict(nnx.state(running, nnx.RngState))):
            raise UsageError(_undrawn("it has a stream of its own"))
        return (out, _observed(nnx.to_pure_dict(seen), observe)) if observe else out

    return Network(build, lambda key: nnx.to_pure_dict(nnx.state(build(rngs=nnx.Rngs(key)), nnx.Param)), logits)


class LinenTransformer(linen.Module):
    """The transformer as a linen module, by itself or in a module of one's own.

    Its parameters are those of :func:`jaxdyn.nn.network`: ``module.apply({"params": params}, tokens)`` takes the weights of one.
    Called with ``deterministic=False`` it drops by the stream ``dropout``; ``observe`` and the method ``trunk`` are as of
    :class:`jaxdyn.nn.Network`.
    """

    shape: Transformer

    def setup(self) -> None:
        """Draw the parameters, or take those that are given."""
        new = self.is_mutable_collection("params") and not self.has_variable("params", "embed")
        drawn = init(_known(self.shape), self.make_rng("params")) if new else _shapes(self.shape)
        for name, like in drawn.items():
            self.param(name, functools.partial(_parameter, like))

    def __call__(self, tokens: Integer[Array, "b n"], *, deterministic: bool = True, observe: Sequence[str] = ()) -> Any:
        """Logits [b, n, V], or a pair of them and what is observed."""
        return apply(self.shape, self._weights(), tokens, key=self._key(deterministic), observe=observe)

    def trunk(self, tokens: Integer[Array, "b n"], *, deterministic: bool = True, observe: Sequence[str] = ()) -> Any:
        """The last residual stream [b, n, d] instead of logits."""
        return trunk(self.shape, self._weights(), tokens, key=self._key(deterministic), observe=observe)

    def _weights(self) -> PyTree:
        return {name: self.get_variable("params", name) for name in _shapes(self.shape)}

    def _key(self, deterministic: bool) -> PRNGKeyArray | None:
        return None if deterministic or _keeps(self.shape) else self.make_rng("dropout")


class NnxTransformer(nnx.Module):
    """The transformer as an nnx module, by itself or in a module of one's own.

    Its parameters are those of :func:`jaxdyn.nn.network`: ``nnx.update(model, params)`` puts the weights of one into it. It drops,
    by the stream ``dropout``, until ``model.eval()`` is called; ``observe`` and the method ``trunk`` are as of
    :class:`jaxdyn.nn.Network`.

    Args:
        shape: the transformer.
        rngs: the stream ``params`` draws the weights.
    """

    def __init__(self, shape: Transformer, *, rngs: nnx.Rngs) -> None:
        self.shape, self.deterministic = shape, False
        for name, w in init(_known(shape), rngs.params()).items():
            held = nnx.Dict({part: nnx.Param(x) for part, x in w.items()}) if isinstance(w, dict) else nnx.Param(w)
            setattr(self, name, held)
        self.rngs: Any = nnx.data(None) if _keeps(shape) else rngs.dropout.fork()

    def __call__(self, tokens: Integer[Array, "b n"], *, observe: Sequence[str] = (), **switch: Any) -> Any:
        """Logits [b, n, V], or a pair of them and what is observed; ``deterministic`` and ``rngs`` of the call come first."""
        return apply(self.shape, self._weights(), tokens, key=self._key(**switch), observe=observe)

    def trunk(self, tokens: Integer[Array, "b n"], *, observe: Sequence[str] = (), **switch: Any) -> Any:
        """The last residual stream [b, n, d] instead of logits."""
        return trunk(self.shape, self._weights(), tokens, key=self._key(**switch), observe=observe)

    def _weights(self) -> PyTree:
        return nnx.to_pure_dict(nnx.state(self, nnx.Param))

    def _key(self, deterministic: bool | None = None, rngs: nnx.Rngs | None = None) -> PRNGKeyArray | None:
        if _keeps(self.shape) or (self.deterministic if deterministic is None else deterministic):
            return None
        return self.rngs() if rngs is None else rngs.dropout()


def _known(shape: Any) -> Transformer:
    """The shape, if it is one."""
    if not isinstance(shape, Transformer):
        raise UsageError(f"shape={one_line(shape)} is not allowed: it is a jaxdyn.nn.Transformer")
    return shape


def _shapes(shape: Transformer) -> PyTree:
    """Shapes of the weights."""
    return jax.eval_shape(lambda: init(_known(shape), jax.random.key(0)))


def _parameter(like: PyTree, _: PRNGKeyArray) -> PyTree:
    """A parameter that was drawn; of one that was given linen asks the shape."""
    return jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype) if isinstance(x, jax.ShapeDtypeStruct) else x, like)


def _keeps(shape: Transformer) -> bool:
    """Whether it is known that nothing is dropped."""
    return not is_traced(shape.dropout) and bool(shape.dropout == 0)


def _parts(model: nnx.Module) -> tuple[Any, ...]:
    """A module's graphs for reading and for training, its weights, streams of random numbers, other variables, and constants."""
    model.eval()
    reading = nnx.graphdef(model)
    model.train()
    training, *states = nnx.split(model, nnx.Param, nnx.RngState, nnx.Variable, ...)
    return reading, training, *states


def _streams(like: PyTree, key: PRNGKeyArray | None) -> PyTree:
    """A module's streams of random numbers at their beginning, each with a key of its own."""
    key, (leaves, tree) = jax.random.key(0) if key is None else key, jax.tree.flatten(like)
    fresh = []
    for number, x in enumerate(leaves):
        if jnp.issubdtype(x.dtype, jax.dtypes.prng_key):
            own = jax.random.fold_in(key, number)
            fresh.append(jax.random.split(own, x.shape) if x.shape else own)
        else:
            fresh.append(jnp.zeros(x.shape, x.dtype))
    return jax.tree.unflatten(tree, fresh)


def _drawn(before: PyTree, after: PyTree) -> bool:
    """Whether a stream of random numbers was read: its count is another array."""
    return any(a is not b for a, b in zip(jax.tree.leaves(before), jax.tree.leaves(after), strict=True))


def _call_of(module: type) -> Call:
    """How a module of this class is called: with its switch between training and reading, and streams if it takes them."""
    parameters = inspect.signature(module.__call__).parameters
    switch = next((name for name in SWITCHES if name in parameters), None)
    streams = "rngs" in parameters and issubclass(module, nnx.Module)

    def call(module: Any, tokens: Any, key: PRNGKeyArray | None) -> Any:
        given: dict[str, Any] = {} if switch is None else {switch: SWITCHES[switch] == (key is not None)}
        given |= {"rngs": None if key is None else nnx.Rngs(key)} if streams else {}
        return module(tokens, **given)

    return call


def _check(params: PyTree, like: PyTree) -> None:
    """Refuse weights that are not the module's."""
    leaves = map(jax.tree_util.tree_leaves_with_path, (params, like))
    given, wanted = ({_path(path): jnp.shape(x) for path, x in tree} for tree in leaves)
    for name in sorted(given.keys() | wanted.keys()):
        if given.get(name) != wanted.get(name):
            has, needs = (f"shape {tree[name]}" if name in tree else "none" for tree in (given, wanted))
            raise UsageError(f"these weights are of another network: of {name} they have {has}, the module has {needs}")


def _observed(sown: Mapping[str, Any], names: Sequence[str]) -> dict[str, Array]:
    """What was sown under these names, along a leading axis."""
    found: dict[str, list[Array]] = {}
    for path, values in sorted(traverse_util.flatten_dict(sown).items(), key=lambda item: _order(item[0])):
        found.setdefault(str(path[-1]), []).extend(values if isinstance(values, tuple) else (values,))
    if unknown := set(names) - set(found):
        raise UsageError(f"cannot observe {', '.join(sorted(unknown))}: this module sows {', '.join(sorted(found)) or 'nothing'}")
    for name in names:
        if len(shapes := {jnp.shape(x) for x in found[name]}) > 1:
            raise UsageError(f"cannot observe {name}: it is sown in the shapes {', '.join(map(str, sorted(shapes)))}")
    return {name: jnp.stack(found[name]) for name in names}


def _order(path: Sequence[Any]) -> list[Any]:
    """A key by which Block_2 comes before Block_10."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", "/".join(map(str, path)))]


def _path(path: Sequence[Any]) -> str:
    """The name of a leaf: keys joined by "/"."""
    return "/".join(str(getattr(part, "key", part)) for part in path)


def _named(build: Any) -> str:
    """A name for messages: of a class or function, else of the object's class."""
    return getattr(build, "__name__", type(build).__name__)


def _stateful(names: str) -> str:
    return f"it has variables that are neither weights nor random numbers, which pure functions of the weights do not keep: {names}"


def _undrawn(error: Any) -> str:
    return f"this module draws random numbers without a key (an argument such as deterministic, or call=, turns that off): {error}"
