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
from jaxdyn.theories.ih import published

__all__ = ["Baselines", "CLAIMS", "judge", "trial"]


@jd.setting
class Baselines:
    """Chains and sequences; ``sticky`` adds that much to the diagonal of every transition matrix, a breach of the Dirichlet law."""

    sticky: jd.Swept = jd.field(0.0, at_least=0)
    tokens: int = 3
    length: int = jd.field(100, at_least=2)
    count: int = jd.field(4000, at_least=2)

    def __post_init__(self) -> None:
        allowed = ", ".join(map(str, published.LOSSES))
        jd.require(self, self.tokens in published.LOSSES, f"tokens is one of {allowed}", "tokens")


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
    table = jnp.asarray(published.LOSSES[k], jnp.float64)
    return jd.observables(
        predicted={
            "loss": jd.named(table, "predictor"),
            "entropy": jnp.asarray(float(np.sum(1 / np.arange(2, k + 1))), jnp.float64),
        },
        measured={"loss": jd.named(jnp.mean(losses, 0), "predictor"), "entropy": jnp.mean(entropy)},
        coords={"predictor": published.PREDICTORS},
    )


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """Losses against the table, and the entropy of a row."""
    gap, entropy = ds.measured_loss - ds.predicted_loss, ds.measured_entropy - ds.predicted_entropy
    return [
        jd.mean_within("losses minus those of the table", gap, over="seed", low=-0.01, high=0.01),
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
        ax.plot(place, part.predicted_loss.isel(seed=0), "_", color=plotting.COLORS["theory"], markersize=24, label="table")
        ax.plot([], [], "o", color=plotting.COLORS["measured"], label="4000 sequences")
        ax.set(xticks=place, xticklabels=part.predictor.values, xlabel="what is known", ylabel="loss", title=f"{k} states")


STUDY = jd.Study(
    trial=trial,
    quick=jd.grid(Baselines, tokens=[2, 3]),
    seeds=16,
    paper_seeds=64,
    evidence="algebra",
    source="arXiv:2402.11004, section 2 (predictors); losses from an independent computation; the entropy is exact",
    plot=plot,
    caption="Losses of four predictors on sequences of 100 tokens, one point per run of 4000 sequences, and the table's (bars).",
)

CLAIMS = (
    STUDY.claim(
        id="ih.baselines",
        statement=r"On sequences of 100 tokens from chains with 2 or 3 states whose transition rows are uniform on the simplex, "
        r"the mean losses by nothing ($\ln k$), counts of tokens $(n_j + 1)/(t + k)$, counts of pairs "
        r"$(n_{ij} + 1)/(n_i + k)$ and the chain itself are within 0.01 nats of 0.6931, 0.5745, 0.5090, 0.479 (k = 2) and "
        r"1.0986, 1.0048, 0.8850, 0.8175 (k = 3), and the mean entropy of a row is $\sum_{j=2}^k 1/j$ within 0.01. "
        "(By sampling; no network is trained.)",
        bounds="derived",  # errors of sampling, here and in the table
        judge=judge,
        controls={"chains that stay where they are more often": {"sticky": 0.5}},
        rivals={
            "nothing can be predicted": UNIFORM,
            "the losses of the predictors exchanged": jd.rolled(predicted_loss="predictor"),
        },
    ),
)
