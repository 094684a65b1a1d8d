"""Claim on heads as mean shift: attention draws every cloud of tokens together, by a factor that can be said beforehand."""

from __future__ import annotations

import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.dejavu.trials.shift import Clouds, trial

__all__ = ["CLAIMS", "judge"]


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """Mean factors of deviations and of the mean over their predictions."""
    deviation, mean = (ds[f"measured_{name}"] / ds[f"predicted_{name}"] for name in ("deviation", "mean"))
    return [
        jd.mean_within("factor of deviations over its prediction", deviation, over="seed", low=0.9, high=1.1),
        jd.mean_within("factor of the cloud's mean over its prediction", mean, over="seed", low=0.99, high=1.01),
    ]


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Tokens before and after one step; factors against their predictions."""
    left, right = fig.subplots(1, 2)
    run = plotting.first_run(ds)
    for name, color in (("before", "third"), ("after", "measured")):
        left.plot(*run[name].transpose("entry", "token").values, ".", markersize=3, color=plotting.COLORS[color], label=name)
    left.set(xlabel="first entry", ylabel="second entry")
    left.legend()
    plotting.scatter(right, ds.predicted_deviation, ds.measured_deviation, label="runs", color="measured")
    right.set(xlabel=r"$\beta\sigma^2$", ylabel="factor of deviations")


CLAIMS = (
    jd.Study(
        trial=trial,
        quick=jd.grid(Clouds, beta=[0.7, 1.0, 1.4]),
        paper=jd.grid(Clouds, beta=[0.7, 1.0, 1.4], sigma=[0.15, 0.25], tokens=2048),
        seeds=48,
        paper_seeds=128,
        evidence="algebra",
        source="derived; the picture: arXiv:2310.17157, section 3.3",
    ).claim(
        id="dejavu.mean_shift",
        statement=r"One step of softmax attention with $K = Q = V$ and the inverse temperature $\beta \in \{0.7, 1, 1.4\}$ on two "
        r"Gaussian clouds of 512 tokens, of standard deviation $\sigma = 0.25$ and centres 6 apart, shrinks deviations from a "
        r"cloud's mean by $\beta\sigma^2$ and moves the mean to $(1 + \beta\sigma^2)\mu$: on average over draws within 10% and 1%. "
        "(Attention on random tokens; no training. At a high temperature the two clouds merge instead.)",
        bounds=jd.looked(at="0:32", confirmed="51000000:51000048"),
        judge=judge,
        controls={"a high temperature: the clouds merge": {"beta": 0.01}, "wide clouds that overlap": {"sigma": 1.5}},
        rivals={
            "nothing moves": jd.swap(predicted_deviation=1.0, predicted_mean=1.0),
            "every token moves to its cloud's mean": jd.swap(predicted_deviation=1e-9, predicted_mean=1.0),
        },
        plot=plot,
        caption="Left: tokens of one run before and after one step of attention. Right: factor of the deviations from a cloud's "
        "mean against its prediction, one point a run.",
    ),
)
