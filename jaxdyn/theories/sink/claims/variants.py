"""Claim on the forms of attention with sinks: their identities, at any size of the logits."""

from __future__ import annotations

import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.sink.trials.variants import Variants, trial

__all__ = ["CLAIMS", "judge"]

NAMES = {
    "zero": "zero sink against its formula",
    "bias": "sink with a bias against its formula",
    "faint": "sink at the logit -1000 against the softmax",
    "output": "output of the zero sink against one more key",
}


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """Every form against its formula or its twin, absolutely: weights may be zero."""
    return [
        jd.at_most(f"{text}: largest difference", abs(ds[f"measured_{name}"] - ds[f"predicted_{name}"]), 1e-12)
        for name, text in NAMES.items()
    ]


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Weights of every form against their formulas."""
    axes = fig.subplots(1, 3, sharey=True)
    for ax, name, title in zip(axes, ("zero", "bias", "faint"), ("zero sink", "learned bias", "sink at -1000"), strict=True):
        plotting.scatter(ax, ds[f"predicted_{name}"], ds[f"measured_{name}"], label="weights", color="measured", log=False)
        ax.set(title=title, xlabel="formula", ylabel="weight")


CLAIMS = (
    jd.Study(
        trial=trial,
        quick=jd.grid(Variants, shift=[-900.0, 0.0, 900.0]),
        paper=jd.grid(Variants, shift=[-900.0, 0.0, 900.0], spread=[0.3, 3.0, 10.0], keys=[1, 16, 256]),
        seeds=128,
        paper_seeds=256,
        evidence="algebra",
        bounds="derived",  # rounding errors in double precision
        source="arXiv:2309.17453, section 3.3 (zero sink); the model card of gpt-oss, 2025 (learned bias); the identities: derived",
    ).claim(
        id="sink.softmax_variants",
        statement=r"For 16 random logits $a$ of standard deviation 3, all shifted by $c \in \{-900, 0, 900\}$ together with the "
        r"sink's logit $\beta$, the weights are $e^{a_j} / (e^\beta + \sum_k e^{a_k})$ to $10^{-12}$; those of the zero sink, "
        r"whose logit is 0 and does not shift, are $e^{a_j} / (e^{-c} + \sum_k e^{a_k})$. A sink at $\beta = -1000$ gives the "
        "softmax, and the output of the zero sink is that of the softmax with one more key of logit 0 and value 0. (Identities; "
        "no training.)",
        judge=judge,
        controls={
            "the sink is left out of the maximum": jd.swap(measured_zero="naive"),
            "the extra key has a value": {"value": 1.0},
        },
        rivals={
            "no sink: the softmax": jd.swap(predicted_zero="softmax", predicted_bias="softmax", predicted_output="softmax_output"),
            "1 in every denominator": jd.swap(predicted_bias="off_by_one", predicted_faint="off_by_one"),
        },
        plot=plot,
        caption="Weights of attention with a sink against the formulas at logits that are not shifted; one point a key and run, "
        "all three shifts.",
    ),
)
