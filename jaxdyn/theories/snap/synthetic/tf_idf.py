r"""Learned attention as a TF-IDF: against the product of a token's frequency in its class and how few classes show it.

And as contextual sparsity: each query's row of Z sharpens attention on its own contexts, and not on those of another query.

K classes with a query each; a contextual token is shown by 1 to K of them, with a random weight in each.

.. math:: \text{tf} = P(l|n), \qquad \text{idf} = \ln(K / \#\{n : P(l|n) > 0\})

Attention starts at tf. It is trained by SGD on sampled sequences, by automatic differentiation of the loss of ``model.py``.
Source: talk training, "Learnable TF-IDF"; talk short, "Overall Picture of the Training Dynamics"; the measures are ours.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import optax
import xarray as xr
from jaxtyping import Array, Float, PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting, stats, train
from jaxdyn.theories.snap import model

CORRELATION = "gain's rank correlation with tf-idf"
OVER_IDF, OVER_TF = (f"gain's rank correlation with tf-idf minus that with {name}" for name in ("idf", "tf"))
STAYS = "attention's rank correlation with tf minus that with tf-idf"
LEADING = 6  # tokens, of 26 that a class shows
ROWS = "leading tokens that the rows of two queries have in common, share"
SHARPER = "attention on the leading tokens, own row minus start"
EXCHANGED = "the same with the row of another query, over that with the own row"
TOKENS = "leading tokens of one context that own row and another's have in common, share"


@jd.setting
class TfIdf:
    """Sizes of the data, and how the network is trained on it."""

    lr: jd.Swept = jd.field(1.0, at_least=0)  # of Z
    ratio: jd.Swept = jd.field(1.0, at_least=0)  # rate of Y over that of Z
    momentum: jd.Swept = 0.9  # of the heavy ball
    ascent: jd.Swept = 1.0  # -1: Z ascends the loss
    classes: int = jd.field(6, at_least=2)  # K, each with a query of its own
    each: int = jd.field(6, at_least=1)  # tokens for every number of classes that show a token
    batch: int = jd.field(64, at_least=1)  # fresh sequences of a step
    length: int = jd.field(127, at_least=1)  # contextual tokens of a sequence
    steps: int = jd.field(100, at_least=1)  # of training


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
            "row": jd.named(final.z[:, :tokens], "class token"),
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


def leading(x: xr.DataArray) -> xr.DataArray:
    """1 on the leading tokens and 0 on all others; NaN where there is a NaN."""

    def mark(values: np.ndarray) -> np.ndarray:
        found = np.zeros_like(values)
        np.put_along_axis(found, np.argsort(-values, -1, kind="stable")[..., :LEADING], 1, -1)
        return found

    marked = xr.apply_ufunc(mark, x, input_core_dims=[["token"]], output_core_dims=[["token"]])
    return marked.where(x.notnull().all("token"))


def by_rows(ds: xr.Dataset) -> xr.DataArray:
    """Attention on every class's tokens with every query's row of logits."""
    e = ds.tf * np.exp(ds.row.rename({"class": "query"}))
    return e / e.sum("token", skipna=False)


def own_and_other(x: xr.DataArray) -> tuple[xr.DataArray, ...]:
    """Means over classes with their own query, and over all pairs of a class and another's query."""
    own = xr.DataArray(np.eye(x.sizes["class"]), dims=("class", "query"))
    return tuple((x * part).sum(("class", "query"), skipna=False) / part.sum() for part in (own, 1 - own))


def judge_contextual(ds: xr.Dataset) -> list[jd.Check]:
    """Leading tokens of different rows, and of attention on the same contexts with the own row and with exchanged ones."""
    jd.need(ds, seed=2)
    rows, c = leading(ds.row), by_rows(ds)
    common = (rows * rows.rename({"class": "query"})).sum("token", skipna=False) / LEADING
    marked, start = leading(c), (ds.tf * leading(ds.tf)).sum("token", skipna=False).mean("class", skipna=False)
    own, other = own_and_other((c * marked).sum("token", skipna=False))
    of_own = (marked * xr.DataArray(np.eye(ds.sizes["class"]), dims=("class", "query"))).sum("query", skipna=False)
    same = (marked * of_own).sum("token", skipna=False) / LEADING
    return [
        jd.mean_within(ROWS, own_and_other(common)[1], over="seed", high=0.06),
        jd.mean_within(SHARPER, own - start, over="seed", low=0.05),
        jd.mean_within(EXCHANGED, (other - start) / (own - start), over="seed", high=0.4),
        jd.mean_within(TOKENS, own_and_other(same)[1], over="seed", low=0.5, high=0.9),
    ]


def shuffled(ds: xr.Dataset) -> xr.Dataset:
    """Each row's logits given anew to the tokens that its class shows."""
    rng, seen = np.random.default_rng(0), (ds.tf > 0).broadcast_like(ds.row).transpose(..., "token")
    row = ds.row.transpose(..., "token").copy(deep=True)
    for values, there in zip(row.values.reshape(-1, ds.sizes["token"]), seen.values.reshape(-1, ds.sizes["token"]), strict=True):
        values[there] = rng.permutation(values[there])
    return ds.assign(row=row)


def plot_contextual(ds: xr.Dataset, fig: Figure) -> None:
    """Leading tokens that two rows have in common, and attention on the leading tokens by row, for each class and query."""
    row, c = plotting.first_run(ds.isel(lr=-1) if "lr" in ds.dims else ds), by_rows(ds)
    rows, mass = leading(row.row), (c * leading(c)).sum("token", skipna=False)
    left, right = fig.subplots(1, 2)
    common = (rows * rows.rename({"class": "query"})).sum("token").transpose("class", "query")
    shown = left.imshow(np.squeeze(common.values), vmin=0, vmax=LEADING, cmap="viridis")
    fig.colorbar(shown, ax=left, label="leading tokens in common")
    left.set(xlabel="row of query", ylabel="row of query", title="rows of logits")
    start = (ds.tf * leading(ds.tf)).sum("token").mean("class")
    own, other = own_and_other(mass)
    for values, label, color in (
        (own, "own row", "measured"),
        (other, "another's row", "third"),
        (start, "start", "control"),
    ):
        plotting.band(right, np.atleast_1d(ds.lr.values), values.transpose(..., "lr"), label, color, marker="o")
    right.set(xscale="log", xlabel="rate of Z", ylabel=f"attention on the {LEADING} leading tokens")
    right.legend()


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


TRAINED = (
    "{classes} classes with a query each; {each} tokens for each number of classes that show a token, and of those "
    "that one class alone shows {each} in every class, with random weights of .1 to 1; {steps} steps of SGD with momentum "
    r"{momentum} on batches of {batch} sequences of {length} tokens from a zero start, in float32, $\eta_Z$ = {lr}, "
    r"$\eta_Y/\eta_Z$ of {ratio}; {seeds} seeds."
)
CLAIMS = (
    jd.Study(
        trial=trial,
        quick=jd.grid(TfIdf, ratio=[1.0, 10.0]),
        seeds=12,
        max_seeds=48,
        paper_seeds=100,
        source="talk training, Learnable TF-IDF; arXiv:2305.16380, Theorem 2",
        tested=TRAINED,
    ).claim(
        id="snap.tf_idf",
        talks=("training:snap-tf-idf", "training:snap-frequent"),
        title="Attention's gain, not yet attention, ranks tokens by TF-IDF",
        statement=r"What training adds to the attention $c_l$ of a class, $\ln(c_l/P_l)$, in 100 steps of SGD with momentum on "
        r"six classes of some 26 tokens each, at $\eta_Z$ from .1 to 1 and $\eta_Y/\eta_Z$ from 1 to 10, ranks its tokens by "
        "tf-idf, the product of their frequency $P_l$ in the class and the logarithm of the inverse share of classes that "
        "show them: Spearman's correlation is at least .6 on average over classes and runs, by .03 above that with idf alone "
        "and by .15 above that with tf alone. Attention itself then still follows tf: its correlation with tf is by .3 above "
        "that with tf-idf.",
        judge=judge,
        evidence="network",
        bounds=jd.tuned(on="0:12", confirmed_on="98000000:98000012"),
        holds={"lr": (0.1, 1.0), "ratio": (1.0, 10.0)},
        rivals={
            "attention does not move": jd.off({CORRELATION: 0.0}),
            "idf alone": jd.swap(predicted_gain="idf"),
            "tf alone": jd.swap(predicted_gain="tf"),
            "attention becomes uniform": jd.swap(predicted_gain=lambda ds: -ds.tf),
            "attention is tf-idf": {STAYS: -0.5},
        },
        controls={
            "an untrained network": jd.Control({"lr": 0.0}, breaks="What training adds"),
            "attention ascends the loss": {"ascent": -1.0},
        },
        plot=plot,
        caption=r"Gain $\ln(c_l/P_l)$ of each token's attention over its tf-idf: every class of one run, a colour for each idf, a "
        r"panel for each $\eta_Y/\eta_Z$.",
    ),
    jd.Study(
        trial=trial,
        quick=jd.grid(TfIdf, lr=[1.0, 10.0]),
        seeds=16,
        max_seeds=64,
        paper_seeds=100,
        source="talk short, Overall Picture of the Training Dynamics; arXiv:2305.16380, Theorems 2 and 3",
        tested=TRAINED,
    ).claim(
        id="snap.contextual_sparsity",
        talks=("short:snap-contextual-sparsity",),
        title="Attention is sparse in another way for each query",
        statement="After 100 steps of SGD with momentum on six classes of some 26 tokens each, at equal rates from 1 to 10 of "
        f"decoder and attention, the {LEADING} largest logits of attention belong to other tokens for each query: two queries' "
        "rows have less than 6% of them in common on average, which is less than by chance. A query's row raises attention on "
        f"the {LEADING} leading tokens of its class's contexts by at least .05 over that at the start; with the row of another "
        "query less than 40% of this is left. Frequency still counts: on the same context the leading tokens with the own row "
        "and with another's have between half and 90% in common.",
        judge=judge_contextual,
        evidence="network",
        bounds=jd.tuned(on="0:24", confirmed_on="98000000:98000016"),
        holds={"lr": (1.0, 10.0)},
        rivals={
            "attention does not move": jd.off({SHARPER: 0.0, TOKENS: 1.0}),
            "rows of random logits": {ROWS: lambda ds: LEADING / ds.sizes["token"]},
            "rows alone decide which tokens lead": {TOKENS: lambda ds: LEADING / ds.sizes["token"]},
        },
        controls={
            "an untrained network": jd.Control({"lr": 0.0}, breaks="over that at the start"),
            "one row for all queries": jd.swap(row=lambda ds: ds.row.mean("class") + 0 * ds.row),
            "rows exchanged between queries": jd.swap(row=lambda ds: ds.row.roll({"class": 1})),
            "a row's logits given anew to the tokens of its class": shuffled,
        },
        plot=plot_contextual,
        caption=f"Left: how many of their {LEADING} leading tokens the rows of two queries have in common, one run at the largest "
        f"rate. Right: attention on the {LEADING} leading tokens of a class's contexts with the own query's row, with another's, "
        "and at the start, over the rate of attention; median and central 90% of the runs.",
    ),
)
