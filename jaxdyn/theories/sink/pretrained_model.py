r"""Attention sinks in a published language model: in which layers they are, and whether a token's place or its content makes them.

The weight on the first token is the mean over heads and over the queries after it; uniform attention has
:math:`\frac{1}{n-1} \sum_{i=2}^{n} 1/i`. Each piece of text is read again with another word of the text in the first place and its
first token in the middle.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float, PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.models.on_text import SMOLLM2, ModelAndText, OnText, on_text, piece
from jaxdyn.theories.sink import instrument as sinks

FORMS = ("25 layers", "all above two")  # layers with a sink
GROUPS = {"1 and 2": (1, 2), "4 to 10": tuple(range(4, 11)), "12": (12,), "13 to 30": tuple(range(13, 31))}  # layers; 3, 11 vary
ENDS = ("least", "largest")  # of the layers of a group
SOME, ABOVE_TWO = (0, 1, 0, 1), (0, 1, 1, 1)  # which groups have a sink
TOP = "13 to 30"
TIMES = 3.0  # uniform attention's weight on the first token: more with a sink, less without
STRONG = 0.2  # the same in each of the upper layers, at least
SAME = 0.2  # by how much the weight with another token there may differ, relatively: in one of 24 pieces it was half
MOVED = 0.02  # weight on the first token in the middle, at most
WEIGHT = "weight on the first token / uniform attention's, every layer with a sink, every piece"
WITHOUT = "weight on the first token / uniform attention's, every layer without, every piece"
UPPER = f"weight on the first token, every layer from {TOP}, every piece"
REPLACED = f"weight there with another token / with the text's own, mean over layers {TOP} and pieces"
ELSEWHERE = f"weight on the first token, moved to the middle, mean over layers {TOP}, every piece"


@on_text
def trial(s: OnText, key: PRNGKeyArray, shared: ModelAndText) -> jd.Observables:
    """Weights by layer on the first place with the text's own token and with another one, and on the own one in the middle."""
    tokens = piece(s, key, shared)
    word = shared.tokens[jax.random.randint(jax.random.fold_in(key, 1), (), 0, shared.tokens.size)]
    variants = jnp.stack([tokens, tokens.at[0].set(word).at[s.length // 2].set(tokens[0])])
    seen = sinks.observe(shared.shape, shared.params, variants)
    weight, middle = jnp.mean(seen["weight"][..., 0], -1), jnp.mean(seen["middle"], -1)
    layers = range(1, shared.shape.depth + 1)
    return jd.observables(
        predicted={
            "sink": jd.named(jnp.asarray([SOME, ABOVE_TWO], jnp.float32), "form group"),
            "replaced": jd.named(weight[0], "layer"),
        },
        measured={
            "sink": jd.named(grouped(weight[0]), "end group"),
            "replaced": jd.named(weight[1], "layer"),
        },
        recorded={
            "moved": jd.named(middle[1], "layer"),
            "uniform": jnp.asarray(sinks.uniform(shared.shape, s.length + shared.shape.sink_token), jnp.float32),
        },
        coords={"form": FORMS, "end": ENDS, "group": tuple(GROUPS), "layer": tuple(layers)},
    )


def grouped(weight: Float[Array, " layer"]) -> Float[Array, "end group"]:
    """The least and the largest weight of the layers of each group; 0 for a group that a model lacks."""
    one = [[i - 1 for i in numbers if i <= weight.size] for numbers in GROUPS.values()]
    found = [weight[jnp.asarray(places)] if places else jnp.zeros((1,), weight.dtype) for places in one]
    return jnp.stack([jnp.stack([jnp.min(x) for x in found]), jnp.stack([jnp.max(x) for x in found])])


def groups(ds: xr.Dataset, sink: bool) -> xr.DataArray:
    """Weights in groups of layers: the least of those that are predicted to have a sink, or the largest of those without."""
    flags = ds.predicted_sink.mean([d for d in ds.predicted_sink.dims if d != "group"]).values
    return ds.measured_sink.sel(end=ENDS[0 if sink else 1], drop=True).isel(group=np.flatnonzero((flags > 0.5) == sink))


def top(ds: xr.Dataset, name: str) -> xr.DataArray:
    """Mean over the upper layers, piece by piece."""
    return ds[name].sel(layer=[i for i in GROUPS[TOP] if i in ds.layer]).mean("layer")


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """Weight in layers with a sink and without; with another token in the first place; and on the first token elsewhere."""
    jd.need(ds, layer=30)
    own, other = top(ds, "predicted_replaced"), top(ds, "measured_replaced")
    return [
        jd.at_least(WEIGHT, groups(ds, True) / ds.uniform, TIMES),
        jd.at_most(WITHOUT, groups(ds, False) / ds.uniform, TIMES),
        jd.at_least(UPPER, ds.measured_sink.sel(group=TOP, end="least", drop=True), STRONG),
        jd.mean_within(REPLACED, other / own, over="seed", low=1 - SAME, high=1 + SAME),
        jd.at_most(ELSEWHERE, top(ds, "moved"), MOVED),
    ]


def flat(ds: xr.Dataset) -> float:
    """Weight on the first token under uniform attention."""
    return float(ds.uniform.mean())


def own(ds: xr.Dataset) -> float:
    """Mean weight on the first token in the upper layers."""
    return float(top(ds, "predicted_replaced").mean())


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Weights by layer, of each kind of piece."""
    ax = fig.subplots()
    plotting.band(ax, ds.layer, ds.predicted_replaced, "on the first token")
    plotting.band(ax, ds.layer, ds.measured_replaced, "on another token in its place", "third", linestyle=":")
    plotting.band(ax, ds.layer, ds.moved, "on the first token, moved to the middle", "fourth")
    ax.axhline(flat(ds), linestyle="--", color=plotting.COLORS["theory"], label="uniform attention")
    ax.set(xlabel="layer", ylabel="weight, mean over heads", ylim=(0, None))


SINKS = jd.Study(
    trial=trial,
    quick=jd.grid(OnText, length=256),
    seeds=6,
    paper_seeds=24,
    evidence="model",
    judge=judge,
    tested=f"{SMOLLM2}; each is read as it is, and with another word of the text in the first place and its first token in the "
    "middle. Weights are means over heads and later queries.",
    source="arXiv:2309.17453, section 3.1 (sinks beyond the bottom two layers; position, not content; in Llama-2)",
    plot=plot,
    caption="Weight on the first token, on another token in its place, and on the first token, moved to the middle, by layer: mean "
    "over heads and later queries, median and central 90% of the pieces of text; dashed: uniform attention.",
).claim(
    id="sink.model",
    title="In SmolLM2 the first token of a text is a sink in 25 of 30 layers",
    statement="In SmolLM2-135M-Instruct the first token gets, mean over heads, more than three times uniform attention's weight "
    "in each of the layers 4 to 10 and 13 to 30, in each of the latter more than .2, and less than three times in layers 1, 2 "
    "and 12, in every piece of 256 tokens of the Python interpreter's manual. Its place makes the sink: on average over layers "
    "13 to 30 and over pieces another token there gets .8 to 1.2 times the weight, and the first token itself, moved to the "
    "middle of the text, in every piece less than .02.",
    talks=(
        "practical:sink-figure-maps",
        "practical:sink-initial-tokens",
        "practical:sink-position",
    ),
    form="25 layers",
    max_seeds=24,
    bounds=jd.tuned(on="56000000:56000012", confirmed_on="56000012:56000024"),
    controls={"weights of the layers below": jd.rolled(measured_sink="group")},
    rivals={
        "uniform attention": jd.off({WEIGHT: 1.0, UPPER: flat}),
        "the token makes the sink, not its place": jd.swap(predicted_replaced="uniform"),
        "the token is a sink wherever it stands": {ELSEWHERE: own},
        "every layer has a sink": {WITHOUT: lambda ds: own(ds) / flat(ds)},
    },
)
CLAIMS = (
    SINKS,
    SINKS.as_printed(
        id="sink.model_beyond",
        title="All layers of SmolLM2 above the lowest two have a sink",
        statement="In SmolLM2-135M-Instruct, as in Llama-2, the first token gets more than three times uniform attention's weight "
        "in all layers above the lowest two, 12 among them, mean over heads, in every piece of text.",
        talks=("practical:sink-figure-maps",),
        form="all above two",
    ),
)
