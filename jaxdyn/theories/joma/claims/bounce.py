r"""Claims on the entropy bounce of Fig. 4: attention first concentrates on the large components, then spreads again.

Training and the exact solution differ by the step size, so the judge tests the order in the step size and the limit.
"""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting, stats
from jaxdyn.theories.joma import published
from jaxdyn.theories.joma.extrapolation import extrapolated, halving_steps
from jaxdyn.theories.joma.trials.bounce import DRAWS, LOGITS, Bounce, trial

__all__ = ["CLAIMS", "draw_snapshots", "judge"]

ROUNDING = 1e-15  # an error below it has no order in the step size


def _error(ds: xr.Dataset) -> xr.DataArray:
    """Root mean square over time of the error of the entropy."""
    return np.maximum(np.sqrt(((ds.measured_entropy - ds.predicted_entropy) ** 2).mean("time")), ROUNDING)


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """Entropy along training against the exact solution, its fall and rise, its limit, and the numbers of the figure."""
    ds = halving_steps(ds)
    fine = ds.isel(eta=-1, drop=True)
    law = fine.sel(logits="law") if "logits" in fine.dims else fine
    limit = extrapolated(ds.measured_entropy)
    lowest = limit.min("time", skipna=False)
    return [
        jd.within("order of the step error", stats.loglog_slope(ds.eta, _error(ds), "eta"), 0.85, 1.15),
        jd.at_most("entropy extrapolated to step 0, error at any time", abs(limit - fine.predicted_entropy), 1e-5),
        jd.at_least("fall of the entropy", limit.isel(time=0) - lowest, 0.1),
        jd.at_least("rise to the limit", law.measured_limit - lowest, 0.01),
        jd.at_most("limit against the entropy of softmax(mu^2/T)", abs(law.measured_limit - law.predicted_limit), 1e-6),
        *_figure_checks(ds),
    ]


def _figure_checks(ds: xr.Dataset) -> list[jd.Check]:
    """The published recursion's numbers, where its draw, logits and step size are among the runs."""
    wanted = [("draw", "fig4"), ("logits", "law"), ("eta", 0.02)]
    if not all(name in ds.dims and value in ds[name].values for name, value in wanted):
        return []
    one = ds.sel(dict(wanted))
    low, at, last = published.FIG4.values()
    return [
        jd.within("Fig. 4: entropy at the minimum", one.lowest, low - 1e-3, low + 1e-3),
        jd.within("Fig. 4: step of the minimum", one.lowest_at, at - 1, at + 1),
        jd.within("Fig. 4: entropy at step 4999", one["last"], last - 1e-3, last + 1e-3),
    ]


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Entropy of random draws and of the figure's own, with the theory; and v of the figure's draw coloured by time."""
    left, right = fig.subplots(1, 2)
    one = ds.isel(eta=-1, logits=0)
    for draw, color in (("random", "control"), ("fig4", "measured")):
        if draw in one.draw.values:
            part = one.sel(draw=draw)
            rows = part.measured_entropy.transpose("seed", "time").values[: None if draw == "random" else 1]
            left.plot(part.t.values.reshape(-1, part.sizes["time"])[0], rows.T, color=plotting.COLORS[color], linewidth=1)
            left.plot([], [], color=plotting.COLORS[color], label=f"trained, {draw}")
    exact = one.isel(draw=-1, seed=0)
    forms = {"derived": ("exact solution", "theory"), "printed": ("exact solution, printed logits", "failed")}
    for form, (label, color) in forms.items() if "form" in one.dims else (("", ("exact solution", "theory")),):
        entropy = exact.predicted_entropy.sel(form=form) if form else exact.predicted_entropy
        left.plot(exact.t, entropy, "--", color=plotting.COLORS[color], label=f"{label}, {exact.draw.item()}")
    left.set(xlabel="steps × step size", ylabel="entropy of the attention (nats)")
    left.set_ylim(top=1.6 * float(one.measured_entropy.max()))  # room for the legend
    left.legend(loc="upper right")
    draw_snapshots(right, exact)


def draw_snapshots(ax: Axes, run: xr.Dataset) -> None:
    """Snapshots of v over the tokens, coloured by time, with mu dashed."""
    token, t = np.arange(run.sizes["token"]), np.linspace(0, float(run.t[-1]), run.sizes["snapshot"])
    plotting.lines(ax, token, run.v.transpose("snapshot", "token").values, color_by=t, name="steps × step size", linewidth=0.8)
    ax.plot(token, run.critical_point, "--", color=plotting.COLORS["theory"], label=r"$\mu$")
    ax.set(xlabel="token", ylabel="$v$")
    ax.legend()


BOUNCE = jd.Study(
    trial=trial,
    quick=jd.grid(Bounce, draw=list(DRAWS), logits=list(LOGITS), eta=[0.02, 0.01, 0.005]),
    seeds=8,
    paper_seeds=64,
    source="arXiv:2310.00535, section 4 and Fig. 4",
    judge=judge,
    form="derived",
    plot=plot,
    caption=r"Left: entropy of attention along training at the smallest step size, one line per random critical point and one for "
    r"that of the figure, with its exact solution (dashed; red: with the printed logits $v^2/2$). Right: $v$ of the figure's run "
    r"over the tokens at equally spaced times, coloured by time, and $\mu$ (dashed).",
)

bounce = BOUNCE.claim(
    id="joma.bounce",
    statement=r"One node near a critical point $\mu$, with attention normalised over all tokens: the entropy of attention first "
    r"falls, then rises to that of $\mathrm{softmax}(\mu^2/T)$, along the exact solution of $\dot v = (\mu - "
    r"v)\circ\mathrm{softmax}(v^2/T)$, for logits set to $v^2/T$ and for trained logits.",
    controls={"linear dynamics": {"drive": "linear"}, "all mu equal": {"spread": 0.0}},
)

CLAIMS = (
    bounce,
    bounce.as_printed(
        id="joma.fig4_as_printed",
        statement=r"The bounce of Fig. 4 has the logits of the text, $v^2/2$. (Its numbers belong to $v^2/3$, $T = 3$ in the "
        r"derived form.)",
        form="printed",
    ),
)
