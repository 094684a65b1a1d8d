r"""How concentrated the attention of a published language model is, layer by layer, next to uniform attention.

Entropy of attention in nats, mean over queries and heads; uniform causal attention has :math:`\frac1n \sum_{i \le n} \ln i`.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.models.on_text import SMOLLM2, ModelAndText, OnText, on_text, piece
from jaxdyn.stats import spearman
from jaxdyn.theories.joma import instrument as entropy
from jaxdyn.theories.joma.published import ENTROPY

BELOW = -0.3  # correlation of ranks that counts as a fall
SHARE, EVERY = 0.5, 0.95  # of the entropy of uniform attention: on average, and in every layer
MEAN = "entropy / uniform attention's, mean over layers"
LAYER = "entropy / uniform attention's, every layer and piece"
UPWARDS = "rank correlation of entropy and layer, from the bottom, every piece"


@on_text
def trial(s: OnText, key: PRNGKeyArray, shared: ModelAndText) -> jd.Observables:
    """Entropy by layer, and by head, next to that of uniform attention."""
    by_head = entropy.observe(shared.shape, shared.params, piece(s, key, shared))
    own = jnp.mean(by_head, -1)
    uniform = jnp.full(own.shape, entropy.uniform(shared.shape, s.length + shared.shape.sink_token), own.dtype)
    return jd.observables(
        predicted={"entropy": jd.named(uniform, "layer")},
        measured={"entropy": jd.named(own, "layer")},
        recorded={"by_head": jd.named(by_head, "layer head")},
        coords={"layer": range(1, shared.shape.depth + 1)},
    )


def upwards(ds: xr.Dataset) -> xr.DataArray:
    """Rank correlation of entropy and layer in each run; 0 where all layers have the same."""
    layer = xr.zeros_like(ds.measured_entropy) + ds.layer
    return spearman(ds.measured_entropy, layer, "layer").fillna(0.0)


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """Entropy over that of uniform attention, on average and in every layer, and how it goes with the layer."""
    over = ds.measured_entropy / ds.predicted_entropy
    return [
        jd.mean_within(MEAN, over.mean("layer"), over="seed", high=SHARE),
        jd.at_most(LAYER, over, EVERY),
        jd.at_most(UPWARDS, upwards(ds), BELOW),
    ]


# The published network of five layers that was trained longest.
FIVE: Any = [row["end"] for row in ENTROPY[5, 1e-4].values()]
PUBLISHED = {UPWARDS: float(np.corrcoef(np.argsort(np.argsort(FIVE)), np.arange(len(FIVE)))[0, 1])}


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Entropy by layer, of all heads and their mean, and that of uniform attention."""
    ax = fig.subplots()
    heads = ds.by_head.mean([d for d in ds.by_head.dims if d not in ("layer", "head")]).transpose("head", "layer")
    ax.plot(ds.layer, heads.values.T, color="#868c95", alpha=0.35, linewidth=0.8)
    plotting.band(ax, ds.layer, ds.measured_entropy, "mean over heads")
    ax.axhline(float(ds.predicted_entropy.mean()), linestyle="--", color=plotting.COLORS["theory"], label="uniform attention")
    ax.set(xlabel="layer", ylabel="attention entropy, nats", ylim=(0, None))


CLAIMS = (
    jd.Study(
        trial=trial,
        quick=jd.grid(OnText, length=256),
        seeds=6,
        paper_seeds=24,
        evidence="model",
        judge=judge,
        bounds=jd.tuned(on="0:5006", confirmed_on="6000:6006"),  # looked at on 0:6 and, where they failed, on 5000:5006
        tested=f"{SMOLLM2}; entropies are means over queries and heads.",
        source="arXiv:2310.00535, section 5 and figures 6 to 8 (attention becomes sparse; entropy by layer)",
        plot=plot,
        caption="Entropy of the attention by layer, mean over queries: median and central 90% of the pieces of text of the mean "
        "over heads; grey: single heads, mean over pieces; dashed: uniform causal attention.",
    ).claim(
        id="joma.model_entropy",
        title="SmolLM2's attention has less than half of uniform entropy",
        statement="On pieces of 256 tokens of the interpreter's manual the attention of SmolLM2-135M-Instruct is sparse: its "
        "entropy is below half of that of uniform attention on average, and below 95% in every layer and piece of text. It falls "
        "from the bottom layers to the top ones (rank correlation with the layer of -.3 or less, in every piece), where that of "
        "the paper's five-layer network rises.",
        controls={"a random network: the same weights in random order": {"weights": "shuffled"}},
        rivals={
            "uniform attention": jd.off({MEAN: 1.0, LAYER: 1.0, UPWARDS: 0.0}),
            "entropy rises from the bottom as in the paper's network": PUBLISHED,
        },
    ),
)
