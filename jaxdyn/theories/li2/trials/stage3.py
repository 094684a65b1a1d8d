r"""The trial of all three stages: gradient descent on the theory's loss beside the flow of both layers, :math:`\sigma = x^2`.

The network is trained on :math:`J + \tfrac\lambda2\|W\|^2` by differentiation of the loss; the prediction is a solve of
``dynamics/both.py``. Times of the stages, the first from which on

- I: the top layer is within a tenth, in norm, of the ridge solution on the features of that time;
- II: the loss on the pairs held out is below half of that of guessing, 1 - 1/M;
- III: :math:`\|G_F\|` is below a quarter of its peak.

They are interpolated between records, and 0 where the level is not crossed for good. Letters as in ``dynamics/both.py``.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray

import jaxdyn as jd
from jaxdyn import flow, train
from jaxdyn.data.groups import parse
from jaxdyn.theories.li2 import model
from jaxdyn.theories.li2.dynamics import ridge
from jaxdyn.theories.li2.dynamics.both import Problem, field

__all__ = ["CLOSE", "LEVELS", "STAGES", "Stages", "curves", "settled", "trial"]

STAGES = ("I", "II", "III")
CLOSE, LEARNED, GONE = LEVELS = (0.1, 0.5, 0.25)
COARSE = 20  # records from one at which weights are compared to the next


@jd.setting
class Stages:
    """A run with step size ``lr``; ``assumed`` is the ridge of the flow in parts of eta, it and ``momentum`` are breaches."""

    lr: jd.Swept = 0.01
    eta: jd.Swept = 0.2
    decay: jd.Swept = 0.2  # of W
    assumed: jd.Swept = 1.0
    momentum: jd.Swept = 0.0
    horizon: jd.Swept = 16.0
    group: str = "7"
    share: float = 0.9  # of all pairs, to train on
    hidden: int = 24
    records: int = 200

    def __post_init__(self) -> None:
        """Refuse numbers that are not positive, shares without a pair on either side, and records that weights do not divide."""
        for name in ("lr", "eta", "assumed", "hidden", "horizon"):
            jd.require(self, getattr(self, name) > 0, f"{name} is positive", name)
        jd.require(self, 0 <= self.momentum < 1, "momentum is at least 0 and below 1", "momentum")
        pairs = parse(self.group).order ** 2
        jd.require(self, 1 <= round(self.share * pairs) < pairs, "share leaves a pair to train on and one to test on", "share")
        jd.require(self, self.records >= 1 and self.records % COARSE == 0, f"records is a multiple of {COARSE}", "records")


def settled(curve: Float[Array, " t"], level: Float[Array, ""], ts: Float[Array, " t"]) -> Float[Array, ""]:
    """The time from which on a curve is below a level, between two records by a line; 0 if it ends above or always is below."""
    above = curve > level
    last = jnp.max(jnp.where(above, jnp.arange(len(ts)), 0))
    after = jnp.minimum(last + 1, len(ts) - 1)
    drop = curve[last] - curve[after]
    time = ts[last] + (ts[after] - ts[last]) * (curve[last] - level) / jnp.where(drop == 0, 1, drop)
    return jnp.where(jnp.any(above) & ~above[-1], time, 0)


def curves(p: model.Params, given: Problem, held: Int[Array, "h 2"], answers: Float[Array, "h M"]) -> dict[str, Float[Array, ""]]:
    """Distance of V from the ridge solution, over its norm; loss and accuracy on held-out pairs; norm of G_F."""
    f, y = model.features(p.w, given.samples), given.y
    best = ridge.solution(f, y, given.eta)
    o = (model.features(p.w, held) - jnp.mean(f, 0)) @ p.v + jnp.mean(y, 0)
    return {
        "apart": jnp.linalg.norm(p.v - best) / jnp.linalg.norm(best),
        "test": jnp.mean(jnp.sum(jnp.square(o - answers), 1)) / (1 - 1 / y.shape[1]),
        "sent": jnp.linalg.norm(ridge.backward(f, y, p.v)),
        "accuracy": jnp.mean(jnp.argmax(o, 1) == jnp.argmax(answers, 1), dtype=jnp.float64),
    }


def _times(seen: dict[str, Float[Array, " t"]], ts: Float[Array, " t"]) -> Float[Array, " stage"]:
    levels = (CLOSE, LEARNED, GONE * jnp.max(seen["sent"]))
    return jnp.stack([settled(seen[name], level, ts) for name, level in zip(("apart", "test", "sent"), levels, strict=True)])


def _train(s: Stages, start: model.Params, given: Problem, every: Int[Array, ""]) -> model.Params:
    def loss(p: model.Params) -> Float[Array, ""]:
        top = model.theory_loss(p.v, model.features(p.w, given.samples), given.y, given.eta)
        return top + given.decay / 2 * jnp.sum(jnp.square(p.w))

    tx = optax.sgd(s.lr, momentum=s.momentum)
    step = train.make_step(loss, tx)
    return train.record(step, train.init(tx, start), lambda state: state.params, samples=s.records, every=every)[1]


def _vector(p: model.Params) -> Float[Array, "time entry"]:
    """All weights at a few of the records, without the start."""
    return jnp.concatenate([leaf[COARSE::COARSE].reshape(-1, leaf[0].size) for leaf in p], 1)


def trial(s: Stages, key: PRNGKeyArray) -> jd.Observables:
    """Train, and solve the flow of both layers, and that with V frozen at its start, to equal times.

    All runs of both claims take about 20 s: thousands of small steps, since the top layer is stiff beside the hidden one.
    """
    group = parse(s.group)
    k_pairs, k_init = jax.random.split(key)
    rows = jax.random.permutation(k_pairs, model.pairs(group.order))
    count = round(s.share * len(rows))
    samples, held = rows[:count], rows[count:]
    start = model.init(k_init, group.order, s.hidden, "float64")
    eta, decay = jnp.asarray(s.eta, jnp.float64), jnp.asarray(s.decay, jnp.float64)
    given = Problem(samples, model.targets(group, samples), eta, decay, jnp.ones((), jnp.float64))
    every = jnp.maximum(1, jnp.round(s.horizon / s.records / s.lr)).astype(jnp.int32)
    ts = jnp.arange(s.records + 1) * (every * jnp.asarray(s.lr, jnp.float64))
    trained = _train(s, start, given, every)

    def solve(rate: Float[Array, ""]) -> flow.Solution:
        told = given._replace(eta=s.assumed * eta, rate=rate)
        return flow.solve(field, start, ts, told, solver="dopri8", rtol=1e-8, atol=1e-10, max_steps=20_000)

    sol = jax.vmap(solve)(jnp.array([1.0, 0.0], jnp.float64))
    moving, frozen = (jax.tree.map(lambda leaf, i=i: leaf[i], sol.ys) for i in range(2))
    watch = jax.vmap(lambda p: curves(p, given, held, model.targets(group, held)))
    seen, told = watch(trained), watch(moving)
    axes = "time entry"
    return jd.observables(
        predicted={"weights": jd.named(_vector(moving), axes), "stage_time": jd.named(_times(told, ts), "stage")},
        measured={"weights": jd.named(_vector(trained), axes), "stage_time": jd.named(_times(seen, ts), "stage")},
        recorded={
            "first": jd.named(jnp.concatenate([leaf.ravel() for leaf in start]), "entry"),
            "frozen": jd.named(_vector(frozen), axes),
            "t": jd.named(ts, "moment"),
            **{f"curve_{name}": jd.named(value, "moment") for name, value in seen.items()},
            **{f"flow_{name}": jd.named(value, "moment") for name, value in told.items()},
        },
        status=jnp.maximum(sol.status[0], train.finite_status(trained)),
        coords={"stage": STAGES},
    )
