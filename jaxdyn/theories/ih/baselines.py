r"""What can be predicted of a Markov chain in context: the losses of four predictors, by sampling; no network.

The predictors know nothing, counts of tokens, counts of pairs, or the chain. The mean entropy of a transition row from Dirichlet(1)
is :math:`\sum_{j=2}^k 1/j` exactly; the last predictor's loss lies below it, because its rows are weighted by the stationary law.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jax.scipy.special import entr
from jaxtyping import Array, PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.data import chains
from jaxdyn.theories.ih import sampled


@jd.setting
class Baselines:
    """Chains and sequences; ``sticky`` adds that much to the diagonal of every transition matrix, a breach of the Dirichlet law."""

    sticky: jd.Swept = jd.field(0.0, at_least=0)
    tokens: int = 3
    length: int = jd.field(100, at_least=2)
    count: int = jd.field(4000, at_least=2)

    def __post_init__(self) -> None:
        allowed = ", ".join(map(str, sampled.LOSSES))
        jd.require(self, self.tokens in sampled.LOSSES, f"tokens is one of {allowed}", "tokens")


def trial(s: Baselines, key: PRNGKeyArray) -> jd.Observables:
    """Losses of all predictors, and the entropy of a row."""
    k, dtype = s.tokens, "float64"

    def one(key: PRNGKeyArray) -> tuple[Array, Array]:
        k_matrix, k_tokens = jax.random.split(key)
        drawn = chains.transitions(k_matrix, k, dtype)
        matrix = (drawn + s.sticky * jnp.eye(k)) / (1 + s.sticky)
        row = chains.sample(k_tokens, matrix, s.length)
        tables = jnp.stack(
            [jnp.full((s.length, k), 1 / k), chains.unigram(row, k, dtype), chains.bigram(row, k, dtype), matrix[row]]
        )
        losses = -jnp.log(jnp.take_along_axis(tables[:, :-1], row[None, 1:, None], 2))
        return jnp.mean(losses, (1, 2)), jnp.mean(jnp.sum(entr(matrix), 1))

    losses, entropy = jax.vmap(one)(jax.random.split(key, s.count))
    table = jnp.asarray(sampled.LOSSES[k], jnp.float64)
    return jd.observables(
        predicted={
            "loss": jd.named(table, "predictor"),
            "entropy": jnp.asarray(float(np.sum(1 / np.arange(2, k + 1))), jnp.float64),
        },
        measured={"loss": jd.named(jnp.mean(losses, 0), "predictor"), "entropy": jnp.mean(entropy)},
        coords={"predictor": sampled.PREDICTORS},
    )


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """Losses against the earlier ones, and the entropy of a row."""
    gap, entropy = ds.measured_loss - ds.predicted_loss, ds.measured_entropy - ds.predicted_entropy
    return [
        jd.mean_within("losses minus those of the earlier program", gap, over="seed", low=-0.01, high=0.01),
        jd.mean_within("entropy of a row minus its exact mean", entropy, over="seed", low=-0.01, high=0.01),
    ]


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
        ax.plot(
            place, part.predicted_loss.isel(seed=0), "_", color=plotting.COLORS["theory"], markersize=24, label="earlier program"
        )
        ax.plot([], [], "o", color=plotting.COLORS["measured"], label="4000 sequences")
        ax.set(xticks=place, xticklabels=part.predictor.values, xlabel="what is known", ylabel="loss", title=f"{k} states")


STUDY = jd.Study(
    trial=trial,
    quick=jd.grid(Baselines, tokens=[2, 3]),
    seeds=16,
    paper_seeds=64,
    evidence="algebra",
    source="arXiv:2402.11004, section 2 (predictors); losses sampled by an earlier program of ours; the entropy is exact",
    tested="{count} sequences of {length} tokens from as many chains with {tokens} states, rows uniform on the simplex; no "
    "network is trained; {seeds} seeds.",
    plot=plot,
    caption="Losses of four predictors on sequences of 100 tokens, one point per run of 4000 sequences, and those of an "
    "earlier program (bars).",
)

CLAIMS = (
    STUDY.claim(
        id="ih.baselines",
        title="The losses of four predictors of Markov chains, sampled twice",
        statement="For chains with $k = 2$ and 3 states whose transition rows are uniform on the simplex, the mean losses of "
        r"four predictors on 100 tokens are those of an independent program within .01 nats: of nothing ($\ln k$), of counts "
        "of tokens $(n_j + 1)/(t + k)$, of counts of pairs $(n_{ij} + 1)/(n_i + k)$, and of the chain itself. The mean "
        r"entropy of a row is $\sum_{j=2}^k 1/j$ within .01.",
        bounds="derived: errors of sampling of means over 4000 sequences, here and in the earlier program",
        judge=judge,
        controls={"chains that stay where they are more often": {"sticky": 0.5}},
        rivals={
            "nothing can be predicted": UNIFORM,
            "the losses of the predictors exchanged": jd.rolled(predicted_loss="predictor"),
        },
    ),
)
