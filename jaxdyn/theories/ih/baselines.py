r"""What can be predicted of a Markov chain in context: the losses of four predictors, by sampling; no network.

The predictors know nothing, counts of tokens, counts of pairs, or the chain. The mean entropy of a transition row from Dirichlet(1)
is :math:`\sum_{j=2}^k 1/j` exactly; the last predictor's loss lies below it, because its rows are weighted by the stationary law.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jax.scipy.special import entr
from jaxtyping import Array, Float, Int, PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.data import chains
from jaxdyn.theories.ih import sampled

ADDED, COUNTED = (0.5, 2.0), ("tokens", "pairs")  # other numbers added to counts


@jd.setting
class Baselines:
    """Chains and sequences; with ``sticky`` the rows of a chain no longer follow the Dirichlet law."""

    sticky: jd.Swept = jd.field(0.0, at_least=0)  # added to the diagonal of transition matrices; 0 in the claim
    tokens: int = 3  # k, states of a chain
    length: int = jd.field(100, at_least=2)  # tokens in a sequence
    count: int = jd.field(16000, at_least=2)  # sequences, each from a chain of its own
    batch: int = jd.field(2000, at_least=1)  # sequences at a time

    def __post_init__(self) -> None:
        allowed = ", ".join(map(str, sampled.LOSSES))
        jd.require(self, self.tokens in sampled.LOSSES, f"tokens is one of {allowed}", "tokens")


def shares(row: Int[Array, " T"], tokens: int, added: float) -> Float[Array, "predictor T k"]:
    """Shares by counts of tokens, and of pairs, to each of which a number is added that is not 1."""
    one = jax.nn.one_hot(row, tokens, dtype="float64")
    pairs = jnp.cumsum(one[:, :, None] * jnp.roll(one, -1, 0)[:, None], 0)
    before = jnp.concatenate([jnp.zeros((1, tokens, tokens)), pairs[:-1]])
    counts = jnp.stack([jnp.cumsum(one, 0), jnp.take_along_axis(before, row[:, None, None], 1)[:, 0]])
    return (counts + added) / (jnp.sum(counts, 2, keepdims=True) + tokens * added)


def trial(s: Baselines, key: PRNGKeyArray) -> jd.Observables:
    """Losses of all predictors, and the entropy of a row."""
    k, dtype = s.tokens, "float64"

    def one(key: PRNGKeyArray) -> tuple[Array, Array, Array]:
        k_matrix, k_tokens = jax.random.split(key)
        drawn = chains.transitions(k_matrix, k, dtype)
        matrix = (drawn + s.sticky * jnp.eye(k)) / (1 + s.sticky)
        row = chains.sample(k_tokens, matrix, s.length)
        tables = jnp.stack(
            [jnp.full((s.length, k), 1 / k), chains.unigram(row, k, dtype), chains.bigram(row, k, dtype), matrix[row]]
        )
        others = jnp.concatenate([shares(row, k, added) for added in ADDED])
        losses = -jnp.log(jnp.take_along_axis(jnp.concatenate([tables, others])[:, :-1], row[None, 1:, None], 2))
        means = jnp.mean(losses, (1, 2))
        return means[: len(tables)], means[len(tables) :], jnp.mean(jnp.sum(entr(matrix), 1))

    found = jax.lax.map(one, jax.random.split(key, s.count), batch_size=s.batch)
    losses, others, entropy = (jnp.mean(x, 0) for x in found)
    table = jnp.asarray(sampled.LOSSES[k], jnp.float64)
    return jd.observables(
        predicted={
            "loss": jd.named(table, "predictor"),
            "entropy": jnp.asarray(float(np.sum(1 / np.arange(2, k + 1))), jnp.float64),
        },
        measured={"loss": jd.named(losses, "predictor"), "entropy": entropy},
        recorded={"other_loss": jd.named(others.reshape(len(ADDED), 2), "added counted")},
        coords={"predictor": sampled.PREDICTORS, "added": ADDED, "counted": COUNTED},
    )


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """Losses against the earlier ones, and the entropy of a row."""
    entropy = ds.measured_entropy - ds.predicted_entropy
    gap = ds.measured_loss - ds.predicted_loss
    return [
        jd.mean_within("losses minus those of the other program", gap, over="seed", low=-0.002, high=0.002),
        jd.mean_within("entropy of a row minus its exact mean", entropy, over="seed", low=-0.002, high=0.002),
    ]


def adding(number: float, counted: str) -> Callable[[xr.Dataset], xr.Dataset]:
    """Another number than 1 is added to one of the counts."""

    def losses(ds: xr.Dataset) -> xr.DataArray:
        other = ds.other_loss.sel(added=number, counted=counted, drop=True)
        return xr.where(ds.measured_loss.predictor == counted, other, ds.measured_loss)

    return jd.swap(measured_loss=losses)


# Every predictor has the loss of the uniform one, and rows its entropy.
UNIFORM = jd.swap(
    predicted_loss=lambda ds: ds.predicted_loss.isel(predictor=0),
    predicted_entropy=lambda ds: ds.predicted_loss.isel(predictor=0, drop=True),
)


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Losses by predictor, one panel per number of states."""
    values = np.atleast_1d(ds.tokens.values)
    for ax, k in zip(np.atleast_1d(fig.subplots(1, len(values))), values, strict=True):
        part = ds.sel(tokens=k) if "tokens" in ds.dims else ds
        place = np.arange(part.sizes["predictor"])
        ax.plot(place, part.measured_loss.transpose("predictor", "seed"), "o", color=plotting.COLORS["measured"], markersize=4)
        ax.plot(place, part.predicted_loss.isel(seed=0), "_", color=plotting.COLORS["theory"], markersize=24, label="other program")
        ax.plot([], [], "o", color=plotting.COLORS["measured"], label="16000 sequences")
        ax.set(xticks=place, xticklabels=part.predictor.values, xlabel="what is known", ylabel="loss", title=f"{k} states")


STUDY = jd.Study(
    trial=trial,
    quick=jd.grid(Baselines, tokens=[2, 3]),
    seeds=24,
    paper_seeds=64,
    evidence="algebra",
    source="arXiv:2402.11004, section 2 (predictors); losses sampled by another program of ours; the entropy is exact",
    tested="{count} sequences of {length} tokens from as many chains with {tokens} states, rows uniform on the simplex; no "
    "network is trained; {seeds} seeds.",
    plot=plot,
    caption="Losses of four predictors on sequences of 100 tokens, one point per run of 16000 sequences, and those of "
    "another program (bars).",
)

CLAIMS = (
    STUDY.claim(
        id="ih.baselines",
        title="The losses of four predictors of Markov chains, sampled twice",
        statement="For chains with $k = 2$ and 3 states, whose transition rows are uniform on the simplex and which start from "
        "their stationary law, the mean losses of four predictors of the tokens 2 to 100 are these, in nats and within .002: of "
        r"equal shares, .6931 and 1.0986 ($\ln k$); of counts of tokens, $(n_j + 1)/(t + k)$ for token $j$ after $t$ tokens of "
        "which $n_j$ are $j$, .5773 and 1.0046; of counts of pairs, $(n_{ij} + 1)/(n_i + k)$ after token $i$, which was "
        "followed by $j$ in $n_{ij}$ of $n_i$ times, .5109 and .8863; of the chain itself, .4810 and .8189. The mean entropy of "
        r"a row is $\sum_{j=2}^k 1/j$ within .002.",
        bounds="derived: errors of sampling of means over 384000 sequences here and 1.2 million in the other program",
        judge=judge,
        controls={
            "chains that stay where they are more often": {"sticky": 0.5},
            "counts of tokens, 1/2 added": adding(0.5, "tokens"),
            "counts of tokens, 2 added": adding(2.0, "tokens"),
            "counts of pairs, 1/2 added": adding(0.5, "pairs"),
            "counts of pairs, 2 added": adding(2.0, "pairs"),
        },
        rivals={
            "nothing can be predicted": UNIFORM,
            "the losses of the predictors exchanged": jd.rolled(predicted_loss="predictor"),
        },
    ),
)
