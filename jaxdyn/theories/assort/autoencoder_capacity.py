"""What an autoencoder with K codes can restore: one built by hand, and a trained one.

How many chunks K codes can restore: an autoencoder built by hand, and all choices of what its codes stand for.

The encoder writes a chunk as the sum of unit vectors, one for each of its (place, token) pairs; the codebook holds those of the
K most frequent chunks; the decoder reads the unit vectors. A chunk is restored if it is in the codebook. No code can stand for two
chunks, so the share of restored chunks is at most the sum of the K largest frequencies, which this attains.
Letters: V tokens, L tokens of a chunk, K codes, D different chunks.

The trained autoencoder of traces: its codes say something about traces that are new, and many of them are in use.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float, Int, PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting, train
from jaxdyn.data.traces import Problem
from jaxdyn.nn import vq
from jaxdyn.theories.assort.model import BOOKS, Coding, begun, fitted, problems, recode, restored

FEW = 8  # chunks of which all sets are tried
LIGHT, HEAVY = 0.2, 1.0  # smallest and largest weight of a chunk; frequencies are in proportion


@jd.setting
class Capacity:
    """A source of chunks with random frequencies, and a codebook of the most frequent or the rarest of them."""

    distinct: jd.Swept = jd.field(16.0, at_least=1, whole=True)  # D, different chunks of the source
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


def capacity_trial(s: Capacity, key: PRNGKeyArray) -> jd.Observables:
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


def plot_capacity(ds: xr.Dataset, fig: Figure) -> None:
    """Restored share over the number of different chunks."""
    ax = fig.subplots()
    ax.plot(ds.distinct, ds.predicted_restored.mean("seed"), "--", color=plotting.COLORS["theory"], label="largest frequencies")
    ax.plot(ds.distinct, ds.measured_restored.mean("seed"), "o", color=plotting.COLORS["measured"], label="autoencoder")
    for codes in np.unique(ds.codes):
        ax.axvline(codes, linestyle=":", color=plotting.COLORS["control"])
    ax.set(xlabel="different chunks", ylabel="restored share", ylim=(0, 1.05))
    ax.legend()


CAPACITY = jd.Study(
    trial=capacity_trial,
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

HELD_OUT = 256  # problems


def watched(s: Coding, coder: vq.Params, held: Problem, key: PRNGKeyArray) -> dict[str, Float[Array, ""]]:
    """Share of tokens restored from their codes and from codes renamed at random, and how many codes are in use."""
    codes = recode(s, coder, held.trace)
    other = jax.random.permutation(key, s.codes).astype(jnp.int32)[codes]
    share = {name: jnp.mean(restored(s, coder, held.trace, held.prompt, z)) for name, z in (("own", codes), ("other", other))}
    return {"restored": share["own"], "mixed": share["other"], "perplexity": vq.perplexity(codes, s.codes, s.dtype)}


def autoencoder_trial(s: Coding, key: PRNGKeyArray) -> jd.Observables:
    """Train, and observe before and after."""
    k_fit, k_held, k_mix = jax.random.split(key, 3)
    held = problems(s, k_held, HELD_OUT)
    last, first = fitted(s, k_fit), begun(s, jax.random.split(k_fit)[0])
    end, start = watched(s, last, held, k_mix), watched(s, first, held, k_mix)
    return jd.observables(
        predicted={},
        measured={name: end[name] for name in ("restored", "perplexity")},
        recorded={"mixed": end["mixed"]} | {f"start_{name}": start[name] for name in ("restored", "perplexity")},
        status=train.finite_status(last),
    )


LEAST = 0.5  # of the tokens
IN_USE = 16.0  # of 32 codes


def judge_autoencoder(ds: xr.Dataset) -> list[jd.Check]:
    """Restored tokens, and codes in use, on average over runs, for both ways to move the codebook."""
    jd.need(ds, book=BOOKS)
    return [
        jd.mean_within("share of restored tokens", ds.measured_restored, over="seed", low=LEAST),
        jd.mean_within("perplexity of the codes", ds.measured_perplexity, over="seed", low=IN_USE),
    ]


def plot_autoencoder(ds: xr.Dataset, fig: Figure) -> None:
    """Restored tokens and codes in use, before and after training, by how the codebook moves."""
    axes = fig.subplots(1, 2)
    for ax, name, label in zip(
        axes, ("restored", "perplexity"), ("share of restored tokens", "perplexity of 32 codes"), strict=True
    ):
        for i, book in enumerate(np.atleast_1d(ds.book.values)):
            one = ds.sel(book=book) if "book" in ds.dims else ds
            for side, color in ((f"start_{name}", "control"), (f"measured_{name}", "measured")):
                ax.plot(np.full(one.sizes["seed"], i), one[side].values.ravel(), "o", ms=4, color=plotting.COLORS[color])
        ax.set_xticks(range(len(BOOKS)), [f"by its {b}" if b == "gradient" else f"as {b}" for b in BOOKS])
        ax.set(ylabel=label, ylim=(0, None))


AUTOENCODER = jd.Study(
    trial=autoencoder_trial,
    quick=jd.grid(Coding, book=list(BOOKS)),
    paper=jd.grid(Coding, book=list(BOOKS), height=8, rate=4, codes=128, vq_hidden=256, vq_steps=5000.0),
    seeds=6,
    paper_seeds=8,
    evidence="network",
    source="arXiv:2502.03275, section 3.1 (autoencoder); arXiv:1711.00937, appendix A.1 (averages); sizes ours",
    tested="An autoencoder of chunks of {rate} tokens with {codes} codes, trained by Adam for {vq_steps} steps at rate {vq_lr} "
    "on logs of searches in two chains of {height} edges (90 different chunks), whose codebook starts from the encoder's "
    "vectors of {codes} chunks; {seeds} seeds. The codebook moves by: {book}.",
)


CLAIMS = (
    CAPACITY.claim(
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
        plot=plot_capacity,
        caption="Share of chunks that the constructed autoencoder with 16 codes (dotted) restores, and the sum of the 16 largest "
        "frequencies (dashed), over the number of different chunks; means of all runs.",
    ),
    AUTOENCODER.claim(
        id="assort.autoencoder",
        title="A small autoencoder learns codes for pieces of search logs",
        statement="An autoencoder of chunks of two tokens with 32 codes, which start from the encoder's vectors of as many "
        "chunks, is trained by Adam at rate .003 for 300 steps of 128 chunks from logs of searches. On average over runs it then "
        "restores more than half of the tokens of new logs, which have 90 different chunks, from its codes, and its codebook "
        "does not collapse: the perplexity of the codes is above 16, whether the codebook moves by its gradient or as averages.",
        talks=("practical:assort-figure-vqvae",),
        bounds=jd.tuned(on="0:6", confirmed_on="4000:4006"),
        judge=judge_autoencoder,
        controls={
            "codebook starts from random vectors": {"spread": 0.0},
            "codes renamed at random": jd.swap(measured_restored="mixed"),
        },
        rivals={"nothing moves": jd.off({"share of restored tokens": lambda ds: float(ds.start_restored.mean("seed").max())})},
        plot=plot_autoencoder,
        caption="Share of tokens restored from their codes, and perplexity of the codes, on traces that were not trained on: a "
        "point per run, before training (grey) and after.",
    ),
)
