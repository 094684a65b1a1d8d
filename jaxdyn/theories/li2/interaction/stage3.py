r"""All three stages: gradient descent on the theory's loss converges to the flow of both layers; when its stages end.

The network is trained on :math:`J + \tfrac\lambda2\|W\|^2` by differentiation of the loss, :math:`\sigma = x^2`; the prediction is
a solve of ``dynamics/both.py``. Times of the stages, the first from which on

- I: the top layer is within a tenth, in norm, of the ridge solution on the features of that time;
- II: the loss on the test pairs is below half of that of guessing, 1 - 1/M;
- III: :math:`\|G_F\|` is below a quarter of its peak.

They are interpolated between records, and 0 where the level is not crossed for good. Letters as in ``dynamics/both.py``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
import optax
import xarray as xr
from jaxtyping import Array, Float, Int, PRNGKeyArray

import jaxdyn as jd
from jaxdyn import flow, plotting, stats, train
from jaxdyn.data.groups import parse
from jaxdyn.theories.li2 import findings, model
from jaxdyn.theories.li2.dynamics import ridge
from jaxdyn.theories.li2.dynamics.both import Problem, field

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["CLAIMS", "CLOSE", "LEVELS", "STAGES", "Stages", "curves", "error", "judge", "judge_times", "settled", "slopes", "trial"]


STAGES = ("I", "II", "III")
CLOSE, LEARNED, GONE = LEVELS = (0.1, 0.5, 0.25)
COARSE = 20  # records from one at which weights are compared to the next


@jd.setting
class Stages:
    """A run with step size ``lr``; ``assumed`` is the ridge of the flow in parts of eta, it and ``momentum`` are breaches."""

    lr: jd.Swept = jd.field(0.01, above=0)
    eta: jd.Swept = jd.field(0.2, above=0)
    decay: jd.Swept = 0.2  # of W
    assumed: jd.Swept = jd.field(1.0, above=0)
    momentum: jd.Swept = jd.field(0.0, at_least=0, below=1)
    horizon: jd.Swept = jd.field(16.0, above=0)
    group: str = "7"
    share: float = 0.9  # of all pairs, to train on
    hidden: int = jd.field(24, at_least=1)
    records: int = jd.field(200, at_least=1)

    def __post_init__(self) -> None:
        """Refuse shares without a pair on either side, and records that weights do not divide."""
        pairs = parse(self.group).order ** 2
        jd.require(self, 1 <= round(self.share * pairs) < pairs, "share leaves a pair to train on and one to test on", "share")
        jd.require(self, self.records % COARSE == 0, f"records is a multiple of {COARSE}", "records")


def settled(curve: Float[Array, " t"], level: Float[Array, ""], ts: Float[Array, " t"]) -> Float[Array, ""]:
    """The time from which on a curve is below a level, between two records by a line; 0 if it ends above or always is below."""
    above = curve > level
    last = jnp.max(jnp.where(above, jnp.arange(len(ts)), 0))
    after = jnp.minimum(last + 1, len(ts) - 1)
    drop = curve[last] - curve[after]
    time = ts[last] + (ts[after] - ts[last]) * (curve[last] - level) / jnp.where(drop == 0, 1, drop)
    return jnp.where(jnp.any(above) & ~above[-1], time, 0)


def curves(p: model.Params, given: Problem, tests: Int[Array, "h 2"], answers: Float[Array, "h M"]) -> dict[str, Float[Array, ""]]:
    """Distance of V from the ridge solution, over its norm; loss and accuracy on test pairs; norm of G_F."""
    f, y = model.features(p.w, given.samples), given.y
    best = ridge.solution(f, y, given.eta)
    o = (model.features(p.w, tests) - jnp.mean(f, 0)) @ p.v + jnp.mean(y, 0)
    return {
        "apart": jnp.linalg.norm(p.v - best) / jnp.linalg.norm(best),
        "test": jnp.mean(jnp.sum(jnp.square(o - answers), 1)) / (1 - 1 / y.shape[1]),
        "sent": jnp.linalg.norm(ridge.backward(f, y, p.v)),
        "accuracy": jnp.mean(jnp.argmax(o, 1) == jnp.argmax(answers, 1), dtype=jnp.float64),
    }


def _times(watched: dict[str, Float[Array, " t"]], ts: Float[Array, " t"]) -> Float[Array, " stage"]:
    levels = (CLOSE, LEARNED, GONE * jnp.max(watched["sent"]))
    return jnp.stack([settled(watched[name], level, ts) for name, level in zip(("apart", "test", "sent"), levels, strict=True)])


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

    All runs of both claims take about 20 s: thousands of small steps, since the top layer is stiff compared with the hidden one.
    """
    # pairs to train and to test on, and the start
    group = parse(s.group)
    k_pairs, k_init = jax.random.split(key)
    rows = jax.random.permutation(k_pairs, model.pairs(group.order))
    count = round(s.share * len(rows))
    samples, tests = rows[:count], rows[count:]
    start = model.init(k_init, group.order, s.hidden, "float64")
    eta, decay = jnp.asarray(s.eta, jnp.float64), jnp.asarray(s.decay, jnp.float64)
    given = Problem(samples, model.targets(group, samples), eta, decay, jnp.ones((), jnp.float64))
    # the network along training
    every = jnp.maximum(1, jnp.round(s.horizon / s.records / s.lr)).astype(jnp.int32)
    ts = jnp.arange(s.records + 1) * (every * jnp.asarray(s.lr, jnp.float64))
    trained = _train(s, start, given, every)

    # the flow, and that with V frozen
    def solve(rate: Float[Array, ""]) -> flow.Solution:
        assumed = given._replace(eta=s.assumed * eta, rate=rate)
        return flow.solve(field, start, ts, assumed, solver="dopri8", rtol=1e-8, atol=1e-10, max_steps=20_000)

    sol = jax.vmap(solve)(jnp.array([1.0, 0.0], jnp.float64))
    moving, frozen = (jax.tree.map(lambda leaf, i=i: leaf[i], sol.ys) for i in range(2))
    watch = jax.vmap(lambda p: curves(p, given, tests, model.targets(group, tests)))
    own, flowing = watch(trained), watch(moving)
    axes = "time entry"
    return jd.observables(
        predicted={"weights": jd.named(_vector(moving), axes), "stage_time": jd.named(_times(flowing, ts), "stage")},
        measured={"weights": jd.named(_vector(trained), axes), "stage_time": jd.named(_times(own, ts), "stage")},
        recorded={
            "first": jd.named(jnp.concatenate([leaf.ravel() for leaf in start]), "entry"),
            "frozen": jd.named(_vector(frozen), axes),
            "t": jd.named(ts, "moment"),
            **{f"curve_{name}": jd.named(value, "moment") for name, value in own.items()},
            **{f"flow_{name}": jd.named(value, "moment") for name, value in flowing.items()},
        },
        status=jnp.maximum(sol.status[0], train.finite_status(trained)),
        coords={"stage": STAGES},
    )


GREEK = {"eta": "eta", "decay": "lambda"}
GENERAL = 0.8  # mean test accuracy that counts as generalising: of 40 answers to test pairs, chance being 1/7


def _size(difference: xr.DataArray) -> xr.DataArray:
    return np.sqrt((difference**2).sum(["time", "entry"], skipna=False))


def error(ds: xr.Dataset) -> xr.DataArray:
    """Distance of the trained weights from the flow's over the whole run."""
    return _size(ds.measured_weights - ds.predicted_weights)


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """Networks generalise; the order in the step size; the Richardson limit is the flow to a third of its last change."""
    jd.need(ds, lr=3)
    ds = ds.sortby("lr", ascending=False)
    if not np.allclose(ds.lr.values[:-1] / ds.lr.values[1:], 2.0):
        raise jd.Inconclusive("the Richardson limit needs step sizes that halve")
    difference = ds.measured_weights - ds.predicted_weights
    last = [difference.isel(lr=i, drop=True) for i in (-3, -2, -1)]
    coarse, fine = stats.richardson(last[0], last[1]), stats.richardson(last[1], last[2])
    return [
        jd.gate("final test accuracy, mean", float(ds.curve_accuracy.isel(moment=-1).mean()), at_least=GENERAL),
        jd.within("fitted order in the step size", stats.loglog_slope(ds.lr, error(ds), "lr"), 0.9, 1.1),
        jd.at_most("Richardson limit against the flow, in error estimates", 3 * _size(fine) / _size(coarse - fine), 3.0),
    ]


def slopes(ds: xr.Dataset, field: str = "eta") -> xr.DataArray:
    """The slope of the logarithm of each stage's time over that of a field, for every run that reaches it at three values."""
    return stats.loglog_slope(ds[field], ds.measured_stage_time.where(ds.measured_stage_time > 0), field)


def judge_times(ds: xr.Dataset, field: str = "eta", wanted: tuple[float, ...] = (-1.0, 0.0, 0.0)) -> list[jd.Check]:
    """Networks generalise; whether the mean slopes are those wanted: in eta of a Stage I of rate eta, before stages without it."""
    jd.need(ds, **{"seed": 8, field: 3})
    slope = slopes(ds, field)
    words = f"slope of the time of Stage {{}} in {field}, mean"
    return [
        jd.gate("final test accuracy, mean", float(ds.curve_accuracy.isel(moment=-1).mean()), at_least=GENERAL),
        *(
            jd.mean_within(words.format(name), slope.sel(stage=name), over="seed", low=x - 0.1, high=x + 0.1)
            for name, x in zip(STAGES, wanted, strict=False)
        ),
    ]


def powers(field: str, power: float) -> Callable[[xr.Dataset], xr.Dataset]:
    """A rival: all times are this power of a field."""

    def times(ds: xr.Dataset) -> xr.DataArray:
        return ds.measured_stage_time.isel({field: 0}, drop=True) * (ds[field] / float(ds[field][0])) ** power

    return jd.swap(measured_stage_time=times)


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Distance over the run against the step size; one seed's curves, and the flow's."""
    left, right = fig.subplots(1, 2)
    plotting.order(left, ds.lr, error(ds), 1, "gradient descent minus flow")
    left.set(xlabel="step size", ylabel="distance over the run")
    one = ds.isel(seed=0, lr=0)
    for i, (name, label) in enumerate((("apart", "V from its ridge solution"), ("test", "test loss"), ("sent", "$|G_F|$"))):
        for kind, style in (("curve", "-"), ("flow", ":")):
            values = one[f"{kind}_{name}"]
            right.plot(one.t, values / values.max(), style, color=plotting.CYCLE[i], label=label if kind == "curve" else None)
    right.set(xlabel="time", ylabel="over its maximum", yscale="log")
    right.legend()


def plot_times(ds: xr.Dataset, fig: Figure, field: str = "eta") -> None:
    """Times of the three stages against a field, with the flow's."""
    ax = fig.subplots()
    for i, name in enumerate(STAGES):
        part = ds.sel(stage=name).isel(lr=0) if "lr" in ds.dims else ds.sel(stage=name)
        measured, predicted = (part[key].where(part[key] > 0) for key in ("measured_stage_time", "predicted_stage_time"))
        plotting.band(ax, ds[field], measured.transpose("seed", field), f"Stage {name}", plotting.CYCLE[i])
        ax.plot(ds[field], predicted.median("seed"), ":", color=plotting.CYCLE[i])
    ax.set(xlabel=rf"$\{GREEK[field]}$", ylabel="time", xscale="log", yscale="log")


STUDY = jd.Study(
    trial=trial,
    quick=jd.grid(Stages, lr=[0.02, 0.01, 0.005]),
    paper=jd.grid(Stages, lr=[0.02, 0.01, 0.005], eta=[0.1, 0.2, 0.4]),
    seeds=8,
    paper_seeds=32,
    source="arXiv:2509.21519, section 3",
    evidence="network",
)

CLAIMS = (
    STUDY.claim(
        id="li2.stage3_flow",
        statement=r"In networks of 24 nodes with $\sigma = x^2$ on $Z_7$, trained on nine tenths of all pairs until they "
        r"generalise, gradient descent on $J + \tfrac\lambda2\|W\|^2$ converges at order 1 in the step size to the flow "
        r"$\dot W = X^\top(\sigma'(XW) \circ G_F) - \lambda W$, $\dot V = \tilde F^\top(\tilde Y - \tilde F V) - \eta V$ of both "
        r"layers, $G_F = (\tilde Y - \tilde F V) V^\top$, and its Richardson limit is this flow.",
        judge=judge,
        bounds=jd.looked(at="0:8", confirmed="4000:4008"),
        controls={"the flow of twice the ridge": {"assumed": 2.0}, "momentum in the trainer": {"momentum": 0.5}},
        rivals={
            "nothing moves": jd.swap(predicted_weights="first"),
            "the top layer is frozen": jd.swap(predicted_weights="frozen"),
        },
        plot=plot,
        caption="Left: distance between the weights of gradient descent and of the flow over the run, against the step size "
        "(median and range over runs; dashed: slope 1). Right: curves of one run (dotted: the flow's), each over its maximum.",
    ),
    STUDY.claim(
        id="li2.stage_times",
        statement=r"In the same networks, how do the times at which three stages end depend on the ridge $\eta$, from 0.2 to 0.8: "
        r"at which V comes to stay within a tenth of the ridge solution on the features of that time (I), the loss on the pairs "
        r"held out below half of that of guessing (II), $\|G_F\|$ below a quarter of its peak (III)? "
        r"Networks that do not reach a stage at all $\eta$ are left out of its slope. "
        r"Were the rate of Stage I "
        r"$\eta$ and the others without it, the slopes would be -1, 0 and 0.",
        quick=jd.grid(Stages, eta=[0.2, 0.4, 0.8], horizon=24.0),
        paper=jd.grid(Stages, eta=[0.2, 0.4, 0.8], lr=[0.01, 0.005], horizon=24.0),
        judge=judge_times,
        expected="measured",
        rivals={"no time depends on eta": powers("eta", 0.0), "all times are inverse in eta": powers("eta", -1.0)},
        found=findings.STAGE_TIMES,
        plot=plot_times,
        caption="Times at which the three stages end against the ridge: median and central 90% of the runs; dotted: median of "
        "the flow.",
    ),
    STUDY.claim(
        id="li2.stage_times_decay",
        statement=r"In the same networks, how do the times at which Stages I and II end depend on the decay $\lambda$ of the "
        r"hidden layer, from 0.1 to 0.4? The theory has no such decay in these stages: slopes of 0. Networks that do not reach a "
        r"stage at all $\lambda$ are left out of its slope; too few reach Stage III.",
        quick=jd.grid(Stages, decay=[0.1, 0.2, 0.4], horizon=24.0),
        paper=jd.grid(Stages, decay=[0.1, 0.2, 0.4], lr=[0.01, 0.005], horizon=24.0),
        judge=functools.partial(judge_times, field="decay", wanted=(0.0, 0.0)),
        expected="measured",
        rivals={
            "times are inverse in the decay": powers("decay", -1.0),
            "times are proportional to the decay": powers("decay", 1.0),
        },
        found=findings.DECAY_TIMES,
        plot=functools.partial(plot_times, field="decay"),
        caption="Times at which the three stages end against the decay of the hidden layer: median and central 90% of the runs; "
        "dotted: median of the flow.",
    ),
)
