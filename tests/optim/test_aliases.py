"""The one-line aliases: the same steps as those of a method, in the trees of flax, haiku and equinox, with warnings."""

import dataclasses
import inspect

import equinox as eqx
import flax.linen as linen
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx

from jaxdyn import optim
from jaxdyn.errors import UsageError
from jaxdyn.optim import factors, fira_apollo, projection
from jaxdyn.optim.axes import place
from jaxdyn.optim.muon import muon
from jaxdyn.optim.restart import restarting
from jaxdyn.optim.subspace import Subspace

NAMES = ("galore", "golore", "q_galore", "fira", "apollo", "lora", "relora")


def chosen(params, dims=optim.hidden_matrices):
    """The matrices of each chosen parameter, by name."""
    return {row.name: row.matrices for row in optim.listing(params, optim.MemoryLayout(rank=2), dims).chosen}


def two_steps(tx, params):
    """Updates of two steps, with the loss sum(sin w)."""
    state, out = tx.init(params), []
    for _ in range(2):
        updates, state = tx.update(jax.tree.map(jnp.cos, params), state, params)
        params = optax.apply_updates(params, updates)
        out.append(updates)
    return out


@pytest.mark.parametrize("name", [NAMES[0], *(pytest.param(name, marks=pytest.mark.slow) for name in NAMES[1:])])
def test_an_alias_is_the_method(name):
    params = {"w": jnp.asarray(np.random.default_rng(0).normal(size=(6, 8)), jnp.float32), "norm": jnp.ones(8)}
    mine = two_steps(getattr(optim, name)(0.1, rank=2, every=7), params)
    theirs = two_steps(optim.method(name, 0.1, optim.Options(rank=2, every=7)).tx, params)
    jax.tree.map(np.testing.assert_array_equal, mine, theirs)


@pytest.mark.slow
def test_decay_is_decoupled():
    """The update is that without decay, minus rate times decay times the weight."""
    params = {"w": jnp.full((4, 6), 0.5), "norm": jnp.ones(6)}
    plain, decayed = (two_steps(optim.galore(0.1, rank=2, weight_decay=d), params)[0] for d in (0.0, 0.3))
    jax.tree.map(lambda a, b, w: np.testing.assert_allclose(b, a - 0.1 * 0.3 * w, rtol=1e-6), plain, decayed, params)


def test_arguments_are_checked():
    for wrong in ({"rank": 0}, {"rank": 2, "every": 0}, {"rank": 2, "weight_decay": -1.0}):
        with pytest.raises(UsageError, match="is not allowed"):
            optim.galore(0.1, **wrong)
    with pytest.raises(UsageError, match="lr=-1"):
        optim.lora(-1, 2)
    with pytest.raises(UsageError, match="momentum is not allowed: options of galore are rank, every"):
        optim.galore(0.1, 2, momentum=0.9)
    with pytest.raises(UsageError, match="rank=3 is not allowed: apollo_mini has rank 1"):
        optim.apollo_mini(0.1, rank=3)
    with pytest.raises(UsageError, match="key=3 is not allowed: it is a key of JAX"):
        optim.galore(0.1, 2, key=3)
    with pytest.raises(UsageError, match="is of type float, which is not allowed"):
        optim.galore(0.1, 2).init([[1.0]])


def test_what_saves_nothing_is_told():
    with pytest.warns(optim.NothingSaved, match="projects none of the 2 parameters"):
        optim.galore(0.1, rank=2).init({"head": jnp.zeros((4, 4)), "bias": jnp.zeros(4)})
    with pytest.warns(
        optim.NothingSaved, match=r"at rank 8 saves nothing on attn/query/kernel \[16, 2, 8\]: see jaxdyn.optim.listing"
    ):
        optim.galore(0.1, rank=8).init({"attn": {"query": {"kernel": jnp.zeros((16, 2, 8))}}, "w": jnp.zeros((32, 32))})
    optim.galore(0.1, rank=4).init({"w": jnp.zeros((32, 32))})  # no warning: it would be an error here


class Linen(linen.Module):
    """A block under flax's own names; the read-out is Dense_1."""

    @linen.compact
    def __call__(self, tokens):
        x = linen.Embed(7, 8)(tokens)
        x = x + linen.MultiHeadDotProductAttention(2)(linen.LayerNorm()(x))
        x = x + linen.Dense(8)(x)
        return linen.Dense(7)(x)


def test_linen():
    """Kernels with heads are whole matrices; a read-out without a name of its own has to be excluded by hand."""
    params = jax.eval_shape(Linen().init, jax.random.key(0), jnp.zeros((1, 3), jnp.int32))["params"]
    attention = {f"MultiHeadDotProductAttention_0/{name}/kernel": (8, 8) for name in ("query", "key", "value", "out")}
    assert chosen(params) == attention | {"Dense_0/kernel": (8, 8), "Dense_1/kernel": (8, 7)}
    dims = optim.matching({"Dense_1/*": None}, otherwise=optim.hidden_matrices)
    assert chosen(params, dims) == attention | {"Dense_0/kernel": (8, 8)}


def test_linen_stacked_by_scan():
    """Under ``nn.scan`` a stack of L layers has L matrices of each kernel."""

    class Block(linen.Module):
        @linen.compact
        def __call__(self, x, _):
            return x + linen.MultiHeadDotProductAttention(2)(x) + linen.Dense(8)(x), None

    stack = linen.scan(Block, variable_axes={"params": 0}, split_rngs={"params": True}, length=3)
    params = jax.eval_shape(stack().init, jax.random.key(0), jnp.zeros((1, 4, 8)), None)["params"]
    assert set(chosen(params).values()) == {(3, 8, 8)} and len(chosen(params)) == 5


class Nnx(nnx.Module):
    """A network whose attributes name the parameters."""

    def __init__(self):
        rngs = nnx.Rngs(0)
        self.attn, self.up = nnx.MultiHeadAttention(2, 8, decode=False, rngs=rngs), nnx.Linear(8, 8, rngs=rngs)
        self.head = nnx.Linear(8, 3, rngs=rngs)

    def __call__(self, x):
        return self.head(self.up(x + self.attn(x)))


HEADS = {"attn/out/kernel": optim.HEADS_OUT, "attn/*/kernel": optim.HEADS_IN}


def test_nnx_names():
    params = nnx.state(Nnx(), nnx.Param)
    plain = {f"attn/{name}/kernel": (8, 2, 4) for name in ("query", "key", "value")} | {"attn/out/kernel": (2, 4, 8)}
    assert chosen(params) == plain | {"up/kernel": (8, 8)}
    dims = optim.matching(HEADS, otherwise=optim.hidden_matrices)
    assert chosen(params, dims) == dict.fromkeys(plain, (8, 8)) | {"up/kernel": (8, 8)}


@pytest.mark.slow
def test_nnx_optimizer_makes_the_steps_of_optax():
    """``nnx.Optimizer`` keeps the state in variables of its own; two refreshes of the bases pass through them."""
    model, x = Nnx(), jax.random.normal(jax.random.key(0), (2, 5, 8))
    tx = optim.galore(0.1, rank=2, every=2, dims=optim.matching(HEADS, otherwise=optim.hidden_matrices))
    graph, params = nnx.split(model, nnx.Param)
    params = nnx.as_pure(params)
    optimizer, state = nnx.Optimizer(model, tx, wrt=nnx.Param), tx.init(params)
    for _ in range(4):
        optimizer.update(model, nnx.grad(lambda m: jnp.mean(jnp.square(m(x))))(model))
        gradient = jax.grad(lambda p: jnp.mean(jnp.square(nnx.merge(graph, p)(x))))(params)
        updates, state = tx.update(gradient, state, params)
        params = optax.apply_updates(params, updates)
    theirs = nnx.as_pure(nnx.state(model, nnx.Param))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5), theirs, params)


def test_haiku():
    """Haiku's parameters are a dict of modules, their names joined by slashes, as its documentation shows them."""
    params = {
        "decoder/embed": {"embeddings": jnp.zeros((7, 8))},
        "decoder/~/layer_norm": {"scale": jnp.zeros(8), "offset": jnp.zeros(8)},
        "decoder/multi_head_attention/query": {"w": jnp.zeros((8, 8)), "b": jnp.zeros(8)},
        "decoder/~/linear": {"w": jnp.zeros((8, 16)), "b": jnp.zeros(16)},
        "decoder/lm_head": {"w": jnp.zeros((8, 7))},
    }
    assert chosen(params) == {"decoder/multi_head_attention/query/w": (8, 8), "decoder/~/linear/w": (8, 16)}


class Equinox(eqx.Module):
    """Attributes name the parameters; weights are [out, in]."""

    embedding: eqx.nn.Embedding
    layers: list[eqx.nn.Linear]
    attention: eqx.nn.MultiheadAttention
    norm: eqx.nn.LayerNorm
    lm_head: eqx.nn.Linear

    def __init__(self):
        keys = jax.random.split(jax.random.key(0), 5)
        self.embedding, self.norm = eqx.nn.Embedding(7, 8, key=keys[0]), eqx.nn.LayerNorm(8)
        self.layers = [eqx.nn.Linear(8, 16, key=keys[1]), eqx.nn.Linear(16, 8, key=keys[2])]
        self.attention, self.lm_head = eqx.nn.MultiheadAttention(2, 8, key=keys[3]), eqx.nn.Linear(8, 7, key=keys[4])


def test_equinox():
    params = eqx.filter_eval_shape(lambda: eqx.filter(Equinox(), eqx.is_inexact_array))
    attention = {f"attention/{name}_proj/weight": (8, 8) for name in ("query", "key", "value", "output")}
    assert chosen(params) == attention | {"layers/0/weight": (16, 8), "layers/1/weight": (8, 16)}
    tx = optim.galore(0.1, rank=2)
    updates, _ = jax.eval_shape(lambda p: tx.update(p, tx.init(p)), params)
    assert jax.tree.structure(updates) == jax.tree.structure(params)


def test_names_are_paths():
    named, _ = jax.tree_util.tree_flatten_with_path({"a": [jnp.zeros(2), {"b": (jnp.zeros(1),)}], "value": jnp.zeros(1)})
    assert [place(path) for path, _ in named] == ["a/0", "a/1/b/0", "value"]


MATRICES = {"w": jnp.asarray(np.random.default_rng(0).normal(size=(12, 8))), "b": jnp.ones(8)}
SUBSPACE = {"subspace": Subspace(rank=2), "every": 2}
INJECTED = {  # every public method that makes a transformation: its arguments, and those that no program can be given
    **{name: (getattr(optim, name), {"learning_rate": 0.1, "rank": 2, "every": 2}) for name in NAMES},
    "apollo_mini": (optim.apollo_mini, {"learning_rate": 0.1}),
    "adam_direction": (optim.adam_direction, {}),
    "muon": (muon, {"lr": 0.1}),
    "restarting": (lambda every: restarting(optax.adam(0.1), every), {"every": 2}),
    "method": (lambda lr: optim.method("galore", lr, optim.Options(rank=2)).tx, {"lr": 0.1}),
    "method by name": (lambda lr, b1: optim.method("adamw", lr, optim.Options(b1=b1, weight_decay=0.1)).tx, {"lr": 0.1, "b1": 0.8}),
    "muon_direction": (optim.muon_direction, {"rest": optim.adam_direction(), "rms": 0.3}),
    "momentum_direction": (optim.momentum_direction, {"beta": 0.8}),
    "projection.galore": (projection.galore, {"inner": optim.adam_direction(), **SUBSPACE}),
    "fira_apollo.fira": (fira_apollo.fira, {"inner": optim.adam_direction(), **SUBSPACE}),
    "fira_apollo.apollo": (fira_apollo.apollo, {"inner": optim.adam_direction(), **SUBSPACE}),
    "factors.lora": (factors.lora, {"tx": optax.adam(0.1), "rank": 2}),
    "factors.relora": (factors.relora, {"tx": optax.adam(0.1), "rank": 2, "every": 2}),
    "factors.low_rank": (factors.low_rank, {"tx": optax.adam(0.1), "rank": 2}),
}


def four_steps(tx, params):
    state, update = tx.init(params), jax.jit(tx.update)
    for _ in range(4):
        updates, state = update(jax.tree.map(jnp.cos, params), state, params)
        params = optax.apply_updates(params, updates)
    return params


@pytest.mark.thinned
@pytest.mark.parametrize("name", INJECTED)
def test_injected_hyperparameters_give_the_same_numbers(name, x64):
    """In float64, since a hyperparameter of float32 is another number than Python's."""
    make, arguments = INJECTED[name]
    params = jax.tree.map(lambda x: jnp.asarray(x, jnp.float64), {"w": MATRICES["w"]} if name == "muon" else MATRICES)
    static = [argument for argument in ("rank", "dims") if argument in inspect.signature(make).parameters]
    injected = four_steps(optax.inject_hyperparams(make, static_args=static)(**arguments), params)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-12), injected, four_steps(make(**arguments), params))
    for lacking in static:
        tx = optax.inject_hyperparams(make, static_args=[other for other in static if other != lacking])(**arguments)
        with pytest.raises(UsageError) as error:
            four_steps(tx, params)
        message = str(error.value)
        assert message.startswith(f"{lacking}=") and message.endswith("; optax.inject_hyperparams names it in static_args")


def test_an_injected_rate_changes_during_a_run(x64):
    tx = optax.inject_hyperparams(optim.galore, static_args=("rank", "dims"))(0.1, rank=2)
    params = jax.tree.map(lambda x: jnp.asarray(x, jnp.float64), MATRICES)
    state = tx.init(params)
    first, _ = tx.update(params, state, params)
    state.hyperparams["learning_rate"] = jnp.asarray(0.3)
    second, _ = tx.update(params, state, params)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(b, 3 * a, rtol=1e-12), first, second)


def test_a_signature_names_every_option():
    fields = {field.name for field in dataclasses.fields(optim.Options)} - {"momentum", "orthogonal", "rms"}
    for name in (*NAMES, "apollo_mini"):
        assert set(inspect.signature(getattr(optim, name)).parameters) == fields | {"learning_rate", "dims", "key"}
