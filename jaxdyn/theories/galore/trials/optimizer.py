"""Networks trained by GaLore's optimizer beside what its theory says of special cases."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import optax
import optax.contrib
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

import jaxdyn as jd
from jaxdyn import linalg, train
from jaxdyn.optim.adam import adam_direction
from jaxdyn.optim.galore import galore
from jaxdyn.optim.lora import factorised
from jaxdyn.optim.subspace import Subspace
from jaxdyn.theories.galore import model
from jaxdyn.theories.galore.dynamics.noise import distance_left

__all__ = ["Agreement", "FullRank", "Noisy", "Sides", "agreement_trial", "full_rank_trial", "noisy_trial", "sides_trial"]

POINTS = 16
LEAKY = model.LAYERS.index("leaky")  # no unit dies, so that gradients have full rank and one basis


@jd.setting
class FullRank:
    """A network of leaky ReLUs trained by GaLore of ``rank`` of ``width`` dimensions."""

    lr: jd.Swept = 0.01
    rank: int = 6
    width: int = 6
    depth: int = 3
    steps: int = 40
    every: int = 5

    def __post_init__(self) -> None:
        jd.require(self, self.lr > 0, "lr is positive", "lr")
        jd.require(self, 1 <= self.rank <= self.width, "rank is at least 1 and at most width", "rank", "width")


@jd.setting
class Sides:
    """A network of leaky ReLUs trained by GaLore without moments, on either side; bases are found every so many steps."""

    lr: jd.Swept = 0.01
    every: jd.Swept = 1.0
    rank: int = 2
    width: int = 6
    depth: int = 3
    steps: int = 40

    def __post_init__(self) -> None:
        jd.require(self, self.lr > 0, "lr is positive", "lr")
        jd.require(self, self.every >= 1, "every is at least 1", "every")
        jd.require(self, 1 <= self.rank <= self.width, "rank is at least 1 and at most width", "rank", "width")


@jd.setting
class Agreement:
    """A ReLU network trained by two implementations, in float32; ``side`` is ours."""

    lr: jd.Swept = 0.01
    side: str = "long"
    rank: int = 2
    width: int = 6
    every: int = 5
    periods: int = 4

    def __post_init__(self) -> None:
        jd.require(self, self.lr > 0, "lr is positive", "lr")
        jd.require(self, self.side in ("short", "long"), "side is short or long", "side")


@jd.setting
class Noisy:
    """Rows of which one has a target and ``noisy`` ones nothing but noise, and a basis of ``rank`` dimensions on the left."""

    lr: jd.Swept = 1e-3
    noise: jd.Swept = 5.0
    noisy: jd.Swept = 1.0
    rank: int = 1
    rows: int = 2
    finder: str = "svd"
    size: int = 20
    every: int = 20
    steps: int = 10_000

    def __post_init__(self) -> None:
        jd.require(self, self.lr > 0, "lr is positive", "lr")
        jd.require(self, self.noise >= 0, "noise is at least 0", "noise")
        jd.require(self, self.finder in ("svd", "orthonormal"), "finder is svd or orthonormal", "finder")
        jd.require(self, 1 <= self.rank <= self.rows, "rank is at least 1 and at most rows", "rank", "rows")
        jd.require(self, 0 <= self.noisy < self.rows, "noisy is at least 0 and less than rows", "noisy", "rows")


def _data(key: PRNGKeyArray, width: int, dtype: str) -> tuple[Array, Array]:
    k_x, k_y = jax.random.split(key)
    return tuple(jax.random.normal(k, (POINTS, width), jnp.float64).astype(dtype) for k in (k_x, k_y))


def _trained(tx: optax.GradientTransformation, loss: object, start: PyTree, steps: int) -> PyTree:
    step = train.make_step(loss, tx)
    return jax.lax.fori_loop(0, steps, lambda _, state: step(state), train.init(tx, start)).params


def full_rank_trial(s: FullRank, key: PRNGKeyArray) -> jd.Observables:
    """Changes of the weights by SGD and GaLore-SGD, and by Adam in the basis of the first gradient and GaLore-Adam."""
    k_w, k_data = jax.random.split(key)
    x, y = _data(k_data, s.width, "float64")
    w, zero = model.init(k_w, s.depth, s.width), jnp.zeros((s.depth, s.width), jnp.float64)
    subspace = Subspace(rank=s.rank)

    def loss(params: dict[str, Array]) -> Float[Array, ""]:
        return model.squared(params["w"], x, y, LEAKY, zero)

    def moved(tx: optax.GradientTransformation) -> Array:
        return _trained(optax.chain(tx, optax.scale(-s.lr)), loss, {"w": w}, s.steps)["w"] - w

    q = jnp.swapaxes(linalg.svd(jax.grad(loss)({"w": w})["w"])[2], 1, 2)  # square: the columns are projected
    back = jnp.swapaxes(q, 1, 2)
    turned = optax.chain(adam_direction(), optax.scale(-s.lr))
    rotated = _trained(turned, lambda params: loss({"w": params["v"] @ back}), {"v": w @ q}, s.steps)["v"] @ back - w
    axes = "place row col"
    measured = {
        "sgd": moved(galore(optax.identity(), subspace, every=s.every, scale=1.0)),
        "adam": moved(galore(adam_direction(), subspace, every=None, scale=1.0)),
    }
    return jd.observables(
        predicted={"sgd": jd.named(moved(optax.identity()), axes), "adam": jd.named(rotated, axes)},
        measured={name: jd.named(value, axes) for name, value in measured.items()},
        recorded={"plain_adam": jd.named(moved(adam_direction()), axes)},
        status=train.finite_status(measured),
    )


def sides_trial(s: Sides, key: PRNGKeyArray) -> jd.Observables:
    """Changes of the weights with bases on the left and on the right, and by descent along the nearest matrix of that rank."""
    k_w, k_data = jax.random.split(key)
    x, y = _data(k_data, s.width, "float64")
    w, zero = model.init(k_w, s.depth, s.width), jnp.zeros((s.depth, s.width), jnp.float64)
    every = jnp.round(s.every).astype(jnp.int32)

    def loss(params: dict[str, Array]) -> Float[Array, ""]:
        return model.squared(params["w"], x, y, LEAKY, zero)

    def moved(tx: optax.GradientTransformation) -> Array:
        return _trained(optax.chain(tx, optax.scale(-s.lr)), loss, {"w": w}, s.steps)["w"] - w

    def nearest(g: Array) -> Array:
        f = factorised(g, s.rank)
        return f.b @ f.a

    axes, sides = "side place row col", ("left", "right")
    low = [moved(galore(optax.identity(), Subspace(rank=s.rank, side=side), every=every, scale=1.0)) for side in sides]
    truncated = moved(optax.stateless(lambda g, _: jax.tree.map(nearest, g)))
    plain = moved(optax.identity())
    return jd.observables(
        predicted={"change": jd.named(jnp.stack([truncated, truncated]), axes)},
        measured={"change": jd.named(jnp.stack(low), axes)},
        recorded={"sgd": jd.named(jnp.stack([plain, plain]), axes)},
        status=train.finite_status(low),
        coords={"side": sides},
    )


def agreement_trial(s: Agreement, key: PRNGKeyArray) -> jd.Observables:
    """Changes of the weights by our GaLore-Adam and by that of optax."""
    k_w, k_data = jax.random.split(key)
    x, y = _data(k_data, s.width, "float32")
    w, zero = model.init(k_w, 3, s.width).astype(jnp.float32), jnp.zeros((3, s.width), jnp.float32)
    start = {name: w[i] for i, name in enumerate("abc")}

    def loss(params: dict[str, Array]) -> Float[Array, ""]:
        return model.squared(jnp.stack([params[name] for name in "abc"]), x, y, jnp.int32(0), zero)

    def moved(tx: optax.GradientTransformation) -> Array:
        end = _trained(optax.chain(tx, optax.scale(-s.lr.astype(jnp.float32))), loss, start, s.every * s.periods)
        return jnp.stack([end[name] - start[name] for name in "abc"])

    ours = galore(optax.scale_by_adam(), Subspace(rank=s.rank, side=s.side, signs=False), every=s.every)
    theirs = optax.contrib.scale_by_galore(s.rank, s.every, 0.25, optax.scale_by_adam())
    axes = "place row col"
    measured = moved(theirs)
    return jd.observables(
        predicted={"change": jd.named(moved(ours), axes)},
        measured={"change": jd.named(measured, axes)},
        recorded={"adam": jd.named(moved(optax.scale_by_adam()), axes)},
        status=train.finite_status(measured),
    )


def noisy_trial(s: Noisy, key: PRNGKeyArray) -> jd.Observables:
    """How much of the first row's distance from its target is left after training."""
    k_target, k_noise, k_basis = jax.random.split(key, 3)
    target = jax.random.normal(k_target, (s.size,), jnp.float64)
    target = target / jnp.linalg.norm(target)
    tx = optax.chain(
        galore(optax.identity(), Subspace(rank=s.rank, side="left", finder=s.finder), every=s.every, scale=1.0, key=k_basis),
        optax.scale(-s.lr),
    )

    def batch(i: Int[Array, ""]) -> Array:
        drawn = jax.random.normal(jax.random.fold_in(k_noise, i), (s.rows - 1, s.size), jnp.float64)
        return jnp.where(jnp.arange(s.rows - 1)[:, None] < s.noisy, s.noise, 0.0) * drawn

    step = train.make_step(lambda params, xi: model.row_loss(params["w"], target, xi), tx, batch)
    start = train.init(tx, {"w": jnp.zeros((s.rows, s.size), jnp.float64)})

    def observe(state: train.State) -> Array:
        return jnp.linalg.norm(state.params["w"][0] - target)

    last, left = train.record(step, start, observe, samples=20, every=s.steps // 20)
    made = s.steps // 20 * jnp.arange(21)
    theory = distance_left(s.finder, made, s.lr, s.noise, s.size, s.every, s.rank, s.rows, s.noisy)
    return jd.observables(
        predicted={"left": jd.named(theory, "time")},
        measured={"left": jd.named(left, "time")},
        status=train.finite_status(last.params),
    )
