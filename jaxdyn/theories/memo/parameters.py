"""Numbers of weights of the published perceptrons, counted."""

from __future__ import annotations

import jax.numpy as jnp
import xarray as xr
from jaxtyping import PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.memo import published

NAMES = tuple(f"{len(hidden)}x{hidden[0]}" for hidden in published.PARAMETERS)


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
        predicted={"parameters": jd.named(jnp.stack([counted(hidden) for hidden in published.PARAMETERS]), "network")},
        measured={"parameters": jd.named(jnp.asarray(list(published.PARAMETERS.values()), jnp.float64), "network")},
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
