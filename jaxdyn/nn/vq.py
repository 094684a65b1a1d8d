r"""Vector quantisation: the nearest of K vectors in the place of each vector, and an autoencoder of chunks of tokens through it.

.. math:: q(x) = e_{k(x)}, \quad k(x) = \arg\min_k \|x - e_k\|, \qquad
   L = -\log p(\text{chunk} \mid q(x)) + \|\mathrm{sg}[x] - e\|^2 + \beta \|x - \mathrm{sg}[e]\|^2

sg: no gradient passes; the gradient of the first term passes the quantiser unchanged (straight-through). Instead of the gradient
of the second term, vectors can move as exponential averages of what is assigned to them.

.. math:: x = W_2\,\mathrm{relu}(W_1 [t_1, \dots, t_r]), \qquad
   \text{logits} = U_2\,\mathrm{relu}(U_1 [q(x)] + G\,g), \quad t_i: \text{a token's embedding at place } i

for chunks of L tokens, each of whose L/r parts of r tokens becomes one code. g: the mean embedding of a prompt.
Source: arXiv:1711.00937, sections 3.1-3.2 and appendix A.1 (quantiser, loss, averages); arXiv:2502.03275, section 3.1 (of chunks of
a text, with the prompt before the decoder). Departure: the encoder and the decoder are networks of one hidden layer, of which the
encoder sees the r tokens of its code, the decoder the codes of a whole chunk.
Letters: n vectors of d numbers, K codes, V tokens, L tokens of a chunk, r tokens a code, c = L/r codes of a chunk, f hidden units.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from jaxdyn.errors import UsageError, number, require, shown, whole
from jaxdyn.linalg import dense
from jaxdyn.nn.config import validate
from jaxdyn.nn.tokens import checked
from jaxdyn.sampling import wide

__all__ = [
    "Averages",
    "Chunks",
    "Params",
    "averaged",
    "decode",
    "encode",
    "init",
    "loss",
    "nearest",
    "perplexity",
    "penalties",
    "spread",
    "started",
    "straight",
]

LEAST = 1e-30  # an average size that float32 still divides by


def nearest(x: Float[Array, "*n d"], codebook: Float[Array, "K d"]) -> Int[Array, "*n"]:
    r"""The number of the nearest vector, by :math:`\|x - e\|^2 = \|x\|^2 - 2 x \cdot e + \|e\|^2`; of equals the first."""
    return jnp.argmin(jnp.sum(jnp.square(codebook), -1) - 2 * x @ codebook.T, -1).astype(jnp.int32)


def straight(x: Float[Array, "*n d"], e: Float[Array, "*n d"]) -> Float[Array, "*n d"]:
    """The vectors e, through which the gradient passes to x as if they were x."""
    return x + jax.lax.stop_gradient(e - x)


def penalties(x: Float[Array, "*n d"], e: Float[Array, "*n d"]) -> tuple[Float[Array, "*n"], Float[Array, "*n"]]:
    r""":math:`\|\mathrm{sg}[x] - e\|^2`, which moves the codebook, and :math:`\|x - \mathrm{sg}[e]\|^2`, which moves x."""
    still = jax.lax.stop_gradient
    return jnp.sum(jnp.square(still(x) - e), -1), jnp.sum(jnp.square(x - still(e)), -1)


def perplexity(codes: Int[Array, "*n"], count: int, dtype: str = "float32") -> Float[Array, ""]:
    """The exponential of the entropy of the shares of codes: how many of the ``count`` codes are in use.

    NaN if a traced code is none of them.

    Raises:
        UsageError: without a code, and for a known one outside.
    """
    codes = checked(codes, whole("count", count, least=1), name="codes", of="count")
    if not codes.size:
        raise UsageError("codes are not allowed to be empty: their shares would be 0/0")
    share = jnp.zeros(count, jnp.int32).at[codes.ravel()].add(1).astype(wide(dtype)) / codes.size
    inside = jnp.all((codes >= 0) & (codes < count))
    return jnp.where(inside, jnp.exp(-jnp.sum(jax.scipy.special.xlogy(share, share))), jnp.nan).astype(dtype)


class Averages(NamedTuple):
    """Exponential averages of how many vectors each code was given, and of their sums."""

    size: Float[Array, " K"]
    total: Float[Array, "K d"]


def started(codebook: Float[Array, "K d"]) -> Averages:
    """Averages whose quotients are the codebook, in float32 at least: in bfloat16 they would stop moving."""
    vectors = codebook.astype(wide(codebook.dtype))
    return Averages(jnp.ones_like(vectors[:, 0]), vectors)


def averaged(
    averages: Averages, x: Float[Array, "n d"], codes: Int[Array, " n"], decay: float | Float[Array, ""]
) -> tuple[Averages, Float[Array, "K d"]]:
    r"""The averages after one more batch, and their codebook.

    .. math:: N_k \leftarrow \gamma N_k + (1 - \gamma) n_k, \quad m_k \leftarrow \gamma m_k + (1 - \gamma) \sum_{k(x) = k} x,
       \quad e_k = m_k / N_k

    A code that nothing was assigned to keeps its vector: where its average size is below :data:`LEAST`, nothing decays any more,
    since 0/0 would follow. A traced code outside the codebook is given to none.

    Raises:
        UsageError: for a known code outside the codebook, one code too many or too few, and a decay outside [0, 1].
    """
    codes = checked(codes, averages.size.shape[0], name="codes", of="K", axes=1)
    if x.shape != (codes.size, averages.total.shape[1]):
        raise UsageError(
            f"x={shown(x)} is not allowed: it has one vector of {averages.total.shape[1]} numbers for each of {codes.size} codes"
        )
    decay = number("decay", decay, least=0, most=1, traced=True)
    kept = jnp.where(averages.size < LEAST, 1.0, decay)
    size = kept * averages.size + (1 - decay) * _counted(averages.size, codes, 1.0)
    total = kept[:, None] * averages.total + (1 - decay) * _counted(averages.total, codes, x)
    narrow = jnp.finfo(x.dtype).bits < 32
    return Averages(size, total), (total / size[:, None]).astype(x.dtype if narrow else total.dtype)


def _counted(like: Float[Array, " K *d"], codes: Int[Array, " n"], x: float | Float[Array, " n *d"]) -> Float[Array, " K *d"]:
    """The sum of what each code was given."""
    return jnp.zeros_like(like).at[codes].add(x, mode="drop", wrap_negative_indices=False)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Chunks:
    """Sizes of the autoencoder; hashable."""

    vocabulary: int
    length: int  # L
    rate: int  # r
    codes: int  # K
    width: int = 16  # d
    hidden: int = 64  # f
    dtype: str = "float32"

    def __post_init__(self) -> None:
        validate(self, dict.fromkeys(("vocabulary", "length", "rate", "codes", "width", "hidden"), 1), {})
        require(self, self.length % self.rate == 0, "length is a multiple of rate", "length", "rate")

    @property
    def per_chunk(self) -> int:
        """Codes of a chunk."""
        return self.length // self.rate


class Params(NamedTuple):
    """Weights; tokens have one embedding at each of the r places of a code."""

    embed: Float[Array, "r V d"]
    inner: Float[Array, "rd f"]
    outer: Float[Array, "f d"]
    codebook: Float[Array, "K d"]
    back: Float[Array, "cd f"]
    prompt: Float[Array, "V f"]
    head: Float[Array, "f LV"]


def init(shape: Chunks, key: PRNGKeyArray) -> Params:
    """Gaussian weights of variance 1 over the number of inputs (embeddings and codebook: of 1; the prompt's: 0)."""
    s, keys = shape, jax.random.split(key, 6)

    def normal(i: int, fan: int, *size: int) -> Array:
        return (jax.random.normal(keys[i], size, wide(s.dtype)) * fan**-0.5).astype(s.dtype)

    return Params(
        embed=normal(0, 1, s.rate, s.vocabulary, s.width),
        inner=normal(1, s.rate * s.width, s.rate * s.width, s.hidden),
        outer=normal(2, s.hidden, s.hidden, s.width),
        codebook=normal(3, 1, s.codes, s.width),
        back=normal(4, s.per_chunk * s.width, s.per_chunk * s.width, s.hidden),
        prompt=jnp.zeros((s.vocabulary, s.hidden), s.dtype),
        head=normal(5, s.hidden, s.hidden, s.length * s.vocabulary),
    )


def encode(shape: Chunks, params: Params, chunk: Int[Array, "*b L"]) -> Float[Array, "*b c d"]:
    """The vectors of a chunk before they are quantised.

    Raises:
        UsageError: for chunks of another length, and known tokens outside the vocabulary.
    """
    chunk = _chunk(shape, chunk)
    parts = chunk.reshape(*chunk.shape[:-1], shape.per_chunk, shape.rate)
    x = jnp.asarray(params.embed)[jnp.arange(shape.rate, dtype=jnp.int32), parts]
    return dense(jax.nn.relu(dense(x.reshape(*parts.shape[:-1], -1), params.inner)), params.outer)


def decode(
    shape: Chunks, params: Params, e: Float[Array, "*b c d"], prompt: Int[Array, "*b p"] | None = None
) -> Float[Array, "*b L V"]:
    """Logits of the chunk's tokens, with the prompt's mean embedding if there is one.

    Raises:
        UsageError: for another number of codes, an empty prompt, and known tokens outside the vocabulary.
    """
    if e.shape[-2:] != (shape.per_chunk, shape.width):
        raise UsageError(f"e={shown(e)} is not allowed: a chunk has {shape.per_chunk} codes of {shape.width} numbers")
    y = dense(e.reshape(*e.shape[:-2], -1), params.back)
    y = (
        y
        if prompt is None
        else y + jnp.mean(jnp.asarray(params.prompt)[checked(prompt, shape.vocabulary, name="prompt", least=1)], -2)
    )
    return dense(jax.nn.relu(y), params.head).reshape(*e.shape[:-2], shape.length, shape.vocabulary)


def spread(shape: Chunks, params: Params, chunks: Int[Array, "K L"]) -> Params:
    """The same weights, with the first vectors that the encoder makes of these chunks for a codebook: all codes start in use.

    Raises:
        UsageError: unless there are as many chunks as codes.
    """
    if chunks.shape[0] != shape.codes:
        raise UsageError(f"chunks={shown(chunks)} are not allowed: there is one for each of {shape.codes} codes")
    return params._replace(codebook=encode(shape, params, chunks)[:, 0])


def loss(
    shape: Chunks,
    params: Params,
    chunk: Int[Array, "b L"],
    prompt: Int[Array, "b p"] | None = None,
    beta: float | Float[Array, ""] = 0.25,
    moving: float | Float[Array, ""] = 1.0,
) -> Float[Array, ""]:
    """Cross-entropy of the chunk's tokens, ``moving`` times the codebook's penalty, and ``beta`` times the encoder's.

    In float32 at least.

    Raises:
        UsageError: as of :func:`encode` and :func:`decode`.
    """
    chunk = _chunk(shape, chunk)
    x = encode(shape, params, chunk)
    e = params.codebook[nearest(x, params.codebook)]
    dtype = wide(shape.dtype)
    table = jax.nn.log_softmax(decode(shape, params, straight(x, e), prompt).astype(dtype))
    entropy = -jnp.mean(jnp.take_along_axis(table, chunk[..., None], -1))
    book, commitment = penalties(x.astype(dtype), e.astype(dtype))
    return entropy + moving * jnp.mean(book) + beta * jnp.mean(commitment)


def _chunk(shape: Chunks, chunk: Int[Array, "*b L"]) -> Int[Array, "*b L"]:
    """Tokens of the vocabulary, as many as a chunk has."""
    chunk = checked(chunk, shape.vocabulary, name="chunk")
    if chunk.shape[-1] != shape.length:
        raise UsageError(f"chunk={shown(chunk)} is not allowed: its last axis has length={shape.length} tokens")
    return chunk
