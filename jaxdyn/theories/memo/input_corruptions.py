"""Images that are destroyed: networks fit them as well; how long does it take?"""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.memo.model import CONDITIONS
from jaxdyn.theories.memo.training import Memory, trial

__all__ = ["CLAIMS", "judge", "judge_times"]

FITTED = 0.99  # training accuracy: in some runs a label of 300 was left


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """Training accuracy at the end in every condition, and the ratio of steps with random and with true labels."""
    jd.need(ds, condition=CONDITIONS)
    over = [str(d) for d in ds.status.dims if d != "condition"]
    times = np.log(ds.measured_first)
    ratio = times.sel(condition="random labels") - times.sel(condition="true")
    return [
        jd.at_least("training accuracy at the end, every run", ds.measured_right, FITTED),
        jd.mean_within("log of steps with random labels over steps with true ones", ratio, over=over, low=0.5, high=1.6),
    ]


def judge_times(ds: xr.Dataset) -> list[jd.Check]:
    """Steps of each condition of the images over those of true images, labels true in all."""
    jd.need(ds, condition=CONDITIONS)
    over = [str(d) for d in ds.status.dims if d != "condition"]
    times = np.log(ds.measured_first)
    checks = []
    for name in CONDITIONS[2:]:
        ratio = times.sel(condition=name) - times.sel(condition="true")
        checks.append(jd.mean_within(f"log of steps over those of true images, {name}", ratio, over=over, high=0.5))
    return checks


# Nothing is learned.
STILL = jd.swap(measured_right="measured_start", measured_first=1.0)


def without_structure(ds: xr.Dataset) -> xr.DataArray:
    """Times if there is nothing to fit without structure in the images, so that they take to the end of the run."""
    lost = ds.condition.isin(["random pixels", "gaussian", "shuffled pixels"])
    return xr.where(lost, ds.steps.max("step"), ds.measured_first)


UNLEARNABLE = jd.swap(measured_first=without_structure)


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Training accuracy along training by condition."""
    left, right = fig.subplots(1, 2)
    names = [str(v) for v in np.atleast_1d(ds.condition.values)]
    for place, (name, color) in enumerate(zip(names, plotting.CYCLE, strict=False)):
        part = ds.sel(condition=name) if "condition" in ds.dims else ds
        steps = part.steps.values.reshape(-1, ds.sizes["step"])[0]
        plotting.band(left, steps, part.train.transpose(..., "step"), name, color)
        first = part.measured_first.values.ravel()
        right.plot([place] * first.size, first, "o", color=color, alpha=0.5)
    left.set(xlabel="step", ylabel="training accuracy")
    right.set_xticks(range(len(names)), names, rotation=20)
    right.set(ylabel="steps to fit every label")


FULL = {"hidden": 512, "active": 512.0, "images": 1297, "lr": 1e-3, "every": 25.0, "records": 40}
STUDY = jd.Study(
    trial=trial,
    quick=jd.grid(Memory, condition=list(CONDITIONS)),
    paper=jd.grid(Memory, condition=list(CONDITIONS), **FULL),
    seeds=8,
    paper_seeds=8,
    evidence="network",
    source="arXiv:1611.03530, section 2 and Figure 1 (there on CIFAR-10); sizes ours",
    bounds=jd.looked(at="5000000:5000008", confirmed="7000000:7000008"),
    rivals={"nothing is learned": STILL},
    plot=plot,
    caption="Left: training accuracy along training by condition, median and central 90% of the runs. Right: first record with "
    "every "
    "training label right, one point per run.",
)
SETUP = "A perceptron with one hidden layer of 128 ReLUs, trained by Adam for 200 steps on 300 handwritten digits,"

CLAIMS = (
    STUDY.claim(
        id="memo.input_corruptions",
        statement=f"{SETUP} ends with at least 99% of its training labels right if the labels are drawn at random, if the "
        "pixels are shuffled by one permutation or by one an image, and if the images are Gaussian noise; random labels take 1.6 "
        "to 5 times as many steps as true ones, in the geometric mean over runs.",
        judge=judge,
        controls={"conditions exchanged": jd.rolled(measured_first="condition")},
    ),
    STUDY.claim(
        id="memo.times",
        statement="How many steps does a perceptron with one hidden layer of 128 ReLUs (Adam, 300 handwritten digits) need to "
        "fit true "
        "labels of images with shuffled pixels, with pixels shuffled anew in each image, and of Gaussian noise, over those of true "
        "images? About as many: 0.67 to 1.5 times, in the geometric mean over runs.",
        expected="measured",
        judge=judge_times,
        controls={"conditions exchanged": jd.rolled(measured_first="condition")},
        rivals={"what has no structure is not fitted": UNLEARNABLE},
        found={f"log of steps over those of true images, {name}": (-0.4, 0.4) for name in CONDITIONS[2:]},
    ),
)
