r"""What training conserves: row sums of the decoder, sums of attention logits, unreached entries; and one clock.

Letters as in ``model.py``. The flow is in float64, training by mini-batches of sequences in float32.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import optax
import xarray as xr
from jaxtyping import Array, Bool, Float, PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import flow, plotting, stats, train
from jaxdyn.theories.snap import model, tasks

SAMPLES = 6  # records after the start; a multiple of FASTER, so that the flow is recorded at a third of its time
FASTER = 3  # the second flow: learning rates times this number, time over it
RTOL = 1e-11  # two flows with different steps differ by the solver's error, which must stay below the bound
BOUNDS = {"gradient flow": 1e-12, "training, float32": 1e-5}
NAMES = {"rows": "row sums of Y", "logits": "sums of a query's logits", "still": "entries of Z that no sample reaches"}


@jd.setting
class Learning:
    """Transformer and attention learn together from random weights; one row of Z belongs to a token that is never a query."""

    attention: jd.Code = jd.code("softmax", "linear")  # linear: c_l = k_l (1 + z_l), which depends on shifts of the logits
    optimizer: jd.Code = jd.code("descent", "adam")  # of the training in float32
    momentum: jd.Swept = jd.field(0.0, at_least=0, below=1)  # of descent
    weight_decay: jd.Swept = 0.0  # of Y and Z, part of the loss
    ratio: jd.Swept = jd.field(1.0, above=0)  # learning rate of Y over that of Z
    lr: jd.Swept = jd.field(0.1, above=0)  # of Y, in training
    horizon: jd.Swept = jd.field(20.0, above=0)  # time of the flow
    common: jd.Swept = jd.field(0.3, at_least=0, below=1)  # share of the common token in every context
    tokens: int = 20  # M, tokens of the vocabulary
    classes: int = 4  # K, next tokens, each with a law of the context
    distinct: int = 2  # D, tokens that one class alone shows
    queries: int = 2  # R; class n has query n modulo R
    every: int = 20  # steps between records
    batch: int = 8  # sequences of a step
    length: int = 16  # contextual tokens of a sequence
    weights: tuple[float, ...] | None = None  # of the distinct tokens of every class; none: random

    def __post_init__(self) -> None:
        """Refuse vocabularies that are too small."""
        tasks.check(self)


def loss(params: model.Params, batch: model.Task, attention: jd.Code, weight_decay: float | Float[Array, ""]) -> Float[Array, ""]:
    """The network's loss under softmax or linear attention (contexts: laws or frequencies), with weight decay."""
    contexts, query, label, weight = batch
    linear = model.normalized(contexts * (1 + params.z[query])) @ params.y
    of_linear = -jnp.dot(weight, jnp.take_along_axis(jax.nn.log_softmax(linear), label[:, None], 1)[:, 0])
    decay = 0.5 * weight_decay * (jnp.sum(params.y**2) + jnp.sum(params.z**2))
    return jnp.where(attention == "softmax", model.loss(params, batch), of_linear) + decay


def still_entries(s: Learning) -> Bool[np.ndarray, "R M"]:
    """The entries of Z that no sample reaches: a token outside all contexts of the query, or a row that is no query's."""
    reached = np.zeros((s.queries + 1, s.tokens), bool)
    for n in range(s.classes):
        reached[n % s.queries, [0, *range(1 + s.distinct * n, 1 + s.distinct * (n + 1))]] = True
    return ~reached


def descend(s: Learning, start: model.Params, one: model.Task, key: PRNGKeyArray) -> model.Params:
    """Weights along training on mini-batches of sequences, in float32."""
    start, one = jax.tree.map(
        lambda leaf: jnp.asarray(leaf, jnp.float32) if jnp.issubdtype(jnp.result_type(leaf), jnp.floating) else jnp.asarray(leaf),
        (start, one),
    )
    lr, ratio, decay, momentum = (jnp.asarray(v, jnp.float32) for v in (s.lr, s.ratio, s.weight_decay, s.momentum))
    rules = {"descent": optax.trace(momentum), "adam": optax.scale_by_adam()}
    rates = optax.stateless(lambda updates, _: model.Params(-lr * updates.y, -lr / ratio * updates.z))
    tx = optax.chain(train.switched(s.optimizer, rules), rates)

    def batch(step: Array) -> model.Task:
        uniform = jax.random.uniform(jax.random.fold_in(key, step), (s.batch, s.length + 1), jnp.float32)
        row = (s.classes * uniform[:, 0]).astype(jnp.int32)
        ids = jnp.sum(uniform[:, 1:, None] > jnp.cumsum(one.p, 1)[row][:, None, :-1], 2)
        counts = jnp.mean(jax.nn.one_hot(ids, s.tokens, dtype=jnp.float32), 1)
        counts = jnp.where(one.p[row] > 0, counts, 0)  # rounding of the last edge
        return model.Task(counts, one.query[row], one.label[row], jnp.full(s.batch, 1 / s.batch, jnp.float32))

    step = train.make_step(lambda p, b: loss(p, b, s.attention, decay), tx, batch)
    return train.record(step, train.init(tx, start), lambda state: state.params, samples=SAMPLES, every=s.every)[1]


def trial(s: Learning, key: PRNGKeyArray) -> jd.Observables:
    """The conserved sums and entries along the flow and along training; the flow at three times the rates."""
    # the classes and a random start
    k_task, k_start, k_data = jax.random.split(key, 3)
    one = tasks.random_task(k_task, s.tokens, s.classes, s.distinct, s.common, queries=s.queries, weights=s.weights)
    normal = jax.random.normal(k_start, (s.tokens + s.queries + 1, s.tokens), jnp.float64)
    start = model.Params(0.5 * normal[: s.tokens], 0.3 * normal[s.tokens :])
    ts = s.horizon * jnp.linspace(0.0, 1.0, SAMPLES + 1, dtype=jnp.float64)

    # the flow at two speeds, and training
    def run(speed: Array) -> flow.Solution:
        rate = model.Params(speed, speed / s.ratio)
        args = (one, s.attention, s.weight_decay)
        return flow.gradient_flow(loss, start, ts / speed, *args, rate=rate, solver="dopri8", rtol=RTOL, atol=RTOL / 100)

    solutions = jax.vmap(run)(jnp.asarray([1, FASTER], jnp.float64))
    still = np.nonzero(still_entries(s))
    slow, fast = (jax.tree.map(lambda leaf: leaf[i], solutions.ys) for i in range(2))  # noqa: B023
    learned = jax.tree.map(lambda leaf: leaf.astype(jnp.float64), descend(s, start, one, k_data))
    # sums and entries along both, and at their starts
    dims = {"rows": "input", "logits": "query", "still": "entry"}

    def conserved(path: model.Params) -> tuple[Array, Array, Array]:
        return jnp.sum(path.y, -1), jnp.sum(path.z, -1), path.z[..., *still]

    paths = jax.tree.map(lambda *leaves: jnp.stack(leaves), slow, learned)
    at_start, along = conserved(jax.tree.map(lambda leaf: leaf[:, 0], paths)), conserved(paths)
    ends = [jnp.concatenate([state.y[-1], state.z[-1]]) for state in (slow, fast)]
    return jd.observables(
        predicted={n: jd.named(v, f"path {d}") for (n, d), v in zip(dims.items(), at_start, strict=True)}
        | {"faster": jd.named(ends[0], "row token")},
        measured={n: jd.named(v, f"path time {d}") for (n, d), v in zip(dims.items(), along, strict=True)}
        | {"faster": jd.named(ends[1], "row token")},
        recorded={
            "steps": solutions.steps[0],
            "moved": jd.named(jnp.max(jnp.abs(paths.z[:, -1] - start.z), (1, 2)), "path"),
            "start": jd.named(jnp.concatenate([start.y, start.z]), "row token"),
            "sooner": jd.named(jnp.concatenate([part[SAMPLES // FASTER] for part in slow]), "row token"),
        },
        status=jnp.max(solutions.status),
        coords={"time": tuple(i / SAMPLES for i in range(SAMPLES + 1)), "path": tuple(BOUNDS)},
    )


def drift(ds: stats.Labelled, name: str) -> xr.DataArray:
    """Largest change of a conserved quantity at any time over its largest size, of each run."""
    predicted, measured = ds[f"predicted_{name}"], ds[f"measured_{name}"]
    axis = predicted.dims[-1]
    return abs(measured - predicted).max([axis, "time"], skipna=False) / abs(predicted).max(axis, skipna=False)


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """All drifts, along the flow and along training, which move the logits; and the two flows against each other."""
    drifts = {name: drift(ds, name) for name in NAMES}
    checks = [
        jd.at_most(f"{path}: {NAMES[name]}, drift", drifts[name].sel(path=path), bound)
        for path, bound in BOUNDS.items()
        for name in NAMES
    ]
    same = jd.relative_error(ds, "faster", "row token")
    moved = jd.gate("largest change of a logit", ds.moved, at_least=0.1)
    return [moved, *checks, jd.at_most("flow with rates x 3, time / 3: difference", same, 1e-12)]


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Drift of the conserved quantities along flow and training, with the bounds."""
    for ax, (path, bound) in zip(fig.subplots(1, 2), BOUNDS.items(), strict=True):
        for (name, text), color in zip(NAMES.items(), plotting.CYCLE, strict=False):
            predicted, measured = (ds[f"{side}_{name}"].sel(path=path) for side in ("predicted", "measured"))
            axis = str(predicted.dims[-1])
            error = (abs(measured - predicted).max(axis) / abs(predicted).max(axis)).isel(time=slice(1, None))
            plotting.band(ax, error.time, np.maximum(error, 1e-18), text, color)
        ax.axhline(bound, color=plotting.COLORS["failed"], linestyle=":", label="bound")
        ax.set(yscale="log", xlabel="share of the run", ylabel="relative drift (1e-18: none)", title=path)
        ax.legend(loc="center", bbox_to_anchor=(0.5, 0.62 if bound < 1e-9 else 0.45))


CLAIMS = (
    jd.Study(
        trial=trial,
        quick=jd.grid(Learning, momentum=[0.0, 0.9], ratio=0.2),
        paper=jd.grid(
            Learning, momentum=[0.0, 0.9], ratio=[0.2, 1.0, 5.0], tokens=[20, 60], batch=32, length=64, every=60, horizon=60.0
        ),
        seeds=4,
        paper_seeds=64,
        source="derived from the gradient of arXiv:2305.16380, Lemma 1",
    ).claim(
        id="snap.invariants",
        title="Training conserves the row sums of decoder and attention logits",
        statement="Gradient flow, and gradient descent with momentum on mini-batches, conserve every row sum of the decoder "
        r"$Y$ and the sum $\sum_l z_{ml}$ of every query's attention logits, and do not move the entries of $Z$ that no "
        r"sample reaches. In gradient flow, rates $(s\eta_Y, s\eta_Z)$ lead at time $t/s$ to the weights that $(\eta_Y, "
        r"\eta_Z)$ lead to at time $t$ ($s = 3$).",
        tested=r"Random starts; {classes} classes, {queries} queries, {tokens} tokens, $\eta_Y/\eta_Z$ = {ratio}. Gradient "
        "flow in float64 to the time {horizon}; training in float32 at rate {lr} with momentum {momentum}, 6 records, "
        "{every} steps apart, on batches of {batch} sequences of {length} tokens; {seeds} seeds.",
        holds={"every": (1.0, 100.0)},
        judge=judge,
        decides={
            "every row sum": ("training, float32: row sums of Y, drift", "weight decay"),
            "every query": ("training, float32: sums of a query's logits, drift", "weight decay"),
        },
        evidence="network",
        bounds="derived: rounding in float64 along the flow and in float32 along training, and the solver's tolerance",
        rivals={
            "training changes nothing": jd.off(predicted_faster="start"),
            "time counts and rates do not": jd.swap(predicted_faster="sooner"),
        },
        controls={
            "Adam": jd.Control({"optimizer": "adam"}, breaks="gradient descent with momentum"),
            "weight decay": {"weight_decay": 0.01},
            "linear attention (no softmax)": {"attention": "linear"},
        },
        plot=plot,
        caption=r"Relative drift of the row sums of $Y$, of the sums of a query's logits, and of entries of $Z$ that no sample "
        r"reaches, along gradient flow in float64 (left) and training in float32 (right); median and central 90% over runs, "
        r"$10^{-18}$ stands for no drift. Dotted: the bound.",
    ),
)
