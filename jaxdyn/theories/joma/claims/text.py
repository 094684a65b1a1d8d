"""Claims on attention while a language model learns a text: it starts blind, sharpens, and comes back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax.numpy as jnp
import xarray as xr
from jaxtyping import PRNGKeyArray

import jaxdyn as jd
from jaxdyn import plotting, train
from jaxdyn.stats import mean_interval
from jaxdyn.text import reading
from jaxdyn.text.reading import Reading

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["CLAIMS", "judge_dip", "judge_return", "trial"]

NEAR = 0.15  # nats between a curve and a published one that count as agreement
MARK = 0.2  # nats of a dip, and of a return, that count


def trial(s: Reading, key: PRNGKeyArray) -> jd.Observables:
    """Train on the text; entropy of every layer's attention along training, beside that of blind attention."""
    built = reading.build(s, key)
    columns, k_drop = built.data
    data = jnp.asarray(columns), k_drop
    state, found = train.record(
        lambda state: built.step(state, *data), built.start, built.observe, samples=s.steps // s.every, every=s.every
    )
    blind = jnp.full(s.layers, reading.uniform_entropy(s.length), s.dtype)
    return jd.observables(
        predicted={"start": jd.named(blind, "layer")},
        measured={"start": jd.named(found.entropy[0], "layer")},
        recorded={
            "entropy": jd.named(found.entropy, "record layer"),
            "stable_rank": jd.named(found.stable_rank, "record layer"),
            "loss": jd.named(found.loss, "record"),
        },
        status=train.finite_status(state.params),
        coords={"record": range(0, s.steps + 1, s.every)},
    )


def _interval(values: xr.DataArray) -> xr.DataArray:
    """Lower end of the 95% interval of the mean over seeds."""
    if values.sizes["seed"] < 3:
        raise jd.Inconclusive("an interval over trained networks needs at least 3 seeds")
    return mean_interval(values, "seed")[1]


def judge_dip(ds: xr.Dataset) -> list[jd.Check]:
    """The top layer starts within ``NEAR`` of blind attention, and its entropy falls by ``MARK`` or more."""
    top = ds.isel(layer=-1)
    fall = top.entropy.isel(record=0) - top.entropy.min("record")
    return [
        jd.at_most("start: distance to blind attention (nats)", abs(top.measured_start - top.predicted_start), NEAR),
        jd.at_least("fall of the top layer's entropy, lower end of the interval (nats)", _interval(fall), MARK),
    ]


def judge_return(ds: xr.Dataset) -> list[jd.Check]:
    """And from its lowest the top layer's entropy comes back by ``MARK`` or more until the end."""
    top = ds.isel(layer=-1).entropy
    back = top.isel(record=-1) - top.min("record")
    return [
        *judge_dip(ds),
        jd.at_least("return of the top layer's entropy, lower end of the interval (nats)", _interval(back), MARK),
    ]


def twice_as_long(ds: xr.Dataset) -> xr.Dataset:
    """Blind attention over windows of 70 words in the place of 35."""
    return ds.assign(predicted_start=xr.full_like(ds.predicted_start, reading.uniform_entropy(70)))


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Entropy of each layer, and the validation loss, along training."""
    left, right = fig.subplots(1, 2)
    for layer in ds.layer.values:
        color = "measured" if layer == ds.layer.values[-1] else "third"
        plotting.band(left, ds.record, ds.entropy.sel(layer=layer).transpose(..., "record"), f"layer {layer}", color)
    blind = float(ds.predicted_start.max())
    left.axhline(blind, linestyle="--", color=plotting.COLORS["theory"], label="blind attention")
    left.set(xlabel="step", ylabel="entropy of attention (nats)")
    plotting.band(right, ds.record, ds.loss.transpose(..., "record"), "validation", "measured")
    right.set(xlabel="step", ylabel="loss (nats a word)")


_SHARED = {
    "trial": trial,
    "quick": jd.grid(Reading, lr=3e-3, max_words=1000, steps=320, every=20),
    "paper": jd.grid(Reading, lr=1e-4, max_words=0, width=200, hidden=200, layers=3, steps=58_000, every=1000, windows=0),
    "seeds": 8,
    "paper_seeds": 3,
    "source": "arXiv:2310.00535, section 5, figure 6",
}
SMALL = "At small scale: one layer, 64 wide, the interpreter's manual with its 1000 most frequent words, rate .003, 320 steps."

CLAIMS = (
    jd.Claim(
        id="joma.text_dip",
        statement=r"A language model's attention starts nearly blind, its entropy within .15 nats of $\ln(n!)/n$, and sharpens as "
        rf"the model learns a text: it falls by .2 nats or more (lower end of the interval over seeds). {SMALL}",
        judge=judge_dip,
        controls={
            "rate 1e-6: nothing is learned": {"lr": 1e-6},
            "blind to twice as many words": lambda ds: ds.assign(
                predicted_start=ds.predicted_start * 0 + reading.uniform_entropy(70)
            ),
        },
        plot=plot,
        **_SHARED,
    ),
    jd.Claim(
        id="joma.wiki_entropy",
        statement=r"Then attention comes back: the top layer's entropy ends .2 nats or more above its lowest (lower end of the "
        rf"interval over seeds). {SMALL} Rate and number of seeds were chosen after a look; at rate .001 the return is .05 only. "
        r"On WikiText-2: .28 (3 seeds, 64 wide, rate .001; interval .05 to .52) and .34 (1 seed of the published network, three "
        r"epochs), `benchmarks/results/joma_fig6.json`; `--scale paper --set text=FOLDER` judges it there. With a linear MLP "
        r"attention comes back as far (`experiments/joma_fig8.py`): it does not take the MLP's nonlinearity.",
        judge=judge_return,
        controls={"rate 1e-6: still falling": {"lr": 1e-6}, "rate 1e-2: collapsed or flat": {"lr": 1e-2}},
        plot=plot,
        **_SHARED,
    ),
)
