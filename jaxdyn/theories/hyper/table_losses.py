"""The published contrastive losses of the hypercube against closed forms of codes, by one set of constants."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.hyper import dynamics, published


@jd.setting
class Constants:
    """Constants that the paper's losses fix."""

    relevant: jd.Swept = jd.field(10.0, above=0)  # k, bits that augmentation keeps
    temperature: jd.Swept = jd.field(0.5, above=0)  # temperature of the contrastive loss
    batch: jd.Swept = jd.field(512.0, above=1)  # points in a batch, each in two views
    dim: jd.Swept = jd.field(20.0, at_least=2)  # dimensions of an encoder's outputs


def printed(row: str) -> float:
    """The loss of a row."""
    return float(published.TABLE[row][0][0])


def trial(s: Constants, key: PRNGKeyArray) -> jd.Observables:
    """Losses of the code of the relevant bits, of one codeword for each of their patterns, and of the uniform law on the sphere."""
    del key
    others, words = 2 * s.batch - 2, 2.0**s.relevant
    of = lambda moment: dynamics.loss(others, moment, s.temperature).astype(jnp.float64)  # noqa: E731
    number = lambda x: jnp.asarray(x, jnp.float64)  # noqa: E731
    return jd.observables(
        predicted={
            "linear": of(dynamics.bit_moment(s.relevant, s.temperature)),
            "codes": of(dynamics.simplex_moment(words, s.temperature)),
            "mlp": of(dynamics.sphere_moment(s.dim, s.temperature)),
        },
        measured={
            "linear": number(printed("linear")),
            "codes": number(printed("exists f")),
            "mlp": number(printed("MLP, Adam")),
        },
        recorded={"decayed": number(printed("MLP, Adam with weight decay")), "useless": number(printed("exists g"))},
    )


LINEAR, CODES = "linear encoder: printed loss minus that of the bits' code", "codes f and g: printed loss minus that of a simplex"
MLP = "MLP encoders: printed loss minus the least on the sphere"


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """Differences of the losses; the second allows for other codes than one vector for each pattern."""
    both = xr.concat([ds.measured_codes, ds.useless], "code")
    mlp = xr.concat([ds.measured_mlp, ds.decayed], "encoder")
    return [
        jd.at_most(LINEAR, abs(ds.measured_linear - ds.predicted_linear), 0.0005),
        jd.at_most(CODES, abs(both - ds.predicted_codes), 0.005),
        jd.within(MLP, mlp - ds.predicted_mlp, 0.0, 0.005),
    ]


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Printed losses over the closed forms."""
    ax = fig.subplots()
    for name, label in (
        ("codes", "f, g: simplex of patterns"),
        ("mlp", "MLP: least on the sphere"),
        ("linear", "linear: bits' code"),
    ):
        expected, found = (float(np.mean(ds[f"{side}_{name}"])) for side in ("predicted", "measured"))
        ax.plot(expected, found, "o", label=label)
    ax.plot([4.9, 5.15], [4.9, 5.15], "--", color=plotting.COLORS["theory"])
    ax.set(xlabel="closed form", ylabel="printed loss")
    ax.legend()


CLAIMS = (
    jd.Study(
        trial=trial,
        quick=jd.grid(Constants),
        evidence="numbers",
        bounds="derived: half a unit of the last printed digit, and a twentieth of the distance of rows, .1",
        source="arXiv:2202.14037, table of the Boolean hypercube; its constants are not in print and reconstructed",
        tested="Published figures against closed forms; nothing is trained.",
        plot=plot,
        caption="Printed contrastive losses over closed forms of codes; dashed: equal.",
    ).claim(
        id="hyper.table_losses",
        talks=("training:hyper-table",),
        title="One set of constants gives the printed losses of the hypercube",
        statement="With constants that were chosen to fit them, 10 relevant bits, temperature 1/2, batches of 512 and 20 "
        "dimensions, the printed losses are those of closed forms: that of the linear encoder is the code of the relevant bits to "
        ".0005; that of the codes f and g is one "
        "vertex of a simplex for each pattern of these bits, to .005, which takes more than 20 dimensions; those of both MLP "
        "encoders exceed the least loss on the sphere by less than .005.",
        judge=judge,
        controls={
            "9 relevant bits": {"relevant": 9.0},
            "11 relevant bits": {"relevant": 11.0},
            "temperature .6": {"temperature": 0.6},
            "temperature .4": {"temperature": 0.4},
            "batches of 256": {"batch": 256.0},
            "batches of 1024": {"batch": 1024.0},
            "16 dimensions": {"dim": 16.0},
            "22 dimensions": {"dim": 22.0},
        },
        rivals={"codes f and g are as good as 20 dimensions allow": jd.swap(predicted_codes="predicted_mlp")},
    ),
)
