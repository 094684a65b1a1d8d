r"""How slowly the residual stream of a published language model turns from block to block.

The cosine of the stream before and after a block, mean over the tokens of a piece but the first, next to its bound
:math:`\cos(x, x + F) \ge \sqrt{1 - \rho^2}`, where :math:`\rho = \|F\| / \|x\| < 1`.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.models.on_text import SMOLLM2, ModelAndText, OnText, on_text, piece
from jaxdyn.theories.dejavu import instrument as sparsity

FORMS = ("inner", "all")  # layers in which the stream turns slowly
LEAST, MEAN = 0.75, 0.9  # cosine in each layer that is slow, and their mean
SLOW = "cosine from block to block, in each layer predicted to be slow, every piece"
AVERAGE = "the same, mean over these layers and pieces"
EXCESS = "cosine, mean over inner layers, published minus shuffled weights"  # a reading
FAST = "cosine from block to block, first and last layer, mean over pieces"


@on_text
def trial(s: OnText, key: PRNGKeyArray, shared: ModelAndText) -> jd.Observables:
    """Mean cosine by layer, the layers that are predicted to be slow, and the mean of the bound."""
    depth = shared.shape.depth
    seen = sparsity.observe(shared.shape, shared.params, piece(s, key, shared))
    layers = np.arange(depth)
    slow = np.stack([(layers > 0) & (layers < depth - 1), np.ones(depth, bool)])
    return jd.observables(
        predicted={"slow": jd.named(jnp.asarray(slow, jnp.float32), "form layer")},
        measured={"slow": jd.named(seen["cosine"], "layer")},
        recorded={
            "bound": jd.named(seen["bound"], "layer"),
        },
        coords={"form": FORMS, "layer": range(1, depth + 1)},
    )


def by_kind(ds: xr.Dataset) -> tuple[xr.DataArray, xr.DataArray]:
    """Cosines of the layers that are predicted to be slow, and of the others."""
    slow = ds.predicted_slow.mean([d for d in ds.predicted_slow.dims if d != "layer"]).values > 0.5
    slowly, fast = (ds.measured_slow.isel(layer=np.flatnonzero(which)) for which in (slow, ~slow))
    return slowly, fast


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """Cosines in the layers that are predicted to be slow, and in the others, if there are any."""
    jd.need(ds, layer=3)
    slow, fast = by_kind(ds)
    checks = [
        jd.at_least(SLOW, slow, LEAST),
        jd.mean_within(AVERAGE, slow.mean("layer"), over="seed", low=MEAN),
    ]
    if fast.size:
        checks.append(jd.mean_within(FAST, fast, over="seed", high=LEAST))
    return checks


def read_excess(ds: xr.Dataset) -> list[jd.Reading]:
    """How much larger cosines are than those of a random network of the same shape, mean over all layers but three at the ends."""
    jd.need(ds, weights=("published", "shuffled"), layer=5)
    inner = ds.measured_slow.isel(layer=slice(2, -1)).mean("layer")
    return [jd.mean_reading(EXCESS, inner.sel(weights="published") - inner.sel(weights="shuffled"), over="seed")]


# Independent directions in as many dimensions: each block writes a new stream.
NEW = {SLOW: 0.0, AVERAGE: 0.0}


def published(ds: xr.Dataset) -> float:
    """What is read if the cosines of the random network are zero."""
    return float(ds.measured_slow.sel(weights="published").isel(layer=slice(2, -1)).mean())


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Cosine by layer, and the mean of the bound."""
    ax = fig.subplots()
    for name, color in (("published", "measured"), ("shuffled", "third")):
        both = "weights" in ds.dims
        if both or name == "published":
            part = ds.sel(weights=name) if both else ds
            label = f", {name} weights" if both else ""
            plotting.band(ax, ds.layer, part.measured_slow, rf"$\cos(x, x + F)${label}", color)
            if not both:
                plotting.band(ax, ds.layer, part.bound, r"$\sqrt{1 - \rho^2}$, 0 if $\rho > 1$", "theory", linestyle="--")
    ax.axhline(LEAST, linestyle=":", color=plotting.COLORS["control"])
    ax.set(xlabel="layer", ylabel="cosine from block to block", ylim=(-0.05, 1.05))
    ax.legend(loc="lower center")


STUDY = jd.Study(
    trial=trial,
    quick=jd.grid(OnText, length=256),
    seeds=6,
    paper_seeds=24,
    evidence="model",
    tested=f"{SMOLLM2}; cosines are means over all tokens of a piece but the first.",
    source="arXiv:2310.17157, section 4.3 (slowly changing embeddings, in OPT-175B)",
    plot=plot,
    caption="Cosine between the residual stream before and after each block, mean over tokens; dashed: its lower bound, token by "
    "token. Lines and bands: median and central 90% of the pieces of text; dotted: .75.",
)
SLOWLY = STUDY.claim(
    id="dejavu.model_slow",
    title="SmolLM2's stream turns slowly but in its first and last block",
    statement="From the second to the last but one block of SmolLM2-135M-Instruct the residual streams before and after a block "
    "have a cosine, mean over the tokens of a piece but the first, of at least .75 in every block and piece of 256 tokens of the "
    "Python interpreter's manual, and .9 on average. The first and the last block turn the stream by more: on average over "
    "pieces the cosine of each is below .75.",
    form="inner",
    max_seeds=24,
    judge=judge,
    bounds=jd.tuned(on="0:8", confirmed_on="56000000:56000024"),
    controls={"cosines of the layers below": jd.rolled(measured_slow="layer")},
    rivals={
        "each block writes a new stream, of any direction": jd.off(NEW),
        "each block turns the stream by as much as is allowed": {AVERAGE: LEAST},
        "the stream stays as it is": {FAST: 1.0},
    },
)
CLAIMS = (
    SLOWLY,
    SLOWLY.as_printed(
        id="dejavu.model_slow_beyond",
        title="SmolLM2's residual stream turns slowly in every block",
        statement="In every block of SmolLM2-135M-Instruct the residual streams before and after it have a cosine, mean over the "
        "tokens of a piece but the first, of at least .75 in every piece, and .9 on average, as streams of OPT-175B were "
        "reported to change slowly from block to block.",
        form="all",
    ),
    STUDY.claim(
        id="dejavu.model_slow_random",
        title="Does SmolLM2's stream turn more slowly than that of a random network?",
        statement="Is it training that makes residual streams turn slowly? The reading is the cosine between the streams before "
        "and after a block, mean over all blocks but the first two and the last, in SmolLM2-135M-Instruct minus that in a network "
        "with the same weights, each matrix' entries in random order.",
        expected="measured",
        caption="Cosine between the residual stream before and after each block, mean over tokens, with the published weights and "
        "with the entries of each matrix in random order: median and central 90% of the pieces of text; dotted: .75.",
        form="inner",
        judge=read_excess,
        quick=jd.grid(OnText, length=256, weights=["published", "shuffled"]),
        rivals={"only trained streams turn slowly; random ones are new in each block": {EXCESS: published}},
        recorded={EXCESS: (0.032, 0.0395, 0.047)},
    ),
)
