"""Claims on attention while a language model learns a text: it starts uniform, sharpens, and returns.

Rate and number of seeds were chosen after a look; at rate .001 the return is .05 nats only. On WikiText-2 it is .28 (3 seeds, width
64, rate .001; interval .05 to .52) and .34 (1 seed of the published network, three epochs), ``benchmarks/results/joma_fig6.json``;
``--scale paper --set text=FOLDER`` judges it there. With a linear MLP attention returns as far (``experiments/joma_fig8.py``): the
return does not need the MLP's nonlinearity.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax.numpy as jnp
import numpy as np
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
    """Train on the text; entropy of each layer's attention along training, beside that of uniform attention."""
    built = reading.build(s, key)
    columns, k_drop = built.data
    data = jnp.asarray(columns), k_drop
    state, records = train.record(
        lambda state: built.step(state, *data), built.start, built.observe, samples=s.steps // s.every, every=s.every
    )
    uniform = jnp.full(s.layers, reading.uniform_entropy(s.length), s.dtype)
    return jd.observables(
        predicted={"start": jd.named(uniform, "layer")},
        measured={"start": jd.named(records.entropy[0], "layer")},
        recorded={
            "entropy": jd.named(records.entropy, "record layer"),
            "stable_rank": jd.named(records.stable_rank, "record layer"),
            "loss": jd.named(records.loss, "record"),
        },
        status=train.finite_status(state.params),
        coords={"record": range(0, s.steps + 1, s.every)},
    )


def _interval(values: xr.DataArray) -> xr.DataArray:
    """Lower end of the 95% interval of the mean over seeds."""
    jd.need(values, seed=3)
    return mean_interval(values, "seed")[1]


def judge_dip(ds: xr.Dataset) -> list[jd.Check]:
    """The top layer starts within ``NEAR`` of uniform attention, and its entropy falls by ``MARK`` or more."""
    top = ds.isel(layer=-1)
    fall = top.entropy.isel(record=0) - top.entropy.min("record")
    return [
        jd.at_most("start: distance from uniform attention (nats)", abs(top.measured_start - top.predicted_start), NEAR),
        jd.at_least("fall of the top layer's entropy, lower end of the interval (nats)", _interval(fall), MARK),
    ]


def judge_return(ds: xr.Dataset) -> list[jd.Check]:
    """The fall, and a return of the top layer's entropy from its minimum to the end by ``MARK`` or more."""
    top = ds.isel(layer=-1).entropy
    back = top.isel(record=-1) - top.min("record")
    return [
        *judge_dip(ds),
        jd.at_least("return of the top layer's entropy, lower end of the interval (nats)", _interval(back), MARK),
    ]


def untrained(ds: xr.Dataset) -> xr.Dataset:
    """A breach: attention stays as it is at the start."""
    return ds.assign(entropy=ds.entropy.isel(record=0, drop=True).broadcast_like(ds.entropy))


def falling(ds: xr.Dataset) -> xr.Dataset:
    """A breach: the entropy never rises, each record has the least so far."""
    least = np.minimum.accumulate(ds.entropy.values, ds.entropy.get_axis_num("record"))
    return ds.assign(entropy=ds.entropy.copy(data=least))


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Entropy of each layer, and the validation loss, along training."""
    left, right = fig.subplots(1, 2)
    for layer in ds.layer.values:
        color = "measured" if layer == ds.layer.values[-1] else "third"
        plotting.band(left, ds.record, ds.entropy.sel(layer=layer).transpose(..., "record"), f"layer {layer}", color)
    uniform = float(ds.predicted_start.max())
    left.axhline(uniform, linestyle="--", color=plotting.COLORS["theory"], label="uniform attention")
    left.set(xlabel="step", ylabel="entropy of attention (nats)")
    plotting.band(right, ds.record, ds.loss.transpose(..., "record"), "validation", "measured")
    right.set(xlabel="step", ylabel="loss (nats per word)")


SMALL = "(At small scale: one layer, width 64, the interpreter's manual with its 1000 most frequent words, rate .003, 320 steps.)"
STUDY = jd.Study(
    trial=trial,
    quick=jd.grid(Reading, lr=3e-3, max_words=1000, steps=320, every=20),
    paper=jd.grid(Reading, lr=1e-4, max_words=0, width=200, hidden=200, layers=3, steps=58_000, every=1000, windows=0),
    seeds=8,
    paper_seeds=3,
    source="arXiv:2310.00535, section 5, figure 6",
    plot=plot,
    caption=r"Left: entropy of each layer's attention along training (mean over validation windows and positions); dashed: "
    r"uniform causal attention. Right: validation loss. Lines are medians over the runs, bands their central 90%.",
)

CLAIMS = (
    STUDY.claim(
        id="joma.text_dip",
        statement=r"In a language model that learns a text, the entropy of the top layer's attention starts within .15 nats of "
        r"that of uniform "
        rf"causal attention, $\ln(n!)/n$, and falls by at least .2 nats (lower end of the 95% interval over seeds). {SMALL}",
        judge=judge_dip,
        controls={
            "nothing is learned": untrained,
            "uniform over twice as many words": jd.swap(predicted_start=reading.uniform_entropy(70)),
        },
    ),
    STUDY.claim(
        id="joma.wiki_entropy",
        bounds="rate and number of seeds were chosen after a look; upheld on seeds not used before",
        statement=r"In a language model that learns a text, the entropy of the top layer's attention falls and then returns: it "
        r"ends at least .2 "
        rf"nats above its minimum (lower end of the 95% interval over seeds). {SMALL}",
        judge=judge_return,
        controls={"the entropy never rises": falling, "rate 1e-2: collapsed or flat": {"lr": 1e-2}},
    ),
)
