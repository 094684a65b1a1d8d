"""Random labels and destroyed images: networks fit them as well; what they know of new images, and how long it takes."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.memo.model import CONDITIONS
from jaxdyn.theories.memo.training import Memory, trial

SHARES = (0.0, 0.2, 0.5, 0.8)

FITTED = 0.99  # training accuracy: in some runs a label of 300 was left
FALL = "fall of test accuracy to the next share of random labels"


def over(ds: xr.Dataset, *but: str) -> list[str]:
    """Axes of the runs."""
    return [str(d) for d in ds.status.dims if d not in but]


def judge_random(ds: xr.Dataset) -> list[jd.Check]:
    """Training and test accuracy at the end."""
    return [
        jd.at_least("training accuracy at the end, every run", ds.measured_right, FITTED),
        jd.mean_within("test accuracy at the end", ds.measured_test, over=over(ds), low=0.06, high=0.14),
    ]


def judge_curve(ds: xr.Dataset) -> list[jd.Check]:
    """Training accuracy, and how much test accuracy falls from one share of random labels to the next."""
    jd.need(ds, corruption=SHARES)
    falls = -ds.measured_test.sortby("corruption").diff("corruption")
    return [
        jd.at_least("training accuracy at the end, every run", ds.measured_right, FITTED),
        jd.mean_within(FALL, falls, over=over(ds, "corruption"), low=0.02),
    ]


def judge_regular(ds: xr.Dataset) -> list[jd.Check]:
    """Training accuracy with every regulariser, and what each changes in test accuracy."""
    jd.need(ds, decay=(0.0, 1.0), noise=(0.0, 0.5))
    plain = ds.measured_test.sel(decay=0.0, noise=0.0, drop=True)
    change = ds.measured_test - plain
    return [
        jd.at_least("training accuracy at the end, every run", ds.measured_right, FITTED),
        jd.mean_within("change of test accuracy", change, over=over(ds, "decay", "noise"), low=-0.03, high=0.03),
    ]


# Nothing is learned.
STILL = {"training accuracy at the end, every run": lambda ds: float(ds.measured_start.min())}


def above_chance(ds: xr.Dataset) -> float:
    """Test accuracy with both regularisers minus chance, mean over runs."""
    return float((ds.measured_test.isel(decay=-1, noise=-1) - ds.chance).mean())


# Regularisers are what makes a network know new images; without any it is at chance.
NEEDED = {"change of test accuracy": above_chance}


# The same, run by run.
UNKNOWN = jd.swap(measured_test=lambda ds: ds.measured_test.where((ds.decay > 0) | (ds.noise > 0), ds.chance))


# A network that fits its training labels is as right on new images.
KNOWS = {"test accuracy at the end": lambda ds: float(ds.measured_right.mean())}


def plot_labels(ds: xr.Dataset, fig: Figure) -> None:
    """Training accuracy along training, and test accuracy at the end."""
    left, right = fig.subplots(1, 2)
    axis = next((a for a in ("corruption", "decay", "condition") if a in ds.dims and ds.sizes[a] > 1), None)
    values = list(ds[axis].values) if axis else [None]
    for place, (value, color) in enumerate(zip(values, plotting.CYCLE, strict=False)):
        part = ds if value is None else ds.sel({axis: value})
        steps = part.steps.values.reshape(-1, ds.sizes["step"])[0]
        name = "runs" if value is None else f"{axis} {value:g}" if isinstance(value, np.floating) else str(value)
        plotting.band(left, steps, part.train.transpose(..., "step"), name, color)
        test = part.measured_test.values.ravel()
        right.plot([place] * test.size, test, "o", color=color, alpha=0.5)
    left.set(xlabel="step", ylabel="training accuracy")
    right.axhline(0.1, linestyle=":", color=plotting.COLORS["control"])
    right.set_xticks(range(len(values)), ["" if v is None else f"{v:g}" if isinstance(v, np.floating) else str(v) for v in values])
    right.set(ylabel="test accuracy", ylim=(0, 1), xlabel=axis or "")


FULL = {"hidden": 512, "active": 512.0, "images": 1297, "lr": 1e-3, "every": 25.0, "records": 40}
LABELS = jd.Study(
    trial=trial,
    quick=jd.grid(Memory, condition="random labels"),
    paper=jd.grid(Memory, condition="random labels", **FULL),
    seeds=8,
    paper_seeds=8,
    evidence="network",
    source="arXiv:1611.03530, sections 2 and 3 (there on CIFAR-10); sizes ours",
    bounds=jd.tuned(on="5000000:5000008", confirmed_on="7000000:7000008"),
    rivals={"nothing is learned": jd.off(STILL)},
    tested="A perceptron with {layers} hidden layer of {hidden} ReLUs, trained by full-batch Adam at the rate {lr} for 200 steps "
    "on {images} handwritten digits; {seeds} seeds. Test images have their true labels.",
    plot=plot_labels,
    caption="Left: training accuracy along training, median and central 90% of the runs. Right: test accuracy at the end, one "
    "point a run (dotted: chance).",
)

NARROW = {"4 hidden units": jd.Control({"active": 4.0}, breaks="training labels right")}


def judge_conditions(ds: xr.Dataset) -> list[jd.Check]:
    """Training accuracy at the end in every condition, and the ratio of steps with random and with true labels."""
    jd.need(ds, condition=CONDITIONS)
    over = [str(d) for d in ds.status.dims if d != "condition"]
    times = np.log(ds.measured_first)
    ratio = times.sel(condition="random labels") - times.sel(condition="true")
    return [
        jd.at_least("training accuracy at the end, every run", ds.measured_right, FITTED),
        jd.mean_within("log of steps with random labels over steps with true ones", ratio, over=over, low=0.6, high=1.5),
    ]


def judge_times(ds: xr.Dataset) -> list[jd.Check | jd.Reading]:
    """Steps of each condition of the images over those of true images, labels true in all; gate: all labels are fitted."""
    jd.need(ds, condition=CONDITIONS)
    over = [str(d) for d in ds.status.dims if d != "condition"]
    times = np.log(ds.measured_first)
    true = times.sel(condition="true", drop=True)
    return [
        jd.gate("training accuracy at the end, every run", ds.measured_right, at_least=FITTED),
        *(
            jd.mean_reading(f"log of steps over those of true images, {name}", times.sel(condition=name) - true, over=over)
            for name in CONDITIONS[2:]
        ),
    ]


def exchanged(ds: xr.Dataset) -> xr.Dataset:
    """A control: steps with random labels are taken for those with true ones, and the other way round."""
    names = ["random labels", "true", *CONDITIONS[2:]]
    steps = ds.measured_first.sel(condition=names).assign_coords(condition=list(CONDITIONS))
    return ds.assign(measured_first=steps)


# Nothing is learned: accuracies stay those of the start, and no condition is faster than another.
STILL_INPUTS = {
    "training accuracy at the end, every run": lambda ds: float(ds.measured_start.min()),
    "log of steps with random labels over steps with true ones": 0.0,
}


def to_the_end(ds: xr.Dataset) -> float:
    """Log of the steps of the whole run over those in which true images are fitted, mean over runs."""
    return float(np.log(ds.steps.max() / ds.measured_first.sel(condition="true")).mean())


def as_random_labels(ds: xr.Dataset) -> float:
    """Log of the steps with random labels over those with true ones, mean over runs."""
    times = np.log(ds.measured_first)
    return float((times.sel(condition="random labels") - times.sel(condition="true")).mean())


# Destroyed images are no easier than random labels.
AS_RANDOM = {f"log of steps over those of true images, {name}": as_random_labels for name in CONDITIONS[2:]}
# What has no structure is not fitted before the run ends.
UNLEARNABLE = {f"log of steps over those of true images, {name}": to_the_end for name in CONDITIONS[2:]}


def plot_conditions(ds: xr.Dataset, fig: Figure) -> None:
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


INPUTS = jd.Study(
    trial=trial,
    quick=jd.grid(Memory, condition=list(CONDITIONS)),
    paper=jd.grid(Memory, condition=list(CONDITIONS), **FULL),
    seeds=16,
    paper_seeds=8,
    evidence="network",
    source="arXiv:1611.03530, section 2 and Figure 1 (there on CIFAR-10); sizes ours",
    bounds=jd.tuned(on="0:16", confirmed_on="70000001:70000017"),
    tested="A perceptron with {layers} hidden layer of {hidden} ReLUs, trained by full-batch Adam at the rate {lr} on {images} "
    "handwritten digits for 200 steps; {seeds} seeds. Steps are counted to the first record, every {every}, with every label "
    "right.",
    plot=plot_conditions,
    caption="Left: training accuracy along training by condition, median and central 90% of the runs. Right: first record with "
    "every training label right, one point per run.",
)


CLAIMS = (
    LABELS.claim(
        id="memo.random_labels",
        talks=("training:memo-table",),
        title="A network fits random labels and knows nothing of new images",
        paper_seeds=24,
        statement="A perceptron with one hidden layer of 128 units ends 200 steps of Adam at rate .003 on 300 digits with random "
        "labels (512 units, 1000 steps at .001 and 1297 digits at the larger size) with at least 99% of these labels right; its "
        "accuracy on the true labels of other digits is, on average over runs, between 6% and 14%, where chance is 10%.",
        seeds=10,
        bounds=jd.tuned(on="7000000:7000008", confirmed_on="7200000:7200010"),
        judge=judge_random,
        controls=NARROW | {"60 images stand twice, with different labels": {"clashing": 0.4}, "true labels": {"condition": "true"}},
        rivals={"nothing is learned": jd.off(STILL), "what fits its labels knows new images": KNOWS},
    ),
    LABELS.claim(
        id="memo.corruption_curve",
        talks=("training:memo-bound",),
        title="The more labels are random, the less a network knows of new images",
        statement="With a share of 0, 20, 50 or 80% of the training labels drawn at random, a perceptron with one hidden layer of "
        "128 units ends 200 steps of Adam at rate .003 on 300 digits (512 units, 1000 steps at .001 and 1297 digits at the larger "
        "size) with at least 99% of its training labels right, whatever the share; its accuracy on the true labels of other "
        "digits falls from each share to the next by more than 2 percentage points, on average over runs.",
        quick=jd.grid(Memory, corruption=list(SHARES)),
        paper=jd.grid(Memory, corruption=list(SHARES), **FULL),
        judge=judge_curve,
        controls=NARROW | {"shares exchanged": jd.rolled(measured_test="corruption")},
        rivals={
            "nothing is learned": jd.off(STILL | {FALL: 0.0}),
            "what fits its labels knows as much of new images": {FALL: 0.0},
        },
    ),
    LABELS.claim(
        id="memo.regularisation",
        talks=("training:memo-regularisation",),
        title="Without regularisation a network knows new images almost as well",
        statement="With decoupled weight decay of 1 (times the rate), with fresh noise of half the pixels' standard deviation on "
        "the images in each step, with both, and with neither, a perceptron with one hidden layer of 128 units has after 200 "
        "steps of Adam at rate .003 on 300 digits (512 units, 1000 steps at .001 and 1297 digits at the larger size) at least 99% "
        "of its training labels right. Its test accuracy with any of these regularisers differs by less than 3 percentage points "
        "from that without, on average over runs.",
        tested="As for memo.random_labels, with true labels, weight decay {decay} and noise of standard deviation {noise} on "
        "pixels of standard deviation 1; {seeds} seeds.",
        quick=jd.grid(Memory, decay=[0.0, 1.0], noise=[0.0, 0.5]),
        paper=jd.grid(Memory, decay=[0.0, 1.0], noise=[0.0, 0.5], **FULL),
        seeds=8,
        bounds=jd.tuned(on="0:8", confirmed_on="70000001:70000009"),
        judge=judge_regular,
        controls=NARROW | {"nothing is known of new images without a regulariser": UNKNOWN},
        rivals={"nothing is learned": jd.off(STILL), "without a regulariser, new images are at chance": NEEDED},
    ),
    INPUTS.claim(
        id="memo.input_corruptions",
        talks=("training:memo-table", "training:memo-figure-1"),
        title="Networks fit random labels and destroyed images as well",
        statement="A perceptron with one hidden layer of 128 units ends 200 steps of Adam at rate .003 on 300 digits (512 units, "
        "1000 steps at .001 and 1297 digits at the larger size) with at least 99% of its training labels right, whether labels "
        "and images are true, the labels are drawn at random, the pixels are shuffled by one permutation or by one per image, or "
        "the images are Gaussian noise. Random labels take 1.8 to 4.5 times as many steps as true ones, in the geometric mean "
        "over runs.",
        judge=judge_conditions,
        controls={"random and true labels exchanged": exchanged, "4 hidden units": {"active": 4.0}},
        rivals={"nothing is learned": jd.off(STILL_INPUTS)},
    ),
    INPUTS.claim(
        id="memo.times",
        talks=("training:memo-figure-1",),
        title="How many steps destroyed images take to fit, relative to true ones",
        statement="How many steps does a perceptron need to fit the true labels of images whose pixels are shuffled by one "
        "permutation, by one per image, or replaced by Gaussian noise, over those of true images?",
        expected="measured",
        judge=judge_times,
        controls={"conditions exchanged": jd.Control(jd.rolled(measured_first="condition"), breaks="shuffled by one permutation")},
        rivals={
            "what has no structure is not fitted": jd.off(UNLEARNABLE),
            "destroyed images take as long as random labels": AS_RANDOM,
        },
        recorded={
            "log of steps over those of true images, shuffled pixels": (-0.159, 0.01161, 0.182),
            "log of steps over those of true images, random pixels": (-0.109, -0.006292, 0.096),
            "log of steps over those of true images, gaussian": (-0.13, -0.008844, 0.113),
        },
    ),
)
