"""The claim on traces whose first tokens are replaced by codes."""

from __future__ import annotations

import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.assort.trials.hybrid import Hybrid, trial

__all__ = ["CLAIMS", "judge_hybrid"]

REPLACED = [0.0, 3.0, 4.0, 10.0, 16.0, 20.0, 21.0, 40.0]


def judge_hybrid(ds: xr.Dataset) -> list[jd.Check]:
    """Lengths, numbers of codes, and traces that were opened again."""
    jd.need(ds, replaced=(0.0, 3.0, 4.0, 40.0))
    wrong = (ds.measured_trace != ds.predicted_trace).sum("place") + abs(ds.measured_size - ds.predicted_size)
    return [
        jd.at_most("tokens of a sequence: absolute error", abs(ds.measured_length - ds.predicted_length), 0),
        jd.at_most("codes in a sequence: absolute error", abs(ds.measured_used - ds.predicted_used), 0),
        jd.at_most("tokens of an opened trace that are wrong, missing or too many", wrong, 0),
    ]


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Lengths over the number of tokens to replace."""
    ax = fig.subplots()
    over = [d for d in ds.measured_length.dims if d != "replaced"]
    ax.plot(ds.replaced, ds.measured_length.mean(over), "o", color=plotting.COLORS["measured"], label="sequences")
    ax.plot(ds.replaced, ds.predicted_length.mean(over), "--", color=plotting.COLORS["theory"], label="formula")
    ax.plot(ds.replaced, ds.fraction_length.mean(over), ":", color=plotting.COLORS["control"], label="$m/r$ codes")
    ax.set(xlabel="tokens to replace $m$", ylabel="tokens before the solution")
    ax.legend()


STUDY = jd.Study(
    trial=trial,
    quick=jd.grid(Hybrid, replaced=REPLACED),
    paper=jd.grid(Hybrid, replaced=REPLACED, problems=256),
    seeds=4,
    paper_seeds=16,
    evidence="algebra",
    bounds="derived",
    source="arXiv:2502.03275, section 3.2; the numbers of codes and tokens are derived",
)

CLAIMS = (
    STUDY.claim(
        id="assort.hybrid",
        statement=r"If the first $m$ of $t$ trace tokens give way to codes of $r$ tokens each between two delimiters, there are "
        r"$k = \lfloor\min(m, t)/r\rfloor$ codes and $2 + k + t - rk$ tokens, and with the codes' texts the trace is restored "
        "token by token, also where $m$ is no multiple of $r$ or above $t$. (Logs of searches in binary trees, $t = 21$, $r = 4$, "
        "$m$ from 0 to 40; no training.)",
        judge=judge_hybrid,
        controls={"texts of other codes": jd.swap(measured_trace="other")},
        rivals={
            "nothing is replaced": jd.swap(predicted_length="plain_length", predicted_used=0.0),
            "$m/r$ codes for any $m$": jd.swap(predicted_length="fraction_length", predicted_used="fraction_used"),
        },
        plot=plot,
        caption="Tokens between prompt and solution over the number of trace tokens to replace: sequences, the formula, and $m/r$ "
        "codes for any $m$.",
    ),
)
