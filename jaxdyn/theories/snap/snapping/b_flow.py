r"""Theorem 4 in the network's own gradient flow: its law holds while it is linear, and a decoder's memory takes its logarithm away.

The theorem's B grows like :math:`\frac2q \ln u` once the argument :math:`q\rho\eta_Z\Gamma/C_0` of its logarithm is above 1, u the
decoder's clock. In the flow the class's own past then holds the attention back (``dynamics/growth.py``): B grows like
:math:`\frac2q\frac{K-1}{M-1}\ln u`. For K much smaller than M attention hardly moves, however long the network is trained.
"""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.snap.snapping.common_pair import SETTLED, SLOWER
from jaxdyn.theories.snap.snapping.common_pair_flow import QUICK, SOURCE, TESTED, PairFlow, trial

LATE = 5.0  # scale s from where the law's growth in ln u is its limit, to 2%
STILL = 0.01  # of 2, the largest L1 distance: movement of frozen attention while time doubles
LEARNING = 0.01  # the decoder's error while it still learns


def allowed(ds: xr.Dataset) -> xr.DataArray:
    """The two small quantities in which the law is of first order: the other classes' share, and the overlap times M."""
    return ds.share + ds.size * ds.assumed_overlap / (ds.number * (ds.number - 1))


def growth(ds: xr.Dataset, b: xr.DataArray) -> xr.DataArray:
    """Growth of B in ln u between saves."""
    return b.diff("time") / np.log(ds.u).diff("time")


def judge_growth(ds: xr.Dataset) -> list[jd.Check]:
    """B at every save, and its growth in the clock late."""
    late = (ds.scale > LATE).isel(time=slice(0, -1))
    slopes = xr.Dataset({f"{side}_slope": growth(ds, ds[f"{side}_b"]) for side in ("predicted", "measured")}, attrs=ds.attrs)
    slope = jd.relative_error(slopes, "slope").where(late.values)
    return [
        jd.at_most("B against the law, relative, over (K - 1)/(M - 1) + M f_c^2", jd.relative_error(ds, "b") / allowed(ds), 0.5),
        jd.at_most("dB/dln u late in training, against the law's, relative", slope, 0.15),
    ]


def judge_memory(ds: xr.Dataset) -> list[jd.Check]:
    """As :func:`judge_growth`, and where the logarithm of Theorem 4 counts its law is far above B."""
    over = (ds.instant / ds.measured_b).where(ds.argument > 10)
    return [*judge_growth(ds), jd.at_least("Theorem 4's law over B where its logarithm's argument is above 10", over, 1.9)]


def judge_linear(ds: xr.Dataset) -> list[jd.Check]:
    """Theorem 4's law at every save, and that its logarithm is linear where the law is right."""
    overlap = ds.size * ds.assumed_overlap / (ds.number * (ds.number - 1))
    memory = ds.argument / (3 * ds.share)  # (q/6) s^2, which the memory takes at first
    error = jd.relative_error(ds, "b")
    return [
        jd.at_most("B against Theorem 4's law, relative, over M f_c^2 + (q/6) s^2", error / (overlap + memory), 0.5),
        jd.at_most("x over (K - 1)/(M - 1), where B is within 5% of the law", (ds.argument / ds.share).where(error < 0.05), 1.0),
    ]


def judge_frozen(ds: xr.Dataset) -> list[jd.Check]:
    """After the transition: movement as predicted, falling, small; at its beginning the decoder's error is not yet small."""
    start = ds.eta_y_t.isel(time=slice(0, -1)).rename(time="double")
    late = start > ds.settles
    move = ds.measured_move.where(late)
    return [
        jd.gate("the decoder's error after the transition", ds.error.where(ds.eta_y_t > ds.settles).max("time"), at_least=LEARNING),
        jd.at_most("movement while t doubles, against the law", jd.relative_error(ds, "move").where(late), 0.15),
        jd.at_most("movement over that of the doubling before", move / move.shift(double=1), 1.0),
        jd.at_most("movement while t doubles", move, STILL),
    ]


def effect(ds: xr.Dataset, b: xr.DataArray) -> xr.DataArray:
    """What twice the decoder's rate adds to B at the same time, for every ratio of which the double is there."""
    pairs = [(r, s) for r in ds.ratio.values for s in ds.ratio.values if np.isclose(s, 2 * r)]
    if not pairs:
        raise jd.Inconclusive("a ratio and its double are needed")
    slow, fast = (b.sel(ratio=list(side)).drop_vars("ratio") for side in zip(*pairs, strict=True))
    return fast.shift(time=-1) - slow  # saves double: at the same t, eta_Y t of the faster one is a save later


def judge_effect(ds: xr.Dataset) -> list[jd.Check]:
    """The effect of a larger eta_Y: of the law's sign and size before the transition; below 0 and of its size after it."""
    both = xr.Dataset({f"{side}_effect": effect(ds, ds[f"{side}_b"]) for side in ("predicted", "measured")}, attrs=ds.attrs)
    first = ds.sortby("ratio").isel(ratio=0, drop=True)
    early, late = first.eta_y_t < np.exp(-2) * first.settles / SETTLED, first.eta_y_t > first.settles
    agree = np.sign(both.measured_effect) * np.sign(both.predicted_effect)
    error = jd.relative_error(both, "effect")
    return [
        jd.at_least("sign of the effect on B early in training, agreement", agree.where(early), 1.0),
        jd.at_most("size of the early effect against the law, relative", error.where(early), 0.1),
        jd.at_most("effect after the transition, over B", (both.measured_effect / first.measured_b).where(late), SLOWER),
        jd.at_most("size of the late effect against the law, relative", error.where(late), 0.15),
    ]


NOTHING_MOVES = jd.swap(predicted_b=0.0, predicted_move=0.0)  # the attention stays where it starts
PRINTED = jd.swap(predicted_b="instant", predicted_move="instant_move")
# A row of Z sees its class all the time: rho = 1, as printed.
EVERY_STEP = jd.swap(predicted_b=lambda ds: ds.instant * np.log1p(ds.number * ds.argument) / np.log1p(ds.argument))
# The decoder is trained from the start, so that a larger eta_Y lowers B at every time.
TRAINED_DECODER = jd.swap(predicted_b=lambda ds: ds.linear * (ds.u.isel(time=-1) / ds.u) ** 2)
BOTH_RATES = jd.initial("ratio", "measured_b")  # eta_Z doubles with eta_Y: the flow at an unchanged ratio
# In place of the flow, attention driven by a decoder that has learned from the attention of the moment alone.
WITHOUT_MEMORY = jd.swap(measured_b="instant", measured_move="instant_move")


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """All runs on the law's axes and Theorem 4 for each M, and B along time where attention learns fast."""
    # all runs, in the law's units
    left, right = fig.subplots(1, 2)
    part = _form(ds, "memory")
    unit = 2 * part.linear / part.scale**2  # (K - 1)/(M - 1)
    ratios = [float(r) for r in np.atleast_1d(ds.ratio.values)] if "ratio" in ds.coords else [float("nan")]
    for ratio, color in zip(ratios, plotting.CYCLE, strict=False):
        here = (part.assign(unit=unit).sel(ratio=ratio) if "ratio" in ds.dims else part.assign(unit=unit)).expand_dims("run")
        runs = here.stack(every=["run", *(d for d in here.status.dims if d != "run")])
        for i in range(runs.sizes["every"]):
            run, label = runs.isel(every=i), rf"flow, $\eta_Y/\eta_Z$ = {ratio:g}" if i == 0 else None
            left.semilogx(run.scale, run.measured_b / run.unit, color=color, linewidth=2, alpha=0.5, label=label)
    # Theorem 4 for each size of the vocabulary, and one run along time
    first = plotting.first_run(part.assign(unit=unit), "spare")
    for i in range(first.sizes.get("spare", 1)):
        run = first.isel(spare=i) if "spare" in first.dims else first
        label = "Theorem 4, each M" if i == 0 else None
        left.semilogx(run.scale, run.instant / run.unit, ":", color=plotting.COLORS["control"], label=label)
    run = first.isel(spare=0) if "spare" in first.dims else first
    left.semilogx(run.scale, run.predicted_b / run.unit, "--", color=plotting.COLORS["theory"], label="law with memory")
    left.set(xlabel=r"$s = u\,f_c\sqrt{\eta_Z/\eta_Y}$", ylabel=r"$B\,(M-1)/(K-1)$", xlim=(0.05, None), ylim=(0, 4))
    right.semilogx(run.eta_y_t, run.measured_b, color=plotting.COLORS["measured"], linewidth=3, alpha=0.6, label="flow")
    right.semilogx(run.eta_y_t, run.predicted_b, "--", color=plotting.COLORS["theory"], label="law with memory")
    right.semilogx(run.eta_y_t, run.instant, ":", color=plotting.COLORS["control"], label="Theorem 4")
    right.set(xlabel=r"$\eta_Y t$", ylabel="B")
    left.legend()
    right.legend()


def _form(ds: xr.Dataset, form: str) -> xr.Dataset:
    return ds.sel(form=form) if "form" in ds.dims else ds


GRID = jd.grid(
    PairFlow,
    ratio=[1e-4, 1e-3, 2e-3, 1e-2, 0.1, 1.0, 10.0, 100.0],
    odds=[0.005, 0.01, 0.02, 0.05],
    per_query=[1.0, 2.0, 4.0],
    spare=[0, 36, 108],
)
study = jd.Study(
    trial=trial,
    quick=QUICK,
    paper=GRID,
    source=SOURCE,
    tested=TESTED,
    evidence="flow",
    # nothing is random, so seeds confirm nothing; the bounds hold at odds .03 and .04, 18 and 108 spare tokens, K_m = 4 too
    bounds=jd.tuned(on="0:1", confirmed_on="61000000:61000001"),
    form="memory",
    plot=plot,
    caption="Left: B of all runs in units of $(K-1)/(M-1)$ (for $K_m$ classes per query, $4(K-1)/(q(M-1))$) over $s$, a "
    r"colour for each $\eta_Y/\eta_Z$, with the law (dashed, one class per query) and Theorem 4's for each M (dotted). Right: "
    r"B along $\eta_Y t$ in the network's flow, by the law with memory and by Theorem 4 at $\rho = 1/K$; one run at the "
    r"smallest $\eta_Y/\eta_Z$.",
)
RARE = {"odds": (0.005, 0.05)}  # of the common token's probability over the distinct one's
SIZES = {"classes": (4, 4), "spare": (0, 108)}  # M of 13 to 121
CROWD = {"a common token as probable as the distinct one": {"odds": 1.0}}

memory = study.claim(
    id="snap.B_memory",
    talks=("training:snap-theorem-4", "training:snap-scanning", "training:snap-snapping"),
    title="A decoder's memory of past attention sets how far attention grows",
    statement="In the network's gradient flow with one rare common token (at most .05 times as frequent as a distinct one), "
    "one distinct token per class and $K_m$ of the $K$ classes per query, the distinct token's logit is $B = "
    r"\frac{4\varepsilon}{q}D(s\sqrt{q/4})$ with $q = 2(1+K_m)$, $\varepsilon = \frac{K-1}{M-1}$, $s = u "
    r"f_c(0)\sqrt{\frac{M-1}{M}\eta_Z/\eta_Y}$, $M$ the size of the vocabulary, $f_c$ the common token's share of normalised "
    "attention, $u$ the decoder's clock and $D$ Dawson's function integrated: at all times, without a fit, within half of "
    r"$\varepsilon + M f_c^2$, relative. Late ($s > 5$) it grows by $\frac2q\varepsilon$ in $\ln u$ within 15%, not by Theorem "
    r"4's $\frac2q$: where the $x$ of that law's $\frac1q\ln(1 + x)$ is above 10, the law is at least 1.9 times $B$. For "
    r"$\varepsilon \le \frac14$ and $M f_c^2 \le .3$.",
    judge=judge_memory,
    holds={**RARE, **SIZES},
    controls={**CROWD, "a decoder that knows the attention of the moment alone": WITHOUT_MEMORY},
    rivals={"nothing moves": jd.off(NOTHING_MOVES), "Theorem 4's law": PRINTED},
)

CLAIMS = (
    memory,
    study.claim(
        id="snap.B_law_beyond",
        talks=("training:snap-theorem-4",),
        title="Theorem 4's logarithmic growth at any ratio of learning rates",
        statement="In the network's gradient flow with one rare common token and one distinct token per class, the distinct "
        r"token's logit $B$ follows Theorem 4's law $\frac1q\ln(1 + q\rho\eta_Z\Gamma/C_0)$ at $\rho = 1/K$ (letters "
        r"of `snap.B_law`) at any $\eta_Y/\eta_Z$, also beyond its assumption $\eta_Y \gg \eta_Z$, within half of "
        r"$\frac{K-1}{M-1} + M f_c^2$, relative, with $M$ tokens of the vocabulary and $f_c$ the common token's "
        "share of normalised attention.",
        judge=judge_growth,
        expected="refuted",
        form="instant",
        counterpart="memory",
        rivals={},
    ),
    study.claim(
        id="snap.B_law_flow",
        talks=("training:snap-theorem-4",),
        title="Theorem 4's growth law holds in its linear beginning",
        statement="In the network's gradient flow with one rare common token (at most .05 times as frequent as a distinct "
        r"one) and one distinct token for each of $K \ge 4$ classes, the distinct token's logit $B$ follows Theorem 4's law "
        r"$\frac1q\ln(1 + x)$, $x = q\rho\eta_Z\Gamma/C_0$, at $\rho = 1/K$ (letters of `snap.B_law`) within half of $M f_c^2 "
        r"+ \frac q6 s^2$, relative: overlap and memory, with $M$ tokens of the vocabulary, $f_c$ the common token's share of "
        r"normalised attention, $s = u f_c\sqrt{\frac{M-1}{M}\eta_Z/\eta_Y}$ and $u$ the decoder's clock. Where it is within "
        r"5%, $x$ is at most $\frac{K-1}{M-1}$, for $K$ well below $M$ ($\frac{K-1}{M-1} \le \frac14$): what holds is the "
        r"linear beginning, $B \approx \rho\eta_Z\Gamma/C_0$.",
        quick=QUICK.replace(ratio=[0.1, 10.0, 100.0]),
        paper=GRID.replace(ratio=[0.1, 1.0, 10.0, 100.0]),
        judge=judge_linear,
        form="instant",
        holds={**RARE, "classes": (4, 16)},
        controls={"a decoder that knows the attention of the moment alone": WITHOUT_MEMORY},
        rivals={"nothing moves": jd.off(NOTHING_MOVES), "rho = 1": EVERY_STEP},
    ),
    study.claim(
        id="snap.frozen_flow",
        talks=("training:snap-snapping",),
        title="Attention freezes although it learns faster than the decoder",
        statement="In the network's gradient flow of $K = 4$ classes, with one rare common token (at most .05 times as "
        "frequent as a distinct one), one distinct token per class and $M$ of 13 to 121 tokens in the vocabulary, attention "
        r"freezes after $2K\ln M/\eta_Y$ although it learns much faster than the decoder ($\eta_Y/\eta_Z$ of .002 or less): "
        r"from then on $\|c(2t) - c(t)\|_1$, the movement of attention while time doubles, is at most .01, does not rise, and "
        "is within 15% that of the law with the decoder's memory (`snap.B_memory`).",
        quick=jd.grid(PairFlow, ratio=[1e-3, 2e-3], odds=[0.02, 0.05], per_query=[1.0, 2.0], spare=[0, 36]),
        paper=GRID.replace(ratio=[1e-4, 1e-3, 2e-3]),
        judge=judge_frozen,
        holds={**RARE, **SIZES, "ratio": (1e-4, 2e-3)},
        controls={
            **CROWD,
            "a decoder that knows the attention of the moment alone": WITHOUT_MEMORY,
            "attention that has hardly moved": {"odds": 0.02, "ratio": [0.1, 0.2]},
        },
        rivals={"nothing moves": jd.off(NOTHING_MOVES), "Theorem 4's law": PRINTED},
    ),
    study.claim(
        id="snap.lr_late_flow",
        talks=("training:snap-rates",),
        title="A faster decoder first speeds attention up, then holds it back, too",
        statement="In the network's gradient flow of $K = 4$ classes, with one rare common token (at most .05 times as "
        "frequent as a distinct one), one distinct token per class and $M$ of 13 to 121 tokens in the vocabulary, at fixed "
        r"$\eta_Z$, twice the decoder's rate ($\eta_Y/\eta_Z$ of .002 instead of .001) makes the distinct token's logit $B$ "
        r"smaller, by 2% or more, after $2K\ln M/\eta_Y$ (of the smaller $\eta_Y$), by what the law with the decoder's memory "
        r"(`snap.B_memory`) says within 15%; until two e-folds before $K\ln M/\eta_Y$ it makes $B$ larger, again as this law "
        "does within 10%.",
        quick=jd.grid(PairFlow, ratio=[1e-3, 2e-3], odds=[0.02, 0.05], per_query=[1.0, 2.0], spare=[0, 36]),
        judge=judge_effect,
        holds={**RARE, **SIZES},
        decides={"first": ("sign of the effect on B early in training, agreement", "a decoder trained from the start")},
        controls={
            "a decoder that knows the attention of the moment alone": WITHOUT_MEMORY,
            "eta_Z grows as well": jd.Control(BOTH_RATES, breaks=r"at fixed $\eta_Z$"),
        },
        rivals={
            "nothing moves": jd.off(NOTHING_MOVES),
            "Theorem 4's law": PRINTED,
            "a decoder trained from the start": TRAINED_DECODER,
        },
    ),
)
