r"""Transformers on the table of a group: the fewer pairs they have, the later they generalise, and long after they fit them.

A network learns the table from a share of its pairs; recorded is when it knows them, and when all others.
It reads the tokens :math:`(a, b, =)` and gives :math:`ab` after the last; AdamW on random batches of the pairs it is trained on,
with a rate that rises in the first ten steps.
Source: arXiv:2201.02177, section 2 and appendix A.1 (causal decoder with two layers, width 128 and 4 heads, about 4e5 weights;
batches of 512, rate 1e-3, decay 1). Departures: a gated MLP and RMS norms, no token for the operation.
Letters: M elements, n pairs.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import optax
import xarray as xr
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import nn, plotting, stats
from jaxdyn import train as loop
from jaxdyn.data.groups import parse
from jaxdyn.nn.thoughts import think
from jaxdyn.nn.transformer import init, read
from jaxdyn.theories.li2 import model
from jaxdyn.theories.li2.training import along
from jaxdyn.theories.li2.zero_start import KNOWN, reached
from jaxdyn.theories.power.published import PAPER

WARM = 10  # steps of a rising rate


@jd.setting
class Transformer:
    """A network and its training; it is trained no further once it generalises.

    Args:
        share: of all pairs, to train on.
        lr: largest rate of AdamW.
        decay: its decoupled weight decay.
        group: whose table is learned.
        width, heads, hidden, layers, std: of the decoder; ``std`` is that of its weights at the start.
        batch: pairs in a step.
        steps, every: of training, and between two records.
        dtype: of the network.
    """

    share: jd.Swept = 0.5
    lr: jd.Swept = 3e-3
    decay: jd.Swept = 1.0
    group: str = "31"
    width: int = 32
    heads: int = 4
    hidden: int = 64
    layers: int = 2
    std: float = 0.1
    batch: int = jd.field(128, at_least=1)
    steps: int = jd.field(4000, at_least=1)
    every: int = jd.field(50, at_least=1)
    dtype: str = "float32"

    def __post_init__(self) -> None:
        """Refuse names that are no groups, shares without pairs to train or test on, records that do not end with the run."""
        pairs = parse(self.group).order ** 2
        jd.require(self, 1 <= round(self.share * pairs) < pairs, "share leaves a pair to train on and one to test on", "share")
        jd.require(self, self.steps % self.every == 0, "steps is a multiple of every", "steps", "every")


def shape(s: Transformer) -> nn.Transformer:
    """The decoder; its last token is "="."""
    return nn.Transformer(
        vocabulary=parse(s.group).order + 1,
        width=s.width,
        layers=s.layers,
        heads=s.heads,
        hidden=s.hidden,
        position="learned",
        length=3,
        std=s.std,
        scan=False,
        dtype=s.dtype,
    )


def answers(s: Transformer, params: PyTree, pairs: Int[Array, "n 2"]) -> Float[Array, "n M"]:
    """Logits of the product of each pair."""
    order = parse(s.group).order
    tokens = jnp.concatenate([pairs, jnp.full((len(pairs), 1), order, pairs.dtype)], 1)
    return read(shape(s), params, think(shape(s), params, tokens, 0)[0])[:, :order]  # the last layer for the last token alone


def trial(s: Transformer, key: PRNGKeyArray) -> jd.Observables:
    """The steps until the accuracy on the pairs of training, and on all others, is .95; twice all steps if it never is."""
    # all pairs in a random order, of which the first ones are trained on
    k_pairs, k_init, k_batch = jax.random.split(key, 3)
    every = parse(s.group).order ** 2
    number = jax.random.permutation(k_pairs, jnp.arange(every, dtype=jnp.int32))
    pairs = jnp.stack(jnp.divmod(number, parse(s.group).order), -1)
    right = model.products(parse(s.group), pairs)
    count = jnp.round(jnp.asarray(s.share) * every).astype(jnp.int32)
    known = jnp.arange(every, dtype=jnp.int32) < count
    # the trainer
    tx = optax.adamw(lambda i: s.lr * jnp.minimum(1.0, (i + 1) / WARM), b1=0.9, b2=0.98, weight_decay=s.decay)

    def batch(i: Int[Array, ""]) -> Int[Array, " b"]:
        return jax.random.randint(jax.random.fold_in(k_batch, i), (s.batch,), 0, count, jnp.int32)

    def loss(params: PyTree, at: Int[Array, " b"]) -> Float[Array, ""]:
        return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(answers(s, params, pairs[at]), right[at]))

    # the network along training
    def record(params: PyTree, _: PyTree) -> dict[str, Array]:
        hit = jnp.argmax(answers(s, params, pairs), -1) == right
        shares = {"train_accuracy": known, "test_accuracy": ~known}
        return {name: jnp.sum(hit & only) / jnp.sum(only) for name, only in shares.items()}

    start = loop.init(tx, init(shape(s), k_init))
    state, curves = along(loop.make_step(loss, tx, batch), start, record, s.steps // s.every, s.every, KNOWN)
    return jd.observables(
        measured={"fitted": reached(curves["train_accuracy"], s.every), "time": reached(curves["test_accuracy"], s.every)},
        recorded={name: jd.named(curve.astype(jnp.float64), "step") for name, curve in curves.items()},
        coords={"step": range(0, s.steps + 1, s.every)},
        status=loop.finite_status(state.params),
    )


POWER = -1.1
DELAY = 3.0
LATER = f"ln of the steps until the test accuracy is {KNOWN} over those until the training accuracy is, smallest share, mean"
GROWS = "power of the share, mean"


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """How much later than its own pairs a network knows the others, and the power of the share in that time."""
    jd.need(ds, seed=4, share=2)
    time = ds.measured_time.clip(max=float(ds.step[-1]))
    delay = np.log(time / ds.measured_fitted).sel(share=ds.share.min(), drop=True)
    return [
        jd.gate(f"steps until the training accuracy is {KNOWN}", ds.measured_fitted, at_most=float(ds.step[-1])),
        jd.mean_within(LATER, delay, over="seed", low=np.log(DELAY)),
        jd.mean_within(GROWS, stats.loglog_slope(ds.share, time, "share", least=2), over="seed", high=POWER),
    ]


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Steps against the share, and both accuracies along training on the smallest."""
    left, right = fig.subplots(1, 2)
    for name, label, color in (("fitted", "pairs of training", "third"), ("time", "other pairs", "measured")):
        steps = ds[f"measured_{name}"].clip(max=float(ds.step[-1])).transpose("seed", "share")
        plotting.band(left, ds.share, steps, label, color, marker="o")
    few = ds.sel(share=ds.share.min())
    for name, label, color in (("train", "pairs of training", "third"), ("test", "other pairs", "measured")):
        plotting.band(right, ds.step, few[f"{name}_accuracy"].transpose("seed", "step"), label, color)
    left.set(xlabel="share of all pairs", ylabel=f"steps until the accuracy is {KNOWN}", xscale="log", yscale="log")
    ticks = [float(x) for x in ds.share]
    left.set_xticks(ticks, [f"{x:g}" for x in ticks])
    left.set_yticks(counts := [200, 500, 1000, 2000, 4000], [str(x) for x in counts])
    left.minorticks_off()
    right.set(xlabel="step", ylabel="accuracy, smallest share", ylim=(0, 1.02))


CLAIMS = (
    jd.Study(
        trial=trial,
        quick=jd.grid(Transformer, share=[0.45, 0.8]),
        paper=jd.grid(
            Transformer, share=[0.25, 0.3, 0.4, 0.5], group="96", width=128, hidden=352, lr=1e-3, batch=512, steps=50_000, every=100
        ),
        seeds=15,
        paper_seeds=3,
        evidence="network",
        source=f"arXiv:2201.02177, sections 2 and 3 ({PAPER})",
        plot=plot,
        caption="Left: steps until the accuracy on the pairs of training and on all others is .95 against the share that is "
        "trained on. Right: both accuracies along training on the smallest share (networks that have reached .95 on the "
        "others are trained no further). Median and central 90% of the runs.",
    ).claim(
        id="power.transformer",
        talks=("grokking:li2-figure-grokking",),
        title="Transformers generalise long after fitting, later with fewer pairs",
        bounds=jd.tuned(on="8000:8010", confirmed_on="51000000:51000015"),
        statement="Two-layer transformers of width 32, trained by AdamW at a rate of .003 with weight decay of .5 to 1 on .45 or "
        ".8 of the table of sums modulo 31 need, for an accuracy of .95 on the other pairs, at least 3 times the steps that they "
        "need on their own pairs, at the smaller share (geometric mean over runs), and the steps that the other pairs need grow "
        "on average at least like the inverse 1.1th power of the share.",
        tested="Decoders with {layers} layers of width {width} and {heads} heads; AdamW at rate {lr} with weight decay "
        "{decay}, batches of {batch} pairs, {steps} steps, trained on {share} of all pairs. Networks that do not get there "
        "count with all steps; {seeds} seeds.",
        holds={"decay": (0.5, 1.0)},
        judge=judge,
        controls={"shares in reverse order": jd.rolled(measured_time="share")},
        rivals={
            "the same time for all shares": jd.off({GROWS: 0.0}),
            "the same number of samples": {GROWS: -1.0},
            "a network that has fitted its pairs generalises": {LATER: 0.0},
        },
    ),
)
