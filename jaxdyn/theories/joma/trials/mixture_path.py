r"""A node trained by gradient descent on samples of the mixture of Theorem 3, and the theory's ODE for (v, xi).

Independent replicates of the sample set, each with a network of its own, give the Monte Carlo error of the path.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PRNGKeyArray

import jaxdyn as jd
from jaxdyn import flow, linalg, train
from jaxdyn.theories.joma.dynamics.thm3 import mixture_field
from jaxdyn.theories.joma.mixture import Instance, coordinates, draw, features, start_weights, utility
from jaxdyn.theories.joma.trials.mixture import Mixture, sample

__all__ = ["Path", "path_trial"]


@jd.setting
class Path(Mixture):
    """The same node trained by gradient descent.

    Args:
        eta: step size.
        horizon: training time, number of steps times eta.
        replicates: independent sample sets, for the Monte Carlo error.
        records: of a run after its start.
    """

    eta: jd.Swept = 0.05
    horizon: jd.Swept = 1.6
    tokens: int = 8
    components: int = 3
    samples: int = 3126
    replicates: int = 32
    records: int = 8

    def __post_init__(self) -> None:
        super().__post_init__()
        jd.require(self, self.replicates >= 8, "replicates is at least 8: the error of the mean path comes from them", "replicates")
        jd.require(self, self.eta > 0, "eta is positive", "eta")
        steps = self.horizon / (self.records * self.eta)
        whole = steps > 1 - 1e-6 and abs(steps - round(steps)) <= 1e-6
        jd.require(self, whole, f"horizon is a whole multiple of {self.records} eta", "horizon", "eta")


def path_trial(s: Path, key: PRNGKeyArray) -> jd.Observables:
    """The path of (v, xi) by the theory's ODE, and the mean over replicates of networks trained by gradient descent."""
    k_instance, k_data = jax.random.split(key)
    one = draw(k_instance, s.tokens, s.components, 1.0, 2.0)
    each = s.samples // s.components
    x, g = sample(k_data, one, s, each * s.replicates)
    x, g = (jnp.moveaxis(a.reshape(s.components, s.replicates, each, *a.shape[2:]), 1, 0) for a in (x, g))
    paths = jax.vmap(lambda f, g: _descend(s, one, f, g))(features(one, x), g)
    start = jnp.append(one.v, one.xi)
    moves = coordinates(one, paths) - start
    ts = s.horizon * jnp.arange(s.records + 1, dtype=jnp.float64) / s.records
    solution = jax.vmap(lambda keep: _theory_path(s, one, ts, keep))(jnp.array([1.0, 0.0], jnp.float64))
    theory = jnp.concatenate([solution.ys[0], solution.ys[1][..., None]], -1) - start
    mean = jnp.mean(moves, 0)
    cosine, inside = _alignment(mean[-1, :-1] + one.v, one.centres)
    pace = jnp.linalg.norm(mean[1:, :-1] - mean[:-1, :-1], axis=-1)
    return jd.observables(
        predicted={"path": jd.named(theory[0, 1:], "time coordinate")},
        measured={"path": jd.named(mean[1:], "time coordinate"), "cosine": cosine, "in_span": inside, "pace": pace[-1] / pace[0]},
        recorded={
            "paths": jd.named(moves[:, 1:], "replicate time coordinate"),
            "without_xi": jd.named(jnp.where(jnp.isfinite(theory[1, 1:]), theory[1, 1:], jnp.nan), "time coordinate"),
            "t": jd.named(ts[1:], "time"),
            "start_cosine": _alignment(one.v, one.centres)[0],
            "start_in_span": _alignment(one.v, one.centres)[1],
        },
        status=solution.status[0],  # without xi the ODE may run into v = 0, where it has no solution
    )


def _descend(s: Path, one: Instance, f: Float[Array, "C n D"], g: Float[Array, "C n"]) -> Float[Array, "T D"]:
    """Weights along full-batch gradient descent on one sample set, at equal times for every step size."""
    each = jax.vmap(jax.vmap(utility, (None, 0, 0, None)), (None, 0, 0, None))

    def loss(w: Float[Array, " D"]) -> Float[Array, ""]:
        return one.share @ jnp.mean(each(w, f, g, s.activation), 1)

    tx = optax.sgd(s.eta)
    every = jnp.round(s.horizon / (s.records * s.eta)).astype(jnp.int32)
    step = train.make_step(loss, tx)
    return train.record(step, train.init(tx, start_weights(one)), lambda state: state.params, samples=s.records, every=every)[1]


def _theory_path(s: Path, one: Instance, ts: Float[Array, " T"], keep_xi: Float[Array, ""]) -> flow.Solution:
    def field(_: object, y: tuple, a: Float[Array, " C"]) -> tuple:
        return mixture_field(*y, one.centres, a, s.activation, s.noise, s.spread, keep_xi=keep_xi)

    return flow.solve(field, (one.v, one.xi), ts, one.g * one.share, rtol=1e-8, atol=1e-10)


def _alignment(v: Float[Array, " d"], centres: Float[Array, "C d"]) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Largest cosine of v with a centre (up to sign), and the share of v's norm inside the span of the centres."""
    cosines = jnp.abs(centres @ v) / (jnp.linalg.norm(centres, axis=1) * jnp.linalg.norm(v))
    frame = linalg.qr(centres.T)[0]
    return jnp.max(cosines), jnp.linalg.norm(frame.T @ v) / jnp.linalg.norm(v)
