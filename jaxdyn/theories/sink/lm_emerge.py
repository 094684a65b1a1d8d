"""Sinks in a small language model: the sink metric along training."""

from __future__ import annotations

import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.sink.language import BEGINS, EPSILON, Language, trial

LARGEST = {name: f"largest weight of a head on the first token, begins {name}" for name in BEGINS}  # readings


def judge(ds: xr.Dataset) -> list[jd.Check | jd.Reading]:
    """Largest weight of any head on the first token at the end, mean over runs, by how sequences begin."""
    jd.need(ds, begins=BEGINS)
    end = ds.isel(step=-1)
    largest = end.measured_alpha.max(["layer", "head"])
    return [
        jd.gate("validation loss at the end over that at the start", end.validation / ds.validation.isel(step=0), at_most=0.6),
        *(jd.mean_reading(LARGEST[name], largest.sel(begins=name), over="seed") for name in BEGINS),
    ]


# Heads have sinks however sequences begin, as in large models.
SINKS = dict.fromkeys(LARGEST.values(), EPSILON)


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Largest weight of a head on the first token along training."""
    ax = fig.subplots()
    for name, color in zip(BEGINS, ("measured", "theory"), strict=True):
        most = ds.measured_alpha.sel(begins=name).max(["layer", "head"]).transpose(..., "step")
        plotting.band(ax, range(ds.sizes["step"]), most, f"begins {name}", plotting.COLORS[color])
    ax.axhline(EPSILON, linestyle="--", color=plotting.COLORS["control"])
    ax.set(xlabel="record", ylabel="largest weight on the first token")


CLAIMS = (
    jd.Study(
        trial=trial,
        quick=jd.grid(Language, begins=list(BEGINS)),
        paper=jd.grid(Language, begins=list(BEGINS), width=96, hidden=256, layers=3, length=64, batch=16, steps=4000),
        seeds=6,
        paper_seeds=8,
        evidence="network",
        tested="Decoders of width {width} with {layers} layers of {heads} heads and rotary positions, trained by Adam for "
        "{steps} steps on sequences of {length} bytes of the Python manual, cut out anywhere or with a token of their own in the "
        "first place; {seeds} seeds. Uniform attention has a weight of 0.10; a head has a sink if its mean weight on the first "
        "token is above 0.3.",
        source="arXiv:2410.10781, section 3 (metric; models of 60M weights and 5B tokens); the size is ours",
        plot=plot,
        caption="Largest mean weight of a head on the first token along training: median and central 90% of the runs; "
        "dashed: 0.3, from which a head counts as having a sink.",
    ).claim(
        id="sink.lm_emerge",
        title="Does an attention sink emerge in a small language model?",
        statement="Does an attention sink emerge in a small language model? The reading is the largest mean weight of any head on "
        "the first token, mean over runs, where sequences are cut out of the text anywhere and where they begin with a token of "
        "their own. (Both intervals contain 0.10, the weight of uniform attention.)",
        talks=("practical:sink-figure-maps",),
        expected="measured",
        judge=judge,
        rivals={
            "some head has a sink, as in large models": SINKS,
        },
        recorded={
            "largest weight of a head on the first token, begins anywhere": (0.0381, 0.08113, 0.125),
            "largest weight of a head on the first token, begins token": (0.0245, 0.0968, 0.17),
        },
        excused={
            "opponents: nothing": "It says itself that uniform attention, which is that of the start, is not told apart; a sink is."
        },
    ),
)
