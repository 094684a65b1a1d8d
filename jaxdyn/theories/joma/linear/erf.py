r"""One node with linear activation: the erf law, blow-up, sparsity, the clock of the softmax.

The network and its runs are in ``training.py``, the closed forms in ``dynamics/linear.py``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting, stats
from jaxdyn.theories.joma.linear.training import LEVEL, LinearLayer, trial

Values = Callable[..., xr.DataArray]


def erf_judge(ds: xr.Dataset) -> list[jd.Check]:
    """The erf law along the flow, and along gradient descent with an error of first order in the step."""
    trained = jd.relative_error(ds, "trained_ratio", "token")
    order = stats.loglog_slope(ds.step, trained.isel(checkpoint=-1), "step")
    return [
        jd.at_most("flow: error of v from the erf law", jd.relative_error(ds, "ratio", "token"), 1e-8),
        jd.at_most("descent: error of v from the erf law", trained, 1e-2),
        jd.within("descent: order of the error in the step", order, 0.85, 1.15),
    ]


def flow_judge(ds: xr.Dataset) -> list[jd.Check]:
    """The erf law along the flow, of which the theorem speaks."""
    return [jd.at_most("flow: error of v from the erf law", jd.relative_error(ds, "ratio", "token"), 1e-8)]


def common_ratio(forward: Values, back: Values) -> Callable[[xr.Dataset], xr.Dataset]:
    """The law that forward(v)/Δ is the same for all tokens, applied to the token with the largest |v|; from zero start."""

    def law(name: str) -> Values:
        def values(ds: stats.Labelled) -> xr.DataArray:
            size = np.sqrt((ds.saliency**2).sum("node"))
            return back(size / size.max("token") * forward(np.abs(ds[name]).max("token")))

        return values

    return jd.swap(predicted_ratio=law("measured_ratio"), predicted_trained_ratio=law("measured_trained_ratio"))


LAWS: dict[str, Any] = {
    "no attention: v in proportion to Δ": jd.off(common_ratio(lambda v: v, lambda u: u)),
    "erf(v/2)": common_ratio(lambda v: scipy.special.erf(v / 2), lambda u: 2 * scipy.special.erfinv(u)),
    "law of linear attention": common_ratio(np.arcsinh, np.sinh),
}
NORMALIZER = 2.0  # the constant A of the quick runs
# The blow-up time of zero start, whatever the start.
FROM_ZERO = jd.swap(
    predicted_escape=lambda ds: NORMALIZER * np.sqrt(np.pi / 2) / np.sqrt((ds.saliency**2).sum("node")).max("token")
)


def _derived(ds: xr.Dataset) -> xr.Dataset:
    return ds.sel(form="derived") if "form" in ds.dims else ds


def _first(ds: xr.Dataset) -> xr.Dataset:
    """One cell of the grid with all its seeds."""
    return plotting.first_run(_derived(ds), "seed")


def erf_plot(ds: xr.Dataset, fig: Figure) -> None:
    """All tokens against the law; error of gradient descent against the step."""
    left, right = fig.subplots(1, 2)
    colors = {"printed": "failed", "derived": "measured"}
    for form in [f for f in colors if f in ds.form.values]:
        one = ds.sel(form=form).isel(step=-1)
        plotting.scatter(left, one.predicted_ratio, one.measured_ratio, label=form, color=colors[form])
        error = jd.relative_error(ds.sel(form=form), "trained_ratio", "token").isel(checkpoint=-1).transpose(..., "step")
        plotting.order(right, ds.step, error, 1.0 if form == "derived" else None, label=form, color=colors[form])
    left.set(xlabel=r"$v_l$ by the law from the largest $|v|$", ylabel=r"$v_l$ of the layer under gradient flow")
    right.set(xlabel=r"step $\eta / t^*$", ylabel=r"relative error of $v$ at $0.8\,t^*$ (descent)")


def blow_up_judge(ds: xr.Dataset) -> list[jd.Check]:
    """The time at which the largest |v| reaches 6, the other tokens at that time, and the whole path."""
    limit = np.abs(ds.measured_limit - ds.predicted_limit).max("token")  # at |v| = 6 about 1e-8 of the way is left
    return [
        jd.at_most("time at which max |v| reaches 6", jd.relative_error(ds, "escape"), 1e-6),
        jd.at_most("erf(v/√2) of all tokens at the blow-up", limit, 1e-7),
        jd.at_most("path up to 0.9999 t*", jd.relative_error(ds.isel(time=slice(-1)), "path", "token node"), 1e-7),
    ]


def blow_up_plot(ds: xr.Dataset, fig: Figure) -> None:
    """The path of every token up to the blow-up; limits of erf(v/√2) against Δ/max Δ."""
    left, right = fig.subplots(1, 2)
    one = _first(ds).isel(seed=0, node=0)
    x = np.maximum(1 - one.share.values, 1e-9)
    left.plot(x, one.measured_path, "o", color=plotting.COLORS["measured"], alpha=0.6, markersize=3.5)
    left.plot(x, one.predicted_path, color=plotting.COLORS["theory"], linewidth=1.0)
    left.plot([], [], "o", color=plotting.COLORS["measured"], label="tokens, gradient flow")
    left.plot([], [], color=plotting.COLORS["theory"], label="closed form")
    left.set(xlabel=r"time left, $1 - t/t^*$", ylabel=r"$v_l$", xscale="log")
    left.invert_xaxis()
    plotting.scatter(right, ds.predicted_limit, ds.measured_limit, label="tokens of all runs")
    right.set(
        xlabel=r"predicted $\mathrm{erf}(v_l/\sqrt{2})$ at $t^*$", ylabel=rf"$\mathrm{{erf}}(v_l/\sqrt{{2}})$ at max|v| = {LEVEL:g}"
    )


def sparse_judge(ds: xr.Dataset) -> list[jd.Check]:
    """Entropy of softmax(z) does not rise, follows the closed form, and ends near zero."""
    uniform = np.log(ds.sizes["token"])
    return [
        jd.at_most("largest rise of the entropy between save times", ds.measured_entropy.diff("time"), 1e-9),
        jd.at_most("entropy against the closed form up to 0.9999 t*", jd.relative_error(ds.isel(time=slice(-1)), "entropy"), 1e-7),
        jd.at_most("share of the uniform entropy left at max |v| = 6", ds.measured_entropy.isel(time=-1) / uniform, 1e-2),
    ]


def sparse_plot(ds: xr.Dataset, fig: Figure) -> None:
    """Entropy of attention on the way to the blow-up."""
    ax, one = fig.subplots(), _first(ds)
    left = 1 - one.share.mean("seed").values[:-1]
    plotting.band(ax, left, one.measured_entropy.isel(time=slice(-1)), "gradient flow, 90% of runs")
    plotting.band(ax, left, one.predicted_entropy.isel(time=slice(-1)), "closed form", "theory", 0.0, linestyle="--")
    ax.set(xlabel=r"time left, $1 - t/t^*$", ylabel="entropy of softmax(z) / nat", xscale="log")
    ax.invert_xaxis()


def clock_judge(ds: xr.Dataset) -> list[jd.Check]:
    """The erf law under a common normaliser and uniform b̄, once the weights have grown enough to distinguish it."""
    return [
        jd.gate("largest |v| reached", np.abs(ds.measured_ratio).max(("token", "time")), at_least=1.5),
        jd.at_most("error of v from the erf law", jd.relative_error(ds, "ratio", "token"), 1e-8),
    ]


def clock_plot(ds: xr.Dataset, fig: Figure) -> None:
    """Tokens against the law, and the clock: erf of the largest token over time."""
    left, right = fig.subplots(1, 2)
    plotting.scatter(left, _derived(ds).predicted_ratio, ds.measured_ratio, label="tokens of all runs")
    left.set(xlabel=r"$v_l$ by the law from the largest $|v|$", ylabel=r"$v_l$ of the layer")
    one = _first(ds)
    progress = scipy.special.erf(np.abs(one.measured_ratio).max("token") / 2**0.5).isel(time=slice(-1))
    x = one.share.mean("seed").values[:-1]
    plotting.lines(right, x, progress.values)
    right.plot(x, x, "--", color=plotting.COLORS["theory"], label="constant A")
    right.plot([], [], color=plotting.COLORS["measured"], label="common normaliser A(t)")
    right.set(xlabel=r"$t/t^*$ of constant A", ylabel=r"$\mathrm{erf}(v/\sqrt{2})$ of the largest $|v|$")


SLOWER = {"attention learns half as fast": jd.Control({"ratio": 0.5}, breaks="equal rates")}
FOLLOWING = {"gradients follow the weights (κ = 0.3 max‖Δ‖)": {"feedback": 0.3}}
BREACHES: dict[str, Any] = {
    **FOLLOWING,
    "tanh in place of the linear activation": {"phi": "tanh"},
    **SLOWER,
    "attention learns 1.5 times as fast": jd.Control(
        {"ratio": 1.5, "horizon": 0.7}, why="Faster attention blows up earlier, so its run has to end earlier."
    ),
    "no attention": {"attention": "none"},
}
STEPS = [4e-3, 2e-3, 1e-3]  # of gradient descent, in units of t*
ONE = jd.grid(LinearLayer, normalizer=NORMALIZER)
PAPER = jd.grid(LinearLayer, hidden=1, tokens=[10, 20], samples=64, normalizer=[0.5, 1.0, 3.0])
SOURCE = "arXiv:2310.00535, Theorem 2"
STUDY = jd.Study(
    trial=trial,
    evidence="flow",
    bounds="derived: the solver's tolerance, a relative 1e-11 a step",
    quick=ONE,
    paper=PAPER,
    seeds=4,
    paper_seeds=64,
    tested="A layer with "
    "{attention} "
    "attention and "
    "one linear node "
    "under upper "
    "gradients that "
    "are drawn once "
    "and stay; "
    "{tokens} tokens, "
    "{samples} "
    "samples. "
    "Gradient flow "
    "from zero until "
    "the largest "
    "weight is 6; "
    "seeds: {seeds}.",
    source=SOURCE,
    form="derived",
)

erf_law = STUDY.claim(
    id="joma.erf",
    bounds="derived: the solver's tolerance of 1e-11 a step, and Euler's error at steps of at most .4% of the time",
    talks=("training:joma-theorem-2",),
    title="The weights of all tokens grow by one law, an error function",
    statement="For one linear node with exp attention of one query over orthonormal embeddings and stationary upper "
    r"gradients $g$, whose weights and logits start at zero and learn at equal rates, $\mathrm{erf}(v_l/\sqrt{2})/\Delta_l$ "
    r"is the same for all tokens $l$ ($v_l$: weight, $\Delta_l = E[g x_l]$: saliency): to $10^{-8}$ along gradient flow, and "
    "along gradient descent, for 80% of the time to the blow-up, up to an error of first order in the step size, to 1% for "
    "steps of at most .4% of that time.",
    decides={"all tokens": ("flow: error of v from the erf law", "softmax-like attention with non-uniform b̄")},
    tested="A layer with {attention} attention and one linear node under upper gradients that are drawn once and stay; "
    "{tokens} tokens, {samples} samples. Gradient flow from zero until the largest weight is 6, and gradient descent "
    "at steps of {step} of the time to the blow-up, until 80% of it has passed; seeds: {seeds}.",
    quick=ONE.replace(step=STEPS),
    paper=PAPER.replace(step=STEPS),
    judge=erf_judge,
    controls={
        "softmax-like attention with non-uniform b̄": jd.Control(
            {"attention": "shared", "tilt": 1.0, "normalizer": 1.0},
            why="This attention alone has a mean b̄ that can be non-uniform, and a normaliser of its own in place of a constant.",
        ),
        **BREACHES,
    },
    rivals=LAWS,
    plot=erf_plot,
    caption=r"Left: $v_l$ of the tokens under gradient flow against the value that the law gives from the token with the largest "
    r"$|v|$, with $\mathrm{erf}(v/\sqrt 2)$ (derived) and $\mathrm{erf}(v/2)$ (printed); one point per token, time and run. "
    r"Right: relative error of the law under gradient descent at $0.8\,t^*$ against the step size; medians over the runs, bars "
    r"their full range.",
)

CLAIMS = (
    erf_law,
    dataclasses.replace(
        dataclasses.replace(erf_law, judge=flow_judge).as_printed(
            id="joma.erf_as_printed",
            talks=("training:joma-theorem-2",),
            title="The talks' law for the weights of all tokens, erf(v/2)",
            statement="For one linear node with exp attention of one query over orthonormal embeddings and stationary upper "
            r"gradients $g$, whose weights and logits start at zero and learn at equal rates, $\mathrm{erf}(v_l/2)/\Delta_l$ is "
            r"the same for all tokens $l$ ($v_l$: weight, $\Delta_l = E[g x_l]$: saliency).",
            source=f"{SOURCE}, as shown in the authors' talks",
            form="printed",
            printed=r"talk training, Theorem 2: $\frac{\text{erf}(v_l(t)/2)}{\Delta_{lm}} = "
            r"\frac{\text{erf}(v_{l'}(t)/2)}{\Delta_{l'm}}$",
        ),
        excused={
            "neighbours: ratio": "The statement speaks of equal rates; where logits learn half as fast the printed law is right."
        },
    ),
    STUDY.claim(
        id="joma.blowup",
        bounds="derived: the solver's tolerance of 1e-11 a step, and erfc(6/sqrt 2), left of the way at a weight of 6",
        talks=("training:joma-blowup", "training:joma-linear-equation", "training:joma-folding"),
        title="When exp attention blows up, and where the other tokens stop",
        statement="For one linear node with exp attention of one query over orthonormal embeddings and stationary upper "
        r"gradients, under gradient flow at equal rates of weights and logits, $\mathrm{erf}(w_l/\sqrt{2}) = "
        r"\mathrm{erf}(w_l(0)/\sqrt{2}) + \sqrt{2/\pi}\,\rho_l t$ with $w_l = v_l\,\mathrm{sign}\,\Delta_l$, $\rho_l = "
        r"|\Delta_l|\, e^{z_l(0) - v_l(0)^2/2}/A$ ($v_l$: weight, $z_l$: logit, $\Delta_l$: saliency, $A$: constant of the "
        r"attention). So one token diverges at $t^* = \min_l \sqrt{\pi/2}\,\mathrm{erfc}(w_l(0)/\sqrt{2})/\rho_l$, and the "
        "others stop at finite limits.",
        tested="A layer with {attention} attention and one linear node under upper gradients that are drawn once and stay; "
        "{tokens} tokens, {samples} samples. Gradient flow until the largest weight is 6, from weights and logits of "
        "size {start_v} and {start_z} at the start; seeds: {seeds}.",
        source=f"{SOURCE}, solved for v; the general start with z(0) free is ours",
        quick=ONE.replace(start_v=[0.0, 0.5], start_z=[0.0, 0.5]),
        paper=PAPER.replace(start_v=[0.0, 0.5], start_z=[0.0, 0.5]),
        judge=blow_up_judge,
        controls=BREACHES,
        rivals={"v keeps the speed of its start": jd.off(predicted_path="unattended"), "blow-up time of zero start": FROM_ZERO},
        plot=blow_up_plot,
        caption=r"Left: $v_l$ of the tokens of one run against the time left to the blow-up: gradient flow (points) and closed "
        r"form (lines). Right: $\mathrm{erf}(v_l/\sqrt 2)$ when the largest $|v|$ reaches 6, against its predicted limit; one "
        r"point per token and run.",
    ),
    STUDY.claim(
        id="joma.sparse_linear",
        bounds="derived: the solver's tolerance of 1e-11 a step, and the closed form unless saliencies agree to 1e-6",
        talks=("training:joma-sparser",),
        title="With a linear node, attention becomes ever sparser",
        statement="For one linear node with exp attention of one query over orthonormal embeddings and stationary upper "
        "gradients, whose weights and logits start at zero and learn at equal rates, the entropy of attention, "
        r"$\mathrm{softmax}(z)$, follows a closed form and falls from each recorded time to the next; when the largest weight "
        "reaches 6, less than 1% of the uniform entropy is left.",
        source="arXiv:2310.00535, consequence of Theorem 2 (contrast to Theorem 4)",
        judge=sparse_judge,
        controls={
            "nonlinear dynamics: gradients follow the weights": jd.Control(
                {"feedback": 0.3, "horizon": 3.0},
                why="Gradients that follow the weights prevent the blow-up, and attention spreads again only after its time.",
            ),
            "no attention": {"attention": "none"},
            **SLOWER,
        },
        rivals={"attention stays uniform": jd.off(predicted_entropy="initial_entropy")},
        plot=sparse_plot,
        caption=r"Entropy of attention against the time left to the blow-up: gradient flow (solid line, median over the runs; "
        r"band, central 90%) and closed form (dashed, median).",
    ),
    STUDY.claim(
        id="joma.softmax_clock",
        talks=("training:joma-theorem-2",),
        title="Under a common softmax normaliser the weights keep their law",
        evidence="reduced",
        statement="In the reduced dynamics of one linear node under softmax attention with a normaliser $A(t)$ that the "
        r"samples share and a uniform mean $\bar b$, $\dot v_l = \Delta_l \exp(\frac{1}{2}(v_l^2 - \|v\|^2 \bar "
        r"b_l))/A(t)$, started at zero, $\mathrm{erf}(v_l/\sqrt{2})/\Delta_l$ is the same for all tokens $l$, as with "
        r"exp attention ($v_l$: weight, $\Delta_l$: saliency).",
        decides={"all tokens": ("error of v from the erf law", "non-uniform b̄")},
        tested="Reduced dynamics: a layer with one linear node under upper gradients that are drawn once and stay, attention "
        "with a normaliser common to all samples; {tokens} tokens, {samples} samples. Flow from zero for up to the "
        "blow-up time of exp attention; seeds: {seeds}.",
        source="arXiv:2310.00535, Theorems 1 and 2 (softmax attention)",
        quick=jd.grid(LinearLayer, attention="shared"),
        paper=jd.grid(LinearLayer, hidden=1, tokens=[10, 20], samples=64, attention="shared"),
        judge=clock_judge,
        controls={
            "non-uniform b̄": {"tilt": 1.0},
            "softmax over each sample (b̄ moves, and the factorisation fails)": {"attention": "softmax"},
            **FOLLOWING,
            "attention learns half as fast": jd.Control({"ratio": 0.5}, breaks="softmax attention"),
        },
        rivals=LAWS,
        plot=clock_plot,
        caption=r"Left: $v_l$ of the tokens against the value that the erf law gives from the token with the largest $|v|$; one "
        r"point per token, time and run. Right: $\mathrm{erf}(v/\sqrt 2)$ of that token against time in units of the blow-up time "
        r"$t^*$ of a constant normaliser, one line per run; dashed: constant normaliser.",
    ),
)
