"""Numbers of weights of the published perceptrons, counted; and the published tables of memorisation on CIFAR-10."""

from __future__ import annotations

import jax.numpy as jnp
import xarray as xr
from jaxtyping import PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting

PIXELS = 28 * 28 * 3  # of a cropped image

PARAMETERS = {(512, 512, 512): 1_735_178, (512,): 1_209_866}  # by hidden layers

# arXiv:1611.03530, Table 1: network -> condition -> training and test accuracy in %.
TABLE = {
    "Inception": {
        "crop, decay": (100.0, 89.05),
        "crop": (100.0, 89.31),
        "decay": (100.0, 86.03),
        "none": (100.0, 85.75),
        "random labels": (100.0, 9.78),
    },
    "Inception without BN": {"decay": (100.0, 83.00), "none": (100.0, 82.00), "random labels": (100.0, 10.12)},
    "Alexnet": {
        "crop, decay": (99.90, 81.22),
        "crop": (99.82, 79.66),
        "decay": (100.0, 77.36),
        "none": (100.0, 76.07),
        "random labels": (99.82, 9.86),
    },
    "MLP 3x512": {"decay": (100.0, 53.35), "none": (100.0, 52.39), "random labels": (100.0, 10.48)},
    "MLP 1x512": {"decay": (99.80, 50.39), "none": (100.0, 50.51), "random labels": (99.34, 10.61)},
}

NAMES = tuple(f"{len(hidden)}x{hidden[0]}" for hidden in PARAMETERS)


@jd.setting
class Perceptrons:
    """What the perceptrons read and give."""

    side: jd.Swept = jd.field(28.0, at_least=1)  # pixels along each side of an image
    colours: jd.Swept = jd.field(3.0, at_least=1)  # colour channels of each pixel
    classes: jd.Swept = jd.field(10.0, at_least=1)  # outputs of a perceptron
    biases: jd.Swept = jd.field(1.0, at_least=0, at_most=1)  # 1: biases are counted, 0: they are not


def trial(s: Perceptrons, key: PRNGKeyArray) -> jd.Observables:
    """Weights and biases layer by layer, and the printed numbers."""
    del key

    def counted(hidden: tuple[int, ...]) -> jnp.ndarray:
        total, before = jnp.zeros((), jnp.float64), s.side**2 * s.colours
        for units in (*hidden, s.classes):
            total, before = total + before * units + s.biases * units, jnp.asarray(units, jnp.float64)
        return total

    return jd.observables(
        predicted={"parameters": jd.named(jnp.stack([counted(hidden) for hidden in PARAMETERS]), "network")},
        measured={"parameters": jd.named(jnp.asarray(list(PARAMETERS.values()), jnp.float64), "network")},
        coords={"network": NAMES},
    )


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """Exact numbers."""
    return [jd.at_most("parameters counted minus printed, absolutely", abs(ds.predicted_parameters - ds.measured_parameters), 0)]


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Counted and printed."""
    ax = fig.subplots()
    for name, mark, color in (("predicted", "_", "theory"), ("measured", "o", "measured")):
        values = ds[f"{name}_parameters"].transpose("network", ...).values.reshape(len(NAMES), -1)[:, 0]
        ax.plot(NAMES, values / 1e6, mark, ms=12, color=plotting.COLORS[color], label={"predicted": "counted"}.get(name, "printed"))
    ax.set(ylabel="parameters, millions")
    ax.legend()


CLAIMS = (
    jd.Study(
        trial=trial,
        quick=jd.grid(Perceptrons),
        evidence="numbers",
        bounds="derived: whole numbers, which float64 adds exactly",
        source="arXiv:1611.03530, Table 1",
        tested="Published figures against a count; nothing is trained.",
        plot=plot,
        caption="Parameters of the two perceptrons, counted and printed.",
    ).claim(
        id="memo.parameters",
        talks=("training:memo-parameters",),
        title="The printed perceptrons read 28 × 28 pixels in three colours",
        statement="With one and with three hidden layers of 512 units, 28 × 28 pixels of three colours and 10 classes a "
        "perceptron has 1,209,866 and 1,735,178 weights and biases, as printed.",
        judge=judge,
        controls={
            "images that were not cropped, 32 × 32": jd.Control({"side": 32.0}, breaks="28 × 28 pixels"),
            "no biases": {"biases": 0.0},
        },
        rivals={"no more than fit any labels of 50,000 images, $2n + d$": jd.swap(predicted_parameters=102_352.0)},
    ),
)
