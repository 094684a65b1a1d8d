r"""How orthogonal the vectors of a published language model are: embeddings, residual streams, and what its MLPs write.

Mean :math:`|\cos|` over pairs, next to that of random directions. Embeddings and streams are those of the different tokens of a
piece of text, as they are and without their common mean; the MLPs' are rows of their last matrices, of units drawn at random.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import xarray as xr
from jaxtyping import PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.models.on_text import SMOLLM2, ModelAndText, OnText, on_text, piece
from jaxdyn.theories.orth import instrument as orthogonality
from jaxdyn.theories.orth.dynamics import directions

UNITS = 256  # of an MLP, at most, whose rows are compared
GROUPS = ("written", "embedding", "embedding, centred", "stream", "stream, centred")
FORMS = ("weights", "all")
LIMIT = 1.5  # times the mean |cos| of random directions
LEAST = {"embedding": 4.0, "stream": 10.0, "stream, centred": 2.5}  # the same
NEAR = "mean |cos| / predicted, every piece"
FAR = {group: f"mean |cos| / random directions, {group}, every piece" for group in LEAST}


@on_text
def trial(s: OnText, key: PRNGKeyArray, shared: ModelAndText) -> jd.Observables:
    """Mean |cos| of each group of vectors, that of MLPs and streams by layer, too; streams after layers 1, 2, ..."""
    shape, params = shared.shape, shared.params
    seen = orthogonality.observe(shape, params, piece(s, key, shared))
    assert shape.hidden is not None, "every published model has MLPs"
    units = jax.random.permutation(jax.random.fold_in(key, 1), shape.hidden)[:UNITS]
    rows = orthogonality.rows(shape, params, units)
    pairs = [values for name in ("raw", "centred") for values in (seen[name][0], jnp.mean(seen[name][1:]))]
    own, stream, own_centred, stream_centred = pairs
    cosine = jnp.stack([jnp.mean(rows), own, own_centred, stream, stream_centred])
    random = jnp.full(cosine.shape, directions.mean_absolute_cosine(jnp.asarray(float(shape.width), jnp.float32)), jnp.float32)
    only = random.at[1:].set(1.0)  # nothing is predicted of what is no weight: a cosine is at most 1
    return jd.observables(
        predicted={"cosine": jd.named(jnp.stack([only, random]), "form group")},
        measured={"cosine": jd.named(cosine, "group")},
        recorded={
            "random": random[0],
            "rows": jd.named(rows, "block"),
            "raw": jd.named(seen["raw"], "depth"),
            "centred": jd.named(seen["centred"], "depth"),
        },
        coords={"form": FORMS, "group": GROUPS},
    )


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """What is predicted to be near random directions is; embeddings and streams are far from them."""
    over = ds.measured_cosine / ds.random
    return [
        *judge_near(ds),
        *(jd.at_least(FAR[group], over.sel(group=group, drop=True), low) for group, low in LEAST.items()),
    ]


def judge_near(ds: xr.Dataset) -> list[jd.Check]:
    """What is predicted to be near random directions is."""
    return [jd.at_most(NEAR, ds.measured_cosine / ds.predicted_cosine, LIMIT)]


def as_written(ds: xr.Dataset) -> float:
    """How near to random directions what the MLPs write is, mean over pieces."""
    return float((ds.measured_cosine / ds.random).sel(group="written").mean())


def in_place(of: str, by: str) -> Callable[[xr.Dataset], xr.Dataset]:
    """The cosines of one group where those of another are judged."""
    return jd.swap(
        measured_cosine=lambda ds: xr.where(ds.group == of, ds.measured_cosine.sel(group=by, drop=True), ds.measured_cosine)
    )


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Mean |cos| by layer, and that of random directions."""
    ax = fig.subplots()
    for name, label, color in (
        ("raw", "residual stream (layer 0: embeddings)", "measured"),
        ("centred", "the same without its mean", "third"),
        ("rows", "what each unit of the MLP writes", "fourth"),
    ):
        first = int(name == "rows")
        plotting.band(ax, range(first, first + ds[name].shape[-1]), ds[name], label, color)
    ax.axhline(float(ds.random.mean()), linestyle="--", color=plotting.COLORS["theory"], label=r"random, $\sqrt{2/\pi d}$")
    ax.set(xlabel="layer", ylabel=r"mean $|\cos|$ over pairs", yscale="log", ylim=(0.02, 2.5))
    ax.legend(ncols=2, loc="upper center")


MODEL = jd.Study(
    trial=trial,
    quick=jd.grid(OnText, length=256),
    seeds=6,
    paper_seeds=24,
    evidence="model",
    judge=judge,
    tested=f"{SMOLLM2}; streams after each layer where a token occurs for the first time, and 256 units of each MLP drawn at "
    f"random.",
    source="arXiv:2310.00535, assumption of orthogonal embeddings (section 2) and its orthogonality figure",
    plot=plot,
    caption="Mean absolute cosine over pairs of vectors, by layer: the residual stream at different tokens, as it is and without "
    "its mean over them, and rows of the MLP's last matrix. Lines and bands: median and central 90% of the pieces of text; dashed: "
    "random directions.",
).claim(
    id="orth.model",
    talks=("training:joma-orthogonal",),
    title="In SmolLM2 what MLPs write is nearly orthogonal, and streams are not",
    statement="In SmolLM2-135M-Instruct the directions that the units of an MLP write have a mean |cos| below 1.5 times that "
    "of random directions, on average over layers. Vectors of different tokens are not orthogonal: embeddings have more than "
    "4 times, residual streams more than 10 times that number, and more than 2.5 times without their common mean, in every "
    "piece of text.",
    form="weights",
    bounds=jd.tuned(on="0:8", confirmed_on="5000:5006"),
    controls={"a stream in place of what MLPs write": in_place("written", "stream, centred")},
    rivals={
        "random directions: nothing is learned": jd.off(dict.fromkeys(FAR.values(), 1.0)),
        "streams and embeddings as near to random ones as what MLPs write": dict.fromkeys(FAR.values(), as_written),
        "exactly orthogonal": jd.swap(predicted_cosine=1e-6),
    },
)
CLAIMS = (
    MODEL,
    MODEL.as_printed(
        id="orth.model_beyond",
        talks=("training:joma-orthogonal",),
        title="Embeddings and streams of SmolLM2 are as orthogonal as random ones",
        statement="In SmolLM2-135M-Instruct, as in Pythia's checkpoints, vectors of different tokens have a mean |cos| near "
        "that of random directions: below 1.5 times that number, embeddings and residual streams, on average over layers.",
        form="all",
        judge=judge_near,
    ),
)
