"""Claim on the sizes of MobileLLM: weights and bytes of the cache."""

from __future__ import annotations

import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.mobile.trials.counts import Counts, trial

__all__ = ["CLAIMS", "judge"]


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """Counts to the unit, and published ones to a unit of their last digit."""
    published = abs(ds.measured_published - ds.predicted_published) / ds.rounding
    return [
        jd.at_most("weights beside the formula", abs(ds.measured_weights - ds.predicted_weights), 0),
        jd.at_most("bytes of keys and values beside the formula", abs(ds.measured_bytes - ds.predicted_bytes), 0),
        jd.at_most("published counts less ours, in units of their last digit", published, 1),
    ]


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Published weights against counted ones, and bytes of the cache."""
    left, right = fig.subplots(1, 2)
    plotting.scatter(left, ds.predicted_published / 1e6, ds.measured_published / 1e6, label="models", color="measured")
    left.set(xlabel="weights counted, millions", ylabel="weights published, millions")
    run = plotting.first_run(ds)
    for name, label, color in (("measured_bytes", "grouped queries", "measured"), ("every_head", "a key for each", "third")):
        right.plot(range(run.sizes["model"]), run[name] / 2**20, "o", color=plotting.COLORS[color], label=label)
    right.set_xticks(range(run.sizes["model"]), [str(m) for m in run.model.values])
    right.set(ylabel="MiB of keys and values, 2048 tokens")
    right.legend()


CLAIMS = (
    jd.Study(
        trial=trial,
        quick=jd.grid(Counts),
        evidence="numbers",
        bounds="derived",
        source="arXiv:2402.14905, table of architectures; counts of the released models",
    ).claim(
        id="mobile.counts",
        statement=r"The MobileLLM models from 125M to 1.5B, with tied embeddings, have $Vd + L(2d^2 + 2dge + 3df + 2d) + d$ "
        r"weights (124,635,456 for 125M), to the unit, and $2Lge$ numbers of keys and values a token, to the byte. The published "
        "counts agree with these to a unit of their last digit. (Published figures against a count of arrays; no training.)",
        judge=judge,
        controls={"a read-out of its own": {"tied": False}, "a key for each head of queries": {"grouped": False}},
        rivals={
            "embedding and read-out counted apart": jd.swap(predicted_weights="untied", predicted_published="untied"),
            "keys and values for every head": jd.swap(predicted_bytes="every_head"),
        },
        plot=plot,
        caption="Left: published weights of the five models against those counted. Right: bytes of keys and values for 2048 tokens "
        "in bfloat16.",
    ),
)
