r"""SGD with fresh prompts: it follows the equations of two blocks, and the trained layer errs on other prompts as predicted.

The layer is trained in all entries of its matrices, on prompts sampled anew at every step. Along training both blocks are compared
with the theory's equations from the same start. The layer that is tested has the mean weights of the second half of the records. It
meets prompts of four laws, of which the theory's errors are those of :math:`P = \Gamma^{-1}`, the limit of gradient flow: that of
training; one whose inputs have the same eigenvalues in reverse order; one whose tasks have the covariance
:math:`\Omega \propto \Lambda`, of mean 1; one whose examples' labels have noise of variance 1.

Cost: about 30 s of CPU for 80 runs of 600 to 3000 steps, each on 64 new prompts: at two step sizes, and long, so that the bias of
the steps' noise can be taken out of the errors on other laws.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import optax
import xarray as xr
from jaxtyping import Array, Float, PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import linalg, plotting, stats, train
from jaxdyn.data import prompts
from jaxdyn.engine.claims.observables import Named
from jaxdyn.theories.icl import dynamics, model

LAWS = ("training", "inputs", "tasks", "noise")
LENGTHS = (5, 20, 40)
TESTS = 4096  # prompts of every law


@jd.setting
class Sgd:
    """A layer, its training, and its test.

    Args:
        start: as in ``starts.first_weights``, with c = 0.
        attention: of training and test.
        lr: step size.
        span: time from one record to the next, at least ``lr``.
        size: of U at the start.
        first: largest eigenvalue of the inputs' covariance.
        ratio: of each eigenvalue to the one before.
        tails: of the tests' inputs, as in ``prompts.draw``.
        length: N.
        inputs: d.
        batch: prompts per step.
        records: after the start.
        dtype: of training.
    """

    start: jd.Code = jd.code(*model.STARTS)
    attention: jd.Code = jd.code("linear", "softmax")
    lr: jd.Swept = jd.field(0.01, above=0)
    span: jd.Swept = 0.3
    size: jd.Swept = jd.field(0.5, above=0)
    first: jd.Swept = jd.field(2.0, above=0)
    ratio: jd.Swept = jd.field(0.6, above=0, at_most=1)
    tails: jd.Swept = jd.field(0.0, at_least=0, at_most=1)
    length: int = jd.field(20, at_least=1)
    inputs: int = jd.field(3, at_least=2)
    batch: int = jd.field(64, at_least=1)
    records: int = jd.field(20, at_least=1)
    dtype: str = "float32"

    def __post_init__(self) -> None:
        jd.require(self, self.lr <= self.span, "lr is at most span", "lr", "span")


def trained(
    s: Sgd, start: model.Params, root: Float[Array, "d d"], key: PRNGKeyArray
) -> tuple[model.Params, model.Params, Float[Array, " T"]]:
    """The weights at every record, their mean over the second half, and the times."""

    def batch(step: Array) -> prompts.Prompts:
        return prompts.draw(jax.random.fold_in(key, step), s.batch, s.length, root)

    tx = optax.sgd(s.lr.astype(s.dtype))
    step = train.make_step(lambda p, b: model.batch_loss(p, b, s.attention == "softmax"), tx, batch)
    every = jnp.round(s.span / s.lr).astype(jnp.int32)
    first = train.init(tx, jax.tree.map(lambda x: x.astype(s.dtype), start))
    _, path = train.record(step, first, lambda state: state.params, samples=s.records, every=every)
    mean = jax.tree.map(lambda x: jnp.mean(x[(s.records + 1) // 2 :], 0), path)
    return path, mean, (every * s.lr * jnp.arange(s.records + 1)).astype(jnp.float64)


def tests(s: Sgd, vectors: Array, values: Array) -> dict[str, tuple[Array, Array, float]]:
    """Roots of the covariances of inputs and of tasks, and the noise, of every law."""
    d = s.inputs
    root, turned = vectors * jnp.sqrt(values), vectors * jnp.sqrt(values[::-1])
    task, eye = vectors * jnp.sqrt(values / jnp.mean(values)), jnp.eye(d, dtype=jnp.float64)
    return {"training": (root, eye, 0.0), "inputs": (turned, eye, 0.0), "tasks": (root, task, 0.0), "noise": (root, eye, 1.0)}


def table(rows: dict[str, Array]) -> Named:
    """Errors by law and length."""
    return jd.named(jnp.stack([rows[law] for law in LAWS]).astype(jnp.float64), "law shown")


def tested(s: Sgd, layer: model.Params, key: PRNGKeyArray, root: Array, task: Array, noise: float) -> Float[Array, " M"]:
    """Errors of a layer on prompts of one law, by length."""
    root, task = (x.astype(s.dtype) for x in (root, task))
    sample = prompts.draw(key, TESTS, max(LENGTHS), root, task=task, noise=noise, tails=s.tails.astype(s.dtype))
    return model.risks(layer, sample, jnp.asarray(LENGTHS), s.attention == "softmax")


def trial(s: Sgd, key: PRNGKeyArray) -> jd.Observables:
    """Both blocks along training, the entries that the theory leaves at zero, and errors on prompts of every law."""
    k_basis, k_start, k_data, k_test = jax.random.split(key, 4)
    d, vectors = s.inputs, model.basis(k_basis, s.inputs)
    # the trained layer
    values = model.spectrum(s.first, s.ratio, d)
    lam = (vectors * values) @ vectors.T
    start = model.first_weights(s.start, k_start, d, d, s.size, 0.0)
    path, mean, ts = trained(s, start, (vectors * jnp.sqrt(values)).astype(s.dtype), k_data)
    blocks, rest = model.blocks(path.pv, path.kq)
    # the equations of two blocks, for prompts of this length and for endless ones
    gamma = dynamics.gamma(lam, s.length)
    first = model.blocks(start.pv, start.kq)[0]
    theory = dynamics.solve(first, lam, s.length, ts)
    long = dynamics.solve(first, lam, 1e12, ts)

    def strength(u: Array, block: Array) -> Array:
        return u * jnp.einsum("ij,tji->t", gamma, block) / d

    # errors of the trained layer and of the theory's limits on prompts of every law
    limit = linalg.inv(gamma)
    losses = jax.vmap(lambda p: model.population_loss(jax.tree.map(lambda x: x.astype(jnp.float64), p), lam, s.length))(path)
    exact, risk, endless, at_training = {}, {}, {}, {}
    for i, (law, (root, task, noise)) in enumerate(tests(s, vectors, values).items()):
        risk[law] = tested(s, mean, jax.random.fold_in(k_test, i), root, task, noise)
        laws = root @ root.T, task @ task.T, noise**2
        exact[law], endless[law] = (
            jnp.stack([dynamics.risk(p, laws[0], m, laws[1], laws[2]) for m in LENGTHS]) for p in (limit, linalg.inv(lam))
        )
        at_training[law] = jnp.full(len(LENGTHS), dynamics.risk(limit, laws[0], s.length, laws[1], laws[2]))

    blind = jnp.stack([jnp.sum((r @ r.T) * (t @ t.T)) for r, t, _ in tests(s, vectors, values).values()])
    wide = jnp.float64
    return jd.observables(
        predicted={
            "u": jd.named(theory.ys.u, "record"),
            "strength": jd.named(strength(theory.ys.u, theory.ys.block), "record"),
            "risk": table(exact),
        },
        measured={
            "u": jd.named(blocks.u.astype(wide), "record"),
            "strength": jd.named(strength(blocks.u.astype(wide), blocks.block.astype(wide)), "record"),
            "risk": table(risk),
        },
        recorded={
            "rest": jd.named(rest.astype(wide), "record"),
            "t": jd.named(ts, "record"),
            "loss": jd.named(losses, "record"),
            "u_long": jd.named(long.ys.u, "record"),
            "strength_long": jd.named(strength(long.ys.u, long.ys.block), "record"),
            "endless": table(endless),
            "blind": jd.named(jnp.broadcast_to(blind[:, None], (len(LAWS), len(LENGTHS))), "law shown"),
            "one_length": table(at_training),
            "one_law": jd.named(jnp.broadcast_to(exact["training"], (len(LAWS), len(LENGTHS))), "law shown"),
        },
        status=jnp.maximum(train.finite_status(path), theory.status),
        coords={"law": LAWS, "shown": LENGTHS},
    )


READ = [1, 2, 4, 8, 20]  # records that are judged: while both blocks move, and at the end


def limit(ds: xr.Dataset, name: str) -> xr.DataArray:
    """A measurement extrapolated from the two smallest step sizes to none, over the prediction."""
    jd.need(ds, lr=2)
    ds = ds.sortby("lr")
    ends = ds[f"measured_{name}"] / ds[f"predicted_{name}"]
    ratio: xr.DataArray = stats.richardson(ends.isel(lr=1, drop=True), ends.isel(lr=0, drop=True))
    return ratio


def judge_path(ds: xr.Dataset) -> list[jd.Check]:
    """Both blocks in the limit of small steps, and the entries that the theory leaves at zero."""
    ratios = [limit(ds, name).isel(record=READ) for name in ("u", "strength")]
    rest = ds.sortby("lr").rest.isel(lr=0).isel(record=READ)
    return [
        jd.mean_within("u over its equation's, extrapolated to small steps", ratios[0], over="seed", low=0.9, high=1.1),
        jd.mean_within("strength of uU over its equation's, extrapolated", ratios[1], over="seed", low=0.9, high=1.1),
        jd.mean_within("other entries at the smallest step size, root mean square", rest, over="seed", high=0.02),
    ]


def judge_lengths(ds: xr.Dataset) -> list[jd.Check]:
    """Errors on prompts of the law of training, by their length."""
    ratio = limit(ds, "risk").sel(law="training")
    return [jd.mean_within("error over its prediction, by length", ratio, over="seed", low=0.85, high=1.15)]


def judge_shift(ds: xr.Dataset) -> list[jd.Check]:
    """Errors on prompts of the other laws, by law and length."""
    ratio = limit(ds, "risk").sel(law=["inputs", "tasks", "noise"])
    return [jd.mean_within("error over its prediction, by law and length", ratio, over="seed", low=0.85, high=1.15)]


# Nothing moves, and all labels are taken for zero.
STILL = jd.initial("record", "predicted_u", "predicted_strength", predicted_risk="blind")
# Both blocks are where they end from the first step on.
OVER = jd.swap(
    predicted_u=lambda ds: ds.predicted_u.isel(record=-1) + 0 * ds.predicted_u,
    predicted_strength=lambda ds: ds.predicted_strength.isel(record=-1) + 0 * ds.predicted_strength,
)


def plot_path(ds: xr.Dataset, fig: Figure) -> None:
    """U and the other entries along training, for all step sizes."""
    left, right = fig.subplots(1, 2)
    time = ds.t.values.reshape(-1, ds.sizes["record"])[0]
    for lr, color in zip(np.atleast_1d(ds.lr.values), ("measured", "third", "fourth"), strict=False):
        part = ds.sel(lr=lr) if "lr" in ds.dims else ds
        plotting.band(left, time, part.measured_u.transpose(..., "record"), f"SGD, step {lr:g}", color)
        plotting.band(right, time, part.rest.transpose(..., "record"), f"SGD, step {lr:g}", color)
    plotting.band(left, time, part.predicted_u.transpose(..., "record"), "two blocks", "theory")
    left.set(xlabel="t", ylabel="u")
    right.set(xlabel="t", ylabel="other entries, rms")


def make_plot_risk(laws: tuple[str, ...]) -> Callable[[xr.Dataset, Figure], None]:
    """Figure of the errors by length, one panel per law."""

    def plot(ds: xr.Dataset, fig: Figure) -> None:
        axes = np.atleast_1d(fig.subplots(1, len(laws)))
        for ax, law in zip(axes, laws, strict=True):
            part = ds.sel(law=law)
            plotting.band(ax, part.shown.values, part.measured_risk.transpose(..., "shown"), "SGD", "measured")
            plotting.band(ax, part.shown.values, part.predicted_risk.transpose(..., "shown"), "theory", "theory")
            ax.set(xlabel="examples shown", ylabel="mean squared error", xscale="log", title=law)

    return plot


STUDY = jd.Study(
    trial=trial,
    quick=jd.grid(Sgd, lr=[0.01, 0.005], span=0.75),
    seeds=16,
    paper_seeds=32,
    evidence="network",
    source="arXiv:2306.09927, Theorem 4.1 and section 4.3; step sizes and bounds ours",
)
SOFTMAX = {"softmax attention": {"attention": "softmax"}}

CLAIMS = (
    STUDY.claim(
        id="icl.sgd",
        title="SGD on fresh prompts follows the two equations of the gradient flow",
        statement="When linear attention on three inputs is trained by SGD on 64 fresh prompts of $N = 20$ examples per step, "
        "from a start in which only the corner $u$ of the value matrix and the positive semidefinite block $U$ of the key-query "
        r"matrix differ from zero, both of norm .5, $u$ and the strength $\mathrm{tr}(\Gamma uU)/3$, extrapolated to small steps, "
        "follow the two equations of the gradient flow on average over runs, within 10% at five times from $t = .3$ to 6. The "
        r"root mean square of the entries that the equations leave at zero is below .02 at a step size of .005. Here $\Gamma = (1 "
        r"+ \tfrac1N)\Lambda + \tfrac{\mathrm{tr}\Lambda}{N} I$ with the inputs' covariance $\Lambda$.",
        tested="One layer of linear attention with merged keys and queries, SGD in all entries of its two matrices on "
        "{batch} new prompts per step, step sizes {lr}, to $t = 6$; {inputs} inputs whose covariance has random "
        "eigenvectors, the largest eigenvalue {first} and each further one {ratio} times the one before; {length} examples "
        "per prompt; {seeds} seeds.",
        quick=jd.grid(Sgd, lr=[0.01, 0.005]),
        max_seeds=64,
        bounds=jd.tuned(on="0:10", confirmed_on="51000000:51000016"),
        judge=judge_path,
        controls={"a start with all entries": jd.Control({"start": "dense"}, every_seed=True)},
        rivals={
            "nothing moves": jd.off(STILL),
            r"endless prompts, $\Gamma = \Lambda$": jd.swap(predicted_u="u_long", predicted_strength="strength_long"),
            "training is over at once": OVER,
        },
        plot=plot_path,
        caption="u, and the root mean square of the entries that the theory leaves at zero, along SGD for two step sizes: "
        "median and central 90% of the runs; dashed line of theory: the two equations.",
    ),
    STUDY.claim(
        id="icl.test_length",
        title="The error of in-context regression on longer and shorter prompts",
        statement="Let linear attention with merged keys and queries be trained by SGD as in `icl.sgd`, on prompts of $N = 20$ "
        "examples, but to $t = 15$, and its weights be averaged over the second half of the time. Extrapolated to small steps, "
        r"its mean squared error on new prompts of $M = 5$, 20 and 40 examples is $\mathrm{tr}\Lambda - "
        r"2\,\mathrm{tr}(\Lambda^2\Gamma^{-1}) + \mathrm{tr}(\Gamma_M\Lambda\Gamma^{-1}\Lambda\Gamma^{-1})$ within 15%, on "
        r"average over runs, with the inputs' covariance $\Lambda$, $\Gamma_M = (1 + \tfrac1M)\Lambda + "
        r"\tfrac{\mathrm{tr}\Lambda}{M} I$ and $\Gamma = \Gamma_N$.",
        tested="One layer of linear attention with merged keys and queries, SGD in all entries of its two matrices on "
        "{batch} new prompts per step, step sizes {lr}, to $t = 15$; {inputs} inputs whose covariance has random "
        "eigenvectors, the largest eigenvalue {first} and each further one {ratio} times the one before; {length} examples "
        "per prompt; {seeds} seeds.",
        bounds=jd.tuned(on="0:8", confirmed_on="7200000:7200008"),
        judge=judge_lengths,
        controls={**SOFTMAX, "errors of the lengths exchanged": jd.rolled(measured_risk="shown")},
        rivals={
            "every label is taken for zero": jd.off(STILL),
            r"the error of training's length, $\Gamma_M = \Gamma$": jd.swap(predicted_risk="one_length"),
            r"the layer has $\Gamma = \Lambda$": jd.swap(predicted_risk="endless"),
        },
        plot=make_plot_risk(("training",)),
        caption="Mean squared error of trained layers on new prompts by their length, and the theory's: median and central "
        "90% of the runs.",
    ),
    STUDY.claim(
        id="icl.cov_shift",
        title="The error of in-context regression on prompts of another law",
        statement="Let linear attention with merged keys and queries be trained by SGD as in `icl.sgd`, on prompts of $N = 20$ "
        "examples, but to $t = 15$, and its weights be averaged over the second half of the time. Extrapolated to small steps, "
        "its mean squared error on prompts of another law and of $M = 5$, 20 and 40 examples is that of the predictor "
        r"$\Gamma^{-1}$, where gradient flow ends, within 15% on average over runs, for each law and length: for inputs whose "
        r"covariance has the eigenvalues of training's $\Lambda$ in reverse order, for tasks of covariance $\propto \Lambda$, and "
        r"for noise of variance 1 on the labels of the examples, against the label without noise. Here $\Gamma = (1 + "
        r"\tfrac1N)\Lambda + \tfrac{\mathrm{tr}\Lambda}{N} I$.",
        tested="One layer of linear attention with merged keys and queries, SGD in all entries of its two matrices on "
        "{batch} new prompts per step, step sizes {lr}, to $t = 15$; {inputs} inputs whose covariance has random "
        "eigenvectors, the largest eigenvalue {first} and each further one {ratio} times the one before; {length} examples "
        "per prompt; {seeds} seeds.",
        bounds=jd.tuned(on="0:16", confirmed_on="63000000:63000016"),
        max_seeds=64,
        judge=judge_shift,
        controls={**SOFTMAX, "errors of the laws exchanged": jd.rolled(measured_risk="law")},
        rivals={
            "every label is taken for zero": jd.off(STILL),
            "the error is that under the law of training": jd.swap(predicted_risk="one_law"),
            r"the layer has $\Gamma = \Lambda$": jd.swap(predicted_risk="endless"),
        },
        plot=make_plot_risk(("inputs", "tasks", "noise")),
        caption="Mean squared error of trained layers on prompts of other laws by their length, and the theory's: median and "
        "central 90% of the runs.",
    ),
)
