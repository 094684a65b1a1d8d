r"""A LLaMA-style decoder trained on a text by full Adam, GaLore, adaptors and factorisations, all in one program.

Every run differs in traced numbers alone: the method is a switch between four optimizers; GaLore's rank is a mask on bases of
twice ``most`` directions, a period T that never ends keeps the first basis, and LoRA is ReLoRA that never merges. Source:
arXiv:2403.03507, section 5.1 (schedule, which matrices are projected, the baselines) at a size for CPUs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.flatten_util import ravel_pytree
from jax.tree_util import Partial
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

import jaxdyn as jd
from jaxdyn import metrics, nn, train
from jaxdyn.optim.adam import adam_direction
from jaxdyn.optim.blocks import decode, encode
from jaxdyn.optim.factors import low_rank, relora, spectral_start
from jaxdyn.optim.projection import galore
from jaxdyn.optim.subspace import Basis, Subspace, find
from jaxdyn.text import pretraining
from jaxdyn.theories.galore import published

METHODS = ("full", "scaled", "galore", "galore_quarter", "galore_double", "random", "fixed", "lora", "relora", "low_rank")
KINDS = ("full", "projected", "adapted", "factored")
KIND = (0, 0, 1, 1, 1, 1, 1, 2, 2, 3)  # of each method
RATES = (1e-2, 5e-2, 5e-2, 5e-2, 5e-2, 5e-2, 5e-2, 3e-3, 3e-3, 1e-2)  # of each method, near the best of 160 steps on bytes
PUBLISHED = (
    "full",
    "full",
    "galore",
    "galore",
    "galore",
    "galore",
    "galore",
    "lora",
    "relora",
    "low_rank",
)  # with whose perplexity it goes
STACKS = {"square": ("q", "k", "v", "o"), "wide": ("gate", "up"), "tall": ("down",)}  # projected matrices by their shapes
NEVER = 2**30  # steps
MERGES = 4  # of ReLoRA in a run


@jd.setting
class Pretraining(pretraining.TextTraining):
    """A decoder's training on a text, to the fields of which these are added.

    Args:
        factor: peak of the rate over the method's own (:data:`RATES`), after a linear warm-up of a tenth of the steps; a cosine
            then leads to a tenth of it.
        every: T, steps between two bases; 0: the first basis stays.
        rank: of bases, at most ``most``; "galore_quarter" has a quarter of it, and "galore_double" twice as much.
        alpha: GaLore's factor of projected updates.
        optimizer: "full" (Adam), "scaled" (Adam with GaLore's two rates: alpha on the matrices that GaLore projects), "galore",
            "galore_quarter", "galore_double", "random" (random orthonormal bases), "fixed" (the first basis stays), "lora",
            "relora" (merged four times), "low_rank" (W = BA from a start with the full network's spectrum).
        moments: how Adam's moments are stored: float32, blocks of one byte a number, or a byte with equal steps in each block.
        most: directions of factors, and half of the directions that bases have room for.
        width, hidden, layers, heads: of the decoder.
        windows: batches of sequences on which the validation and the test loss of a record are means.
        dtype: of the network.
    """

    factor: jd.Swept = jd.field(1.0, above=0)
    every: jd.Swept = jd.field(50.0, at_least=0, whole=True)
    rank: jd.Swept = jd.field(8.0, at_least=1)
    alpha: jd.Swept = jd.field(0.25, above=0)
    optimizer: jd.Code = jd.code(*METHODS)
    moments: jd.Code = jd.code("float32", "8bit", "linear")
    most: int = jd.field(8, at_least=1)
    width: int = 32
    hidden: int = 88
    layers: int = 2
    heads: int = 4
    steps: int = jd.field(160, at_least=10 * MERGES)
    windows: int = jd.field(8, at_least=1)
    dtype: str = "float32"

    def __post_init__(self) -> None:
        """Refuse ranks outside the bases and sizes that do not fit."""
        pretraining.TextTraining.__post_init__(self)
        jd.require(self, self.rank <= self.most, "rank is at most most", "rank", "most")
        self.shape(2)

    def shape(self, vocabulary: int) -> nn.Transformer:
        """The decoder for so many tokens."""
        sizes = {name: getattr(self, name) for name in ("width", "hidden", "layers", "heads", "dtype")}
        return nn.Transformer(vocabulary=vocabulary, scan=False, **sizes)


class Record(NamedTuple):
    """What is recorded of one state."""

    loss: Float[Array, " part"]  # on the validation and the test part, nats a token
    stable_rank: Float[Array, " matrix"]  # of the gradients of one batch, see :func:`matrices`


def matrices(layers: int) -> tuple[str, ...]:
    """Names of the projected matrices in the order of the records."""
    return tuple(f"{name} {layer}" for names in STACKS.values() for name in names for layer in range(layers))


def pack(params: PyTree) -> dict[str, Array]:
    """A decoder's weights as four arrays: matrices of one shape in a stack, and all that is not projected in a vector.

    The optimizers do the same with them as with the tree of weights, and compile in a quarter of the time.
    """
    stacks = {stack: jnp.stack([params["blocks"][name] for name in names]) for stack, names in STACKS.items()}
    return stacks | {"plain": ravel_pytree(_plain(params))[0]}


def unpack(packed: dict[str, Array], like: PyTree) -> PyTree:
    """The inverse of :func:`pack`; ``like`` has the shapes."""
    plain = ravel_pytree(_plain(like))[1](packed["plain"])
    found = {name: packed[stack][i] for stack, names in STACKS.items() for i, name in enumerate(names)}
    return plain | {"blocks": plain["blocks"] | found}


def _plain(params: PyTree) -> PyTree:
    """Embeddings, read-out and norms."""
    projected = [name for names in STACKS.values() for name in names]
    return params | {"blocks": {name: x for name, x in params["blocks"].items() if name not in projected}}


def rounded(kind: jd.Code) -> optax.GradientTransformation:
    """Adam's direction whose moments are rounded after every step to what one byte a number can store, or are left as they are.

    "8bit" has the numbers of :func:`jaxdyn.optim.adam.adam_direction` with ``stored="8bit"``, for arrays of any size; "linear" has
    equal steps between zero and the largest number of a block.
    """
    adam = adam_direction()

    def dynamic(x: Array, signed: bool) -> Array:
        return decode(encode(x, signed, small=0))

    def linear(x: Array, signed: bool) -> Array:
        blocks: Any = encode(x, signed, small=0)  # of any size
        top = jnp.repeat(blocks.largest, 256)[: x.size].reshape(x.shape)
        levels = 127 if signed else 255
        return jnp.round(x / jnp.where(top > 0, top, 1) * levels) / levels * top

    def both(f: Callable[..., Array]) -> Callable[[tuple], tuple]:
        return lambda moments: tuple(
            jax.tree.map(lambda x, s=s: f(x, s), tree) for tree, s in zip(moments, (True, False), strict=True)
        )

    def update(gradient: PyTree, state: Any, params: PyTree | None = None) -> tuple[PyTree, Any]:
        # Adam rounds nothing; its moments are rounded after the step
        updates, state = adam.update(gradient, state, params)
        mu, nu = jax.lax.switch(kind.index, [lambda m: m, both(dynamic), both(linear)], (state.mu, state.nu))
        return updates, state._replace(mu=mu, nu=nu)

    return optax.GradientTransformation(adam.init, update)


def _masked(random: Array, rank: Array, most: int, g: Array, old: Basis, key: PRNGKeyArray, count: Array) -> Basis:
    """The gradient's singular vectors or random directions, of which all past the rank are zero."""
    del count
    found, drawn = (find(Subspace(rank=most, finder=name), g, old, key) for name in ("svd", "orthonormal"))
    keep = jnp.arange(most) < rank
    return jax.tree.map(lambda a, b: jnp.where(random, b, a) * keep[: a.shape[-1]].astype(a.dtype), found, drawn)


def peak(s: Pretraining) -> Float[Array, ""]:
    """The peak of the rate."""
    return s.factor * jnp.asarray(RATES, s.dtype)[s.optimizer.index]


def _scaled(s: Pretraining, updates: dict[str, Array]) -> dict[str, Array]:
    """Adam's updates, those of the matrices times alpha if the method has two rates."""
    alpha = jnp.where(s.optimizer == "scaled", s.alpha, 1.0)
    return {name: u if name == "plain" else (alpha * u).astype(u.dtype) for name, u in updates.items()}


def optimizers(s: Pretraining, key: PRNGKeyArray) -> dict[str, optax.GradientTransformation]:
    """The four kinds of optimizers with their rates, by the names of :data:`KINDS`."""
    # rates
    shape = pretraining.schedule(s.steps)
    merged = s.steps // MERGES

    def rate(count: Array) -> Array:
        return peak(s) * shape(count)

    def again(count: Array) -> Array:
        """The rate, warmed up anew after every merge."""
        warm = jnp.minimum(1, (count % merged + 1) / (merged // 10))
        return rate(count) * jnp.where((s.optimizer == "relora") & (count >= merged), warm, 1)

    # bases and factors
    adam = rounded(s.moments)
    factors = optax.chain(adam_direction(), optax.scale_by_learning_rate(again))
    double = jnp.where(s.optimizer == "galore_double", 2 * s.rank, s.rank)
    rank, room = jnp.where(s.optimizer == "galore_quarter", s.rank / 4, double), 2 * s.most
    never = (s.optimizer == "fixed") | (s.every == 0)
    bases = galore(
        adam,
        Subspace(rank=room),
        every=jnp.where(never, NEVER, s.every).astype(jnp.int32),
        scale=s.alpha,
        key=key,
        finder=Partial(lambda random, r, *a: _masked(random, r, room, *a), s.optimizer == "random", rank),
    )
    merge = jnp.where(s.optimizer == "relora", merged, NEVER).astype(jnp.int32)
    return {
        "full": optax.chain(adam, optax.stateless(lambda updates, _: _scaled(s, updates)), optax.scale_by_learning_rate(rate)),
        "projected": optax.chain(bases, optax.scale_by_learning_rate(rate)),
        "adapted": relora(factors, s.most, every=merge, key=key),
        "factored": low_rank(optax.chain(adam_direction(), optax.scale_by_learning_rate(rate)), s.most),
    }


def stable_ranks(packed: dict[str, Array]) -> Float[Array, " matrix"]:
    """Stable ranks of all projected matrices, in the order of :func:`matrices`."""
    return jnp.concatenate([metrics.stable_rank(packed[stack]).reshape(-1) for stack in STACKS])


def gaussian_ranks(packed: dict[str, Array]) -> Float[Array, " matrix"]:
    r"""Stable ranks of matrices of the same shapes with independent Gaussian entries, :math:`mn / (\sqrt m + \sqrt n)^2`.

    Source: for large sides, Davidson and Szarek 2001, theorem 2.13 (the largest singular value).
    """
    stacks = [packed[stack] for stack in STACKS]
    values = [
        np.full(x.shape[0] * x.shape[1], x.shape[-2] * x.shape[-1] / (x.shape[-2] ** 0.5 + x.shape[-1] ** 0.5) ** 2) for x in stacks
    ]
    return jnp.asarray(np.concatenate(values), stacks[0].dtype)


def trial(s: Pretraining, key: PRNGKeyArray) -> jd.Observables:
    """Train; validation loss and stable ranks of gradients along training, test loss at the end."""
    # text, network and optimizers
    k_init, k_data, k_basis, k_noise = jax.random.split(key, 4)
    corpus = s.corpus()
    net = nn.network(s.shape(len(corpus.vocabulary)))
    stream, held = jnp.asarray(corpus.train), pretraining.held_out((corpus.valid, corpus.test), s.windows, s.batch, s.length)
    kind = jd.Code(jnp.asarray(KIND)[s.optimizer.index], KINDS)
    tx = train.switched(kind, optimizers(s, k_basis))
    initial = net.init(k_init)

    def batch(i: int | Int[Array, ""]) -> Int[Array, "b n1"]:
        return pretraining.sample(jax.random.fold_in(k_data, i), stream, s.batch, s.length)

    def loss(packed: PyTree, tokens: Int[Array, "b n1"]) -> Array:
        return pretraining.loss(net, unpack(packed, initial), tokens)

    probe = batch(s.steps)

    def observe(state: train.State) -> Record:
        losses = pretraining.mean_losses(lambda tokens: loss(state.params, tokens), held)
        return Record(losses, stable_ranks(jax.grad(loss)(state.params, probe)))

    # training with the method's optimizer
    packed = pack(initial)
    start = jax.lax.cond(kind == "factored", lambda p: spectral_start(p, s.most), lambda p: p, packed)
    step = train.make_step(loss, tx, batch)
    _, record = train.record(step, train.init(tx, start), observe, samples=s.records, every=s.interval)
    # the same without structure, and the published perplexity
    noise = jax.tree.map(lambda x: jax.random.normal(k_noise, x.shape, x.dtype), packed)
    unstructured = jnp.broadcast_to(gaussian_ranks(packed), record.stable_rank.shape)
    paper = jnp.asarray([published.PERPLEXITY[name][0] for name in PUBLISHED], s.dtype)[s.optimizer.index]
    return jd.observables(
        predicted={"perplexity": paper, "stable_rank": jd.named(unstructured, "step matrix")},
        measured={"perplexity": jnp.exp(record.loss[-1, 1]), "stable_rank": jd.named(record.stable_rank, "step matrix")},
        recorded={
            "loss": jd.named(record.loss, "step part"),
            "lr": peak(s),
            "noise_rank": jd.named(stable_ranks(noise), "matrix"),
        },
        status=train.finite_status(record),
        coords={"step": s.recorded_at, "part": pretraining.PARTS, "matrix": matrices(s.layers)},
    )
