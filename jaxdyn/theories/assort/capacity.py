"""How many chunks K codes can restore: an autoencoder built by hand, and all choices of what its codes stand for.

The encoder writes a chunk as the sum of unit vectors, one for each of its (place, token) pairs; the codebook holds those of the
K most frequent chunks; the decoder reads the unit vectors. A chunk is restored if it is in the codebook. No code can stand for two
chunks, so the share of restored chunks is at most the sum of the K largest frequencies, which this attains.
Letters: V tokens, L tokens of a chunk, K codes, D different chunks.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float, Int, PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.nn import vq

FEW = 8  # chunks of which all sets are tried
LIGHT, HEAVY = 0.2, 1.0  # smallest and largest weight of a chunk; frequencies are in proportion


@jd.setting
class Capacity:
    """A source of chunks with random frequencies, and a codebook of the most frequent or the rarest of them."""

    distinct: jd.Swept = jd.field(16.0, at_least=1)  # D, different chunks of the source
    kept: jd.Code = jd.code("frequent", "rare")  # chunks that the codebook holds
    vocabulary: int = 6  # V, tokens
    length: int = 2  # L, tokens of a chunk
    codes: int = jd.field(16, at_least=1)  # K, chunks that the codebook has room for
    dtype: str = "float64"

    def __post_init__(self) -> None:
        """Refuse more chunks or codes than there are, and fewer chunks than are tried."""
        most = self.vocabulary**self.length
        jd.require(self, FEW <= most, f"there are at least {FEW} chunks", "vocabulary", "length")
        jd.require(self, self.distinct <= most, f"distinct is at most {most}", "distinct", "vocabulary", "length")
        jd.require(self, self.codes <= most, f"codes is at most {most}", "codes", "vocabulary", "length")

    def chunks(self) -> vq.Chunks:
        """The autoencoder, one code per chunk, as wide as there are places times tokens."""
        wide = self.vocabulary * self.length
        sizes = {"length": self.length, "rate": self.length, "width": wide, "hidden": wide}
        return vq.Chunks(vocabulary=self.vocabulary, codes=self.codes, dtype=self.dtype, **sizes)


def built(shape: vq.Chunks, kept: Int[Array, "K L"]) -> vq.Params:
    """Weights of the autoencoder whose codebook holds the chunks ``kept``."""
    one = jnp.eye(shape.width, dtype=shape.dtype)
    params = vq.Params(
        embed=one.reshape(shape.rate, shape.vocabulary, shape.width),
        inner=jnp.tile(one, (shape.rate, 1)),
        outer=one,
        codebook=jnp.zeros((shape.codes, shape.width), shape.dtype),
        back=one,
        prompt=jnp.zeros((shape.vocabulary, shape.hidden), shape.dtype),
        head=one,
    )
    return vq.spread(shape, params, kept)


def largest(frequency: Float[Array, " D"]) -> Float[Array, " sets"]:
    """The largest share that 1, 2, ... codes restore, of all ways to give each a chunk."""
    sets = (np.arange(2 ** len(frequency))[:, None] >> np.arange(len(frequency))) & 1
    share = jnp.asarray(sets, frequency.dtype) @ frequency
    return jnp.stack([jnp.max(share[np.flatnonzero(sets.sum(1) == k)]) for k in range(1, len(frequency) + 1)])


def trial(s: Capacity, key: PRNGKeyArray) -> jd.Observables:
    """Shares restored by the construction and by formula."""
    shape, most = s.chunks(), s.vocabulary**s.length
    k_order, k_share = jax.random.split(key)
    number = jax.random.permutation(k_order, most)
    chunk = (number[:, None] // s.vocabulary ** jnp.arange(s.length)) % s.vocabulary  # [most, L]
    there = jnp.arange(most) < s.distinct
    weight = jnp.where(there, jax.random.uniform(k_share, (most,), s.dtype, LIGHT, HEAVY), 0)
    frequency = weight / jnp.sum(weight)
    order = jnp.argsort(jnp.where(s.kept == "frequent", -frequency, jnp.where(there, frequency, 2.0)))
    params = built(shape, chunk[order[: s.codes]].astype(jnp.int32))
    e = params.codebook[vq.nearest(vq.encode(shape, params, chunk), params.codebook)]
    restored = jnp.all(jnp.argmax(vq.decode(shape, params, e), -1) == chunk, -1)
    few = weight[:FEW] + jnp.where(there[:FEW], 0, 0.1)
    return jd.observables(
        predicted={
            "restored": jnp.sum(jnp.sort(frequency)[::-1][: s.codes]),
            "best": jd.named(jnp.cumsum(jnp.sort(few)[::-1]), "sets"),
        },
        measured={"restored": jnp.sum(frequency * restored), "best": jd.named(largest(few), "sets")},
        recorded={
            "codes": jnp.float64(s.codes),
            "whole": jnp.ones((), s.dtype),
            "equal": jd.named(jnp.arange(1, FEW + 1) * jnp.mean(few), "sets"),
        },
        coords={"sets": range(1, FEW + 1)},
    )


DISTINCT = [4.0, 15.0, 16.0, 17.0, 24.0, 36.0]


def judge_capacity(ds: xr.Dataset) -> list[jd.Check]:
    """Restored shares, where they are one, and the best of all sets of chunks."""
    jd.need(ds, distinct=2)
    spare = ds.codes - ds.distinct
    few, lost = ds.measured_restored.where(spare >= 0), (1 - ds.measured_restored).where(spare < 0)
    if not (few.notnull().any() and lost.notnull().any()):
        raise jd.Inconclusive("sources of up to as many chunks as codes, and of more, are needed")
    # what is lost has at least the smallest weight, what is restored at most the largest
    least = LIGHT * -spare / (LIGHT * -spare + HEAVY * ds.codes)
    return [
        jd.at_most("restored share: absolute error", abs(ds.measured_restored - ds.predicted_restored), 1e-12),
        jd.at_least("restored share, up to as many chunks as codes", few.where(few.notnull(), 1.0), 1 - 1e-12),
        jd.at_least(
            "share not restored over the least possible, more chunks than codes", (lost / least).where(spare < 0, 1.0), 1 - 1e-9
        ),
        jd.at_most("largest share of all sets of chunks: absolute error", abs(ds.measured_best - ds.predicted_best), 1e-12),
    ]


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Restored share over the number of different chunks."""
    ax = fig.subplots()
    ax.plot(ds.distinct, ds.predicted_restored.mean("seed"), "--", color=plotting.COLORS["theory"], label="largest frequencies")
    ax.plot(ds.distinct, ds.measured_restored.mean("seed"), "o", color=plotting.COLORS["measured"], label="autoencoder")
    for codes in np.unique(ds.codes):
        ax.axvline(codes, linestyle=":", color=plotting.COLORS["control"])
    ax.set(xlabel="different chunks", ylabel="restored share", ylim=(0, 1.05))
    ax.legend()


STUDY = jd.Study(
    trial=trial,
    quick=jd.grid(Capacity, distinct=DISTINCT),
    paper=jd.grid(Capacity, distinct=DISTINCT),
    seeds=8,
    paper_seeds=32,
    evidence="algebra",
    bounds="derived: float64 rounding; D chunks of weights from .2 to 1 leave at least .2 (D - K) of .2 (D - K) + K unrestored",
    source="derived, for the autoencoder of arXiv:2502.03275, section 3.1, without a prompt",
    tested="Explicit weights, no training: {codes} codes and {distinct} different chunks of {length} tokens with random "
    f"frequencies, {{seeds}} draws. That no choice restores more is searched among all sets of {FEW} chunks.",
)

CLAIMS = (
    STUDY.claim(
        id="assort.capacity",
        title="K codes restore at most the K most frequent chunks",
        statement="An autoencoder with $K$ codes, each of which stands for one chunk of tokens, restores at most the sum of "
        "the $K$ largest frequencies of chunks, and explicit weights attain this: all chunks are restored if and only if at "
        "most $K$ different ones occur.",
        decides={
            "if and only if": (
                "share not restored over the least possible, more chunks than codes",
                "measured with another number of chunks",
            )
        },
        talks=("practical:assort-figure-vqvae",),
        judge=judge_capacity,
        controls={
            "codes for the rarest chunks": {"kept": "rare"},
            "measured with another number of chunks": jd.rolled(measured_restored="distinct"),
        },
        rivals={
            "everything is restored": jd.swap(predicted_restored="whole"),
            "all chunks count alike": jd.swap(predicted_best="equal"),
        },
        plot=plot,
        caption="Share of chunks that the constructed autoencoder with 16 codes (dotted) restores, and the sum of the 16 largest "
        "frequencies (dashed), over the number of different chunks; means of all runs.",
    ),
)
