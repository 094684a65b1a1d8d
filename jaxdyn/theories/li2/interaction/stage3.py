r"""Stage III and the times of all stages: networks that train both layers, next to flows with the top layer fitted or fixed.

The network is trained on :math:`J + \tfrac\lambda2\|W\|^2` by gradient descent, its top layer ``ratio`` times as fast as the
hidden one, :math:`\sigma = x^2`. Flows, solves of ``dynamics/ridge.py``: ``slaved``, in which V is the ridge solution on the
features of each moment (the theory's Stage III); ``both``, in which V moves as in the network; ``fixed``, in which V stays the
ridge solution on the features of the start.

Times of the stages: I, at which V is closest to the ridge solution on the features of the start, where the theory's Stage I ends;
II, from which on the loss on the test pairs is below half of that of guessing, 1 - 1/M; III, from which on :math:`\|G_F\|` is below
a quarter of its peak. II and III are interpolated between records, and 0 where the level is not crossed for good.
Letters as in ``dynamics/ridge.py``.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import xarray as xr
from jaxtyping import Array, Float, Int, PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import flow, plotting, stats, train
from jaxdyn.data.groups import parse
from jaxdyn.theories.li2 import model
from jaxdyn.theories.li2.dynamics import ridge
from jaxdyn.theories.li2.dynamics.ridge import Problem, field

STAGES = ("I", "II", "III")
FLOWS = ("slaved", "both", "fixed")
LEARNED, GONE = LEVELS = (0.5, 0.25)
COARSE = 20  # records from one at which weights are compared to the next


@jd.setting
class Stages:
    """A run in which the top layer takes steps ``lr`` and the hidden layer steps ``lr / ratio``."""

    lr: jd.Swept = jd.field(0.01, above=0)  # step size of V
    ratio: jd.Swept = jd.field(1.0, above=0)  # rate of V over that of W
    eta: jd.Swept = jd.field(0.2, above=0, role="none")  # ridge (weight decay) of V
    decay: jd.Swept = 0.2  # of W
    ahead: jd.Swept = jd.field(0.0, at_least=0, at_most=1)  # where V starts: 0 as usual, 1 at its ridge solution
    horizon: jd.Swept = jd.field(16.0, above=0)  # in the hidden layer's time
    group: str = "7"  # whose multiplication is learned; a number M is addition modulo M
    share: float = 0.9  # of all pairs, to train on
    hidden: int = jd.field(24, at_least=1)  # K, nodes
    records: int = jd.field(200, at_least=1)  # records after the first, evenly spaced

    def __post_init__(self) -> None:
        """Refuse shares without a pair on either side, and records that weights do not divide."""
        pairs = parse(self.group).order ** 2
        jd.require(self, 1 <= round(self.share * pairs) < pairs, "share leaves a pair to train on and one to test on", "share")
        jd.require(self, self.records % COARSE == 0, f"records is a multiple of {COARSE}", "records")


def settled(curve: Float[Array, " t"], level: float | Float[Array, ""], ts: Float[Array, " t"]) -> Float[Array, ""]:
    """The time from which on a curve is below a level, between two records by a line; 0 if it ends above or always is below."""
    above = curve > level
    last = jnp.max(jnp.where(above, jnp.arange(len(ts)), 0))
    after = jnp.minimum(last + 1, len(ts) - 1)
    drop = curve[last] - curve[after]
    time = ts[last] + (ts[after] - ts[last]) * (curve[last] - level) / jnp.where(drop == 0, 1, drop)
    return jnp.where(jnp.any(above) & ~above[-1], time, 0)


def curves(
    p: model.Params, first: Float[Array, "K M"], given: Problem, tests: Int[Array, "h 2"], answers: Float[Array, "h M"]
) -> dict[str, Float[Array, ""]]:
    """Distances of V from the ridge solutions on the features of the start and of now; test loss and accuracy; norm of G_F."""
    f, y = model.features(p.w, given.samples), given.y
    now = ridge.solution(f, y, given.eta)
    o = (model.features(p.w, tests) - jnp.mean(f, 0)) @ p.v + jnp.mean(y, 0)
    return {
        "first": jnp.linalg.norm(p.v - first) / jnp.linalg.norm(first),
        "apart": jnp.linalg.norm(p.v - now) / jnp.linalg.norm(now),
        "test": jnp.mean(jnp.sum(jnp.square(o - answers), 1)) / (1 - 1 / y.shape[1]),
        "sent": jnp.linalg.norm(ridge.backward(f, y, p.v)),
        "accuracy": jnp.mean(jnp.argmax(o, 1) == jnp.argmax(answers, 1), dtype=jnp.float64),
    }


def _times(watched: dict[str, Float[Array, " t"]], ts: Float[Array, " t"]) -> Float[Array, " stage"]:
    late = [settled(watched[name], level, ts) for name, level in (("test", LEARNED), ("sent", GONE * jnp.max(watched["sent"])))]
    return jnp.stack([ts[jnp.argmin(watched["first"])], *late])


def _train(s: Stages, start: model.Params, given: Problem, every: Int[Array, ""]) -> model.Params:
    def loss(p: model.Params) -> Float[Array, ""]:
        top = model.theory_loss(p.v, model.features(p.w, given.samples), given.y, given.eta)
        return top + given.decay / 2 * jnp.sum(jnp.square(p.w))

    rates = {"w": optax.sgd(s.lr / s.ratio), "v": optax.sgd(s.lr)}
    tx = optax.partition(rates, model.Params._make(("w", "v")))
    step = train.make_step(loss, tx)
    return train.record(step, train.init(tx, start), lambda state: state.params, samples=s.records, every=every)[1]


def flows(start: model.Params, first: Float[Array, "K M"], given: Problem, ts: Float[Array, " t"]) -> flow.Solution:
    """Solves of every flow, in the order of ``FLOWS``."""

    def velocity(t: Float[Array, ""], p: model.Params, kind: Int[Array, ""]) -> model.Params:
        now = ridge.solution(model.features(p.w, given.samples), given.y, given.eta)
        moved = field(t, p._replace(v=jnp.stack([now, p.v, first])[kind]), given)
        return moved._replace(v=jnp.where(kind == FLOWS.index("both"), moved.v, 0))

    def solve(kind: Int[Array, ""]) -> flow.Solution:
        return flow.solve(velocity, start, ts, kind, solver="tsit5", rtol=1e-7, atol=1e-9, max_steps=100_000)

    return jax.lax.map(solve, jnp.arange(len(FLOWS)))


def _hidden(w: Float[Array, "*f t D K"]) -> Float[Array, "*f time entry"]:
    """Hidden weights at a few of the records, without the start."""
    return w[..., COARSE::COARSE, :, :].reshape(*w.shape[:-3], -1, w.shape[-2] * w.shape[-1])


def trial(s: Stages, key: PRNGKeyArray) -> jd.Observables:
    """Train, and solve all flows from the same start to equal times."""
    # pairs to train and to test on, and the start
    group = parse(s.group)
    k_pairs, k_init = jax.random.split(key)
    rows = jax.random.permutation(k_pairs, model.pairs(group.order))
    count = round(s.share * len(rows))
    samples, tests = rows[:count], rows[count:]
    start = model.init(k_init, group.order, s.hidden, "float64")
    eta, decay, ratio = (jnp.asarray(x, jnp.float64) for x in (s.eta, s.decay, s.ratio))
    given = Problem(samples, model.targets(group, samples), eta, decay, ratio)
    first = ridge.solution(model.features(start.w, samples), given.y, eta)
    start = start._replace(v=start.v + s.ahead * (first - start.v))
    # the network along training
    every = jnp.maximum(1, jnp.round(s.horizon / s.records / (s.lr / s.ratio))).astype(jnp.int32)
    ts = jnp.arange(s.records + 1) * (every * jnp.asarray(s.lr / s.ratio, jnp.float64))
    trained = _train(s, start, given, every)
    # the flows, and what is seen along both
    sol = flows(start, first, given, ts)
    moving = jax.tree.map(lambda leaf: leaf[FLOWS.index("both")], sol.ys)
    watch = jax.vmap(lambda p: curves(p, first, given, tests, model.targets(group, tests)))
    own, flowing = watch(trained), watch(moving)
    return jd.observables(
        predicted={
            "weights": jd.named(_hidden(sol.ys.w)[FLOWS.index("slaved")], "time entry"),
            "stage_time": jd.named(_times(flowing, ts), "stage"),
        },
        measured={"weights": jd.named(_hidden(trained.w), "time entry"), "stage_time": jd.named(_times(own, ts), "stage")},
        recorded={
            "start": jd.named(start.w.ravel(), "entry"),
            "both": jd.named(_hidden(sol.ys.w)[FLOWS.index("both")], "time entry"),
            "fixed": jd.named(_hidden(sol.ys.w)[FLOWS.index("fixed")], "time entry"),
            "t": jd.named(ts, "moment"),
            **{f"curve_{name}": jd.named(value, "moment") for name, value in own.items()},
            **{f"flow_{name}": jd.named(value, "moment") for name, value in flowing.items()},
        },
        status=jnp.maximum(jnp.max(sol.status), train.finite_status(trained)),
        coords={"stage": STAGES},
    )


GREEK = {"eta": "eta", "decay": "lambda"}
GENERAL = 0.8  # mean test accuracy that counts as generalising: of 40 answers to test pairs, chance being 1/7
EQUAL = "distance from the slaved flow over the network's own change, equal rates, mean"
FASTEST = "the same where the top layer is fastest, mean"
POWER = "power of the ratio of rates in this distance, mean"
BOTH = "distance from the flow of both layers over the network's own change, equal rates, mean"
NEAR = "smallest distance of V from its ridge solution on the first features, over its norm, mean"
ORDER = "share of networks whose stages end in the order I, II, III"
SLOPE = "power of {} in the time of Stage {}, mean"


def _size(difference: stats.Labelled) -> xr.DataArray:
    return np.sqrt((difference**2).sum(["time", "entry"], skipna=False))


def distance(ds: xr.Dataset, name: str = "predicted_weights") -> xr.DataArray:
    """Distance of the network's hidden weights from a flow's over the whole run, over that from their start."""
    return _size(ds.measured_weights - ds[name]) / _size(ds.measured_weights - ds.start)


def _generalise(ds: xr.Dataset) -> jd.Check:
    return jd.gate("final test accuracy, mean", float(ds.curve_accuracy.isel(moment=-1).mean()), at_least=GENERAL)


def judge_slaved(ds: xr.Dataset) -> list[jd.Check | jd.Reading]:
    """Networks generalise; how far they are from the slaved flow, at equal rates and with the top layer fast, and from both."""
    jd.need(ds, ratio=(1.0,), seed=4)
    jd.need(ds, ratio=3)
    off = distance(ds)
    rest = [axis for axis in off.dims if axis not in ("seed", "ratio")]
    over = ["seed", *map(str, rest)]
    return [
        _generalise(ds),
        jd.mean_reading(EQUAL, off.sel(ratio=1.0, drop=True), over=over),
        jd.mean_reading(FASTEST, off.sel(ratio=float(ds.ratio.max()), drop=True), over=over),
        jd.mean_reading(POWER, stats.loglog_slope(ds.ratio, off, "ratio"), over=over),
        jd.mean_reading(BOTH, distance(ds, "both").sel(ratio=1.0, drop=True), over=over),
    ]


def slopes(ds: xr.Dataset, field: str = "eta") -> xr.DataArray:
    """The slope of the logarithm of each stage's time over that of a field, for every run that reaches it at three values."""
    return stats.loglog_slope(ds[field], ds.measured_stage_time.where(ds.measured_stage_time > 0), field)


def judge_times(ds: xr.Dataset, field: str = "eta", stages: tuple[str, ...] = STAGES) -> list[jd.Check | jd.Reading]:
    """Networks generalise; how near V comes to the end of Stage I, the order of all stages, and the mean slopes of their times."""
    jd.need(ds, **{"seed": 8, field: 3})
    time, slope = ds.measured_stage_time.where(ds.measured_stage_time > 0), slopes(ds, field)
    ordered = xr.where(time.isnull().any("stage"), np.nan, (time.diff("stage") > 0).all("stage"))
    over = [axis for axis in ("seed", "eta", "decay", "lr") if axis in time.dims]
    order = [jd.share_reading(ORDER, ordered, over=over)] if len(stages) == len(STAGES) else []
    return [
        _generalise(ds),
        jd.mean_reading(NEAR, ds.curve_first.min("moment"), over=over),
        *order,
        *(
            jd.mean_reading(SLOPE.format(field, name), slope.sel(stage=name, drop=True), over=[a for a in over if a != field])
            for name in stages
        ),
    ]


def powers(field: str, *said: float) -> dict[str, float]:
    """What a rival says of the times of the stages: these powers of a field."""
    return {SLOPE.format(field, name): power for name, power in zip(STAGES, said, strict=False)}


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Distance over the run against the ratio of rates, from each flow; one seed's curves, and the flow's of both layers."""
    left, right = fig.subplots(1, 2)
    flows_ = (
        ("predicted_weights", "V at its ridge solution", "theory"),
        ("both", "both layers", "measured"),
        ("fixed", "V fixed", "control"),
    )
    for name, label, color in flows_:
        plotting.band(left, ds.ratio, distance(ds, name).transpose("seed", "ratio"), label, plotting.COLORS[color], marker="o")
    left.set(xscale="log", yscale="log", xlabel="rate of V over that of W", ylabel="distance over the network's change")
    one = ds.isel(seed=0, ratio=0)
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
    quick=jd.grid(Stages, lr=0.02, ratio=[1.0, 4.0, 16.0], ahead=1.0),
    paper=jd.grid(Stages, lr=0.02, ratio=[1.0, 4.0, 16.0, 64.0], ahead=1.0),
    seeds=8,
    paper_seeds=32,
    source="arXiv:2509.21519, section 3",
    evidence="network",
    tested=r"Networks of {hidden} nodes with $\sigma = x^2$ on {share} of the pairs of residues modulo {group}, gradient "
    r"descent on the theory's loss with ridge $\eta$ = {eta} on V and decay $\lambda$ = {decay} of W, until time {horizon} of "
    "the hidden layer, by when they generalise; {seeds} seeds.",
)
TIMES = jd.grid(Stages, horizon=24.0)
CAPTION = "Times at which the three stages end against the {}: median and central 90% of the runs; dotted: median of the flow."

CLAIMS = (
    STUDY.claim(
        id="li2.stage3_flow",
        title="How far networks are from the flow with a fitted top layer",
        statement="In the theory's Stage III the hidden layer W moves with the top layer V at its ridge solution on the "
        "features of each moment, the slaved flow. Measured: how far networks that train both layers, and whose V even starts "
        "at that solution, depart from this flow, over how far they move, at equal rates of both layers and with V up to 16 "
        "times as fast; for comparison, how far they depart from the flow of both layers.",
        judge=judge_slaved,
        expected="measured",
        rivals={
            "V is at its ridge solution throughout": {EQUAL: 0.0, FASTEST: 0.0},
            "V lags by one over its rate": {POWER: -1.0},
            "nothing moves": jd.off(predicted_weights="start"),
            "V stays at its ridge solution on the first features": jd.swap(predicted_weights="fixed"),
        },
        recorded={
            "distance from the slaved flow over the network's own change, equal rates, mean": (0.357, 0.5647, 0.772),
            "the same where the top layer is fastest, mean": (0.135, 0.2738, 0.413),
            "power of the ratio of rates in this distance, mean": (-0.411, -0.2684, -0.125),
            "distance from the flow of both layers over the network's own change, equal rates, mean": (0.00403, 0.007531, 0.0111),
        },
        plot=plot,
        caption="Left: distance of the network's hidden weights from three flows over how far they move, against the ratio of "
        "rates of both layers (median and central 90% of the runs). Right: curves of one run at equal rates (dotted: the flow "
        "of both layers), each over its maximum.",
    ),
    STUDY.claim(
        id="li2.stage_times",
        talks=("grokking:li2-figure-stages",),
        title="When the three stages end, by the ridge on the top layer",
        statement="Where both layers train at one rate, do networks pass through the theory's stages? Stage I would end with V "
        "at its ridge solution on the features of the start: how near does it come, and when is it nearest? Stage II ends when "
        r"the loss on the pairs held out falls below half of that of guessing, Stage III when the signal $\|G_F\|$ falls below "
        r"a quarter of its peak, both for good. In which order do they end, and with what powers of the ridge $\eta$? A Stage I "
        r"of rate $\eta$ would end at the power -1. Networks that do not reach a stage at all $\eta$ are left out of its power.",
        quick=TIMES.replace(eta=[0.2, 0.4, 0.8]),
        seeds=40,
        paper_seeds=40,
        paper=TIMES.replace(eta=[0.2, 0.4, 0.8], lr=[0.01, 0.005]),
        judge=judge_times,
        expected="measured",
        rivals={
            "V converges on frozen features first": {NEAR: 0.0} | powers("eta", -1.0),
            "the ridge plays no part": jd.off(powers("eta", 0.0, 0.0, 0.0)),
            "the stages end in their order": {ORDER: 1.0},
            "all times are inverse in the ridge": powers("eta", -1.0, -1.0, -1.0),
        },
        recorded={
            "smallest distance of V from its ridge solution on the first features, over its norm, mean": (0.784, 0.8144, 0.845),
            "share of networks whose stages end in the order I, II, III": (0.0904, 0.225, 0.459),
            "power of eta in the time of Stage I, mean": (-0.253, -0.2145, -0.176),
            "power of eta in the time of Stage II, mean": (-0.233, -0.1295, -0.0255),
            "power of eta in the time of Stage III, mean": (0.138, 0.1938, 0.25),
        },
        plot=plot_times,
        caption=CAPTION.format("ridge"),
    ),
    STUDY.claim(
        id="li2.stage_times_decay",
        title="When the first two stages end, by decay of the hidden layer",
        statement="How do the times at which Stages I and II end (V nearest to its ridge solution on the features of the "
        r"start; the loss on the pairs held out below half of that of guessing for good) depend on the decay $\lambda$ of the "
        r"hidden layer, which the theory leaves out of these stages? Networks that do not reach a stage at all $\lambda$ are "
        "left out of its power.",
        quick=TIMES.replace(decay=[0.1, 0.2, 0.4]),
        seeds=40,
        paper_seeds=40,
        paper=TIMES.replace(decay=[0.1, 0.2, 0.4], lr=[0.01, 0.005]),
        judge=functools.partial(judge_times, field="decay", stages=STAGES[:2]),
        expected="measured",
        rivals={
            "V converges on frozen features first": {NEAR: 0.0},
            "the decay plays no part": jd.off(powers("decay", 0.0, 0.0)),
            "times are inverse in the decay": powers("decay", -1.0, -1.0),
            "times are proportional to the decay": powers("decay", 1.0, 1.0),
        },
        recorded={
            "smallest distance of V from its ridge solution on the first features, over its norm, mean": (0.782, 0.8076, 0.833),
            "power of decay in the time of Stage I, mean": (0.0352, 0.07582, 0.116),
            "power of decay in the time of Stage II, mean": (-0.563, -0.3979, -0.233),
        },
        plot=functools.partial(plot_times, field="decay"),
        caption=CAPTION.format("decay of the hidden layer"),
    ),
)
