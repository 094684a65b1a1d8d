r"""Learned attention as a TF-IDF: against the product of a token's frequency in its class and how few classes show it.

K classes with a query each; a contextual token is shown by 1 to K of them, with a random weight in each.

.. math:: \text{tf} = P(l|n), \qquad \text{idf} = \ln(K / \#\{n : P(l|n) > 0\})

Attention starts at tf. It is trained by SGD on sampled sequences, by automatic differentiation of the loss of ``model.py``.
Source: talk training, "Learnable TF-IDF"; the measure is ours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
import optax
import xarray as xr
from jaxtyping import Array, Float, PRNGKeyArray

import jaxdyn as jd
from jaxdyn import plotting, stats, train
from jaxdyn.theories.snap import model

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["CLAIMS", "TfIdf", "documents", "laws", "trial"]

CORRELATION = "gain's rank correlation with tf-idf"
OVER_IDF, OVER_TF = (f"gain's rank correlation with tf-idf minus that with {name}" for name in ("idf", "tf"))
STAYS = "attention's rank correlation with tf minus that with tf-idf"


@jd.setting
class TfIdf:
    """Sizes of the data, and how the network is trained on it."""

    lr: jd.Swept = jd.field(1.0, at_least=0)  # of Z
    ratio: jd.Swept = jd.field(1.0, at_least=0)  # rate of Y over that of Z
    momentum: jd.Swept = 0.9
    ascent: jd.Swept = 1.0  # -1: Z ascends the loss
    classes: int = jd.field(6, at_least=2)
    each: int = jd.field(6, at_least=1)  # tokens for every number of classes that show a token
    batch: int = jd.field(64, at_least=1)
    length: int = jd.field(127, at_least=1)
    steps: int = jd.field(100, at_least=1)


def documents(s: TfIdf) -> np.ndarray:
    """In how many classes each contextual token occurs: 1 to K, ``each`` tokens of each number, and own ones K times as many."""
    numbers = np.arange(1, s.classes + 1)
    return np.repeat(numbers, np.where(numbers == 1, s.classes, 1) * s.each)


def laws(s: TfIdf, key: PRNGKeyArray) -> Float[Array, "K T"]:
    """P(token | class): for each token a random set of classes (own tokens: the classes in turn), and random weights."""
    count = documents(s)
    k_place, k_weight = jax.random.split(key)
    rank = jnp.argsort(jnp.argsort(jax.random.uniform(k_place, (s.classes, len(count))), axis=0), axis=0)
    turn = np.arange(len(count))[None] % s.classes != np.arange(s.classes)[:, None]
    there = jnp.where(count == 1, ~turn, rank < count)
    weight = jnp.where(there, jax.random.uniform(k_weight, (s.classes, len(count)), minval=0.1, maxval=1.0), 0.0)
    return weight / jnp.sum(weight, -1, keepdims=True)


def trial(s: TfIdf, key: PRNGKeyArray) -> jd.Observables:
    """Attention of every class before and after training, and its tokens' tf, idf and the product."""
    k_law, k_data = jax.random.split(key)
    p, number = laws(s, k_law), np.arange(s.classes)
    tokens = p.shape[1]
    wide = jnp.pad(p, ((0, 0), (0, 2 * s.classes)))  # queries and next tokens
    label = jnp.asarray(tokens + s.classes + number)

    def batch(step: Array) -> tuple[Array, Array]:
        k_class, k_token = jax.random.split(jax.random.fold_in(k_data, step))
        chosen = jax.random.randint(k_class, (s.batch,), 0, s.classes)
        u = jax.random.uniform(k_token, (s.batch, s.length))
        drawn = jax.vmap(jnp.searchsorted)(jnp.cumsum(p, -1)[chosen], u)
        return chosen, jax.nn.one_hot(jnp.minimum(drawn, tokens - 1), wide.shape[1]).sum(1)

    def loss(params: model.Params, data: tuple[Array, Array]) -> Array:
        chosen, counts = data
        return model.cross_entropy(params, counts, chosen, label[chosen], jnp.full(s.batch, 1 / s.batch))

    rates = model.Params(s.lr * s.ratio, s.ascent * s.lr)
    trace = optax.trace(s.momentum)

    def update(gradient: model.Params, state: optax.OptState, params: object = None) -> tuple[model.Params, optax.OptState]:
        move, state = trace.update(gradient, state, params)
        return jax.tree.map(lambda rate, m: -rate * m, rates, move), state

    tx = optax.GradientTransformation(trace.init, update)
    start = model.Params(jnp.zeros((wide.shape[1],) * 2), jnp.zeros((s.classes, wide.shape[1])))
    final = train.record(train.make_step(loss, tx, batch), train.init(tx, start), lambda _: {}, samples=1, every=s.steps)[0].params
    c = model.attend(final.z, wide)[:, :tokens]
    idf = jnp.asarray(np.log(s.classes / documents(s)), p.dtype)
    return jd.observables(
        predicted={"gain": jd.named(p * idf, "class token")},
        measured={"gain": jd.named(jnp.log(jnp.where(p > 0, c / p, 1.0)), "class token")},
        recorded={
            "tf": jd.named(p, "class token"),
            "idf": jd.named(idf, "token"),
            "attention": jd.named(c, "class token"),
        },
    )


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """Rank correlations over the tokens of a class, means over its classes; each a mean over seeds."""
    jd.need(ds, seed=2)

    def ranks(x: xr.DataArray, y: xr.DataArray) -> xr.DataArray:
        return stats.spearman(x.where(ds.tf > 0), y.where(ds.tf > 0), "token").mean("class", skipna=False)

    gain = ranks(ds.measured_gain, ds.predicted_gain)
    stays = ranks(ds.attention, ds.tf) - ranks(ds.attention, ds.tf * ds.idf)
    return [
        jd.mean_within(CORRELATION, gain, over="seed", low=0.6),
        jd.mean_within(OVER_IDF, gain - ranks(ds.measured_gain, ds.idf), over="seed", low=0.03),
        jd.mean_within(OVER_TF, gain - ranks(ds.measured_gain, ds.tf), over="seed", low=0.15),
        jd.mean_within(STAYS, stays, over="seed", low=0.3),
    ]


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Gain of each token over tf-idf, and of tokens by the number of classes that show them; one seed, a panel for each ratio."""
    panels = fig.subplots(1, ds.sizes["ratio"], squeeze=False)[0]
    for ax, ratio in zip(panels, ds.ratio.values, strict=True):
        run = plotting.first_run(ds.sel(ratio=ratio))
        for value, color in zip(np.unique(run.idf.values), plotting.CYCLE, strict=False):
            part = run.where((run.idf == value) & (run.tf > 0))
            ax.plot(np.ravel(part.predicted_gain), np.ravel(part.measured_gain), ".", color=color, label=f"idf {value:.2f}")
        ax.axhline(0, color=plotting.COLORS["control"], linewidth=0.8)
        ax.set(xlabel="tf times idf", title=f"rate of Y / rate of Z = {ratio:g}")
    panels[0].set_ylabel("gain of attention, ln(c / tf)")
    panels[0].legend()


CLAIMS = (
    jd.Study(
        trial=trial,
        quick=jd.grid(TfIdf, ratio=[1.0, 10.0]),
        seeds=12,
        most=48,
        paper_seeds=100,
        source="talk training, Learnable TF-IDF; arXiv:2305.16380, Theorem 2",
        tested="{classes} classes with a query each; {each} tokens for each number of classes that show a token, and of those "
        "that one class alone shows {each} in every class, with random weights of .1 to 1; {steps} steps of SGD with momentum "
        r"{momentum} on batches of {batch} sequences of {length} tokens from a zero start, in float32, $\eta_Z$ = {lr}, "
        r"$\eta_Y/\eta_Z$ of {ratio}; {seeds} seeds.",
    ).claim(
        id="snap.tf_idf",
        slides=("training:snap-tf-idf",),
        title="Attention's gain, not yet attention, ranks tokens by TF-IDF",
        statement="What training adds to the attention $c_l$ of a class, $\\ln(c_l/P_l)$, ranks its tokens by tf-idf, the product "
        "of their frequency $P_l$ in the class and the logarithm of the inverse share of classes that show them: Spearman's "
        "correlation is at least .6 on average over classes and runs, by .03 above that with idf alone and by .15 above that "
        "with tf alone. After 100 steps attention itself is still in the order of tf, with which its correlation is by .3 "
        "above that with tf-idf.",
        judge=judge,
        evidence="network",
        bounds=jd.looked(at="0:12", confirmed="98000000:98000012"),
        rivals={
            "attention does not move": jd.off({CORRELATION: 0.0}),
            "idf alone": jd.swap(predicted_gain="idf"),
            "tf alone": jd.swap(predicted_gain="tf"),
            "attention becomes uniform": jd.swap(predicted_gain=lambda ds: -ds.tf),
            "attention is tf-idf": {STAYS: -0.5},
        },
        controls={"an untrained network": {"lr": 0.0}, "attention ascends the loss": {"ascent": -1.0}},
        plot=plot,
        caption=r"Gain $\ln(c_l/P_l)$ of each token's attention over its tf-idf: every class of one run, a colour for each idf, a "
        r"panel for each $\eta_Y/\eta_Z$.",
    ),
)
