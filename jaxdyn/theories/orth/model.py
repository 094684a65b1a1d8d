r"""Groups of vectors of a language model that belong to different words, and how far from orthogonal a group is.

The groups are: the embeddings of the first n different words of the validation text; the residual stream before each block and
after the last, at the places where these words first occur, raw and without its mean over the n vectors; and the rows that each
MLP writes into the stream (columns of its output projection).

Source: arXiv:2310.00535, the assumption of orthogonal embeddings and its figure on Pythia's checkpoints. Which vectors that
figure shows in hidden layers is not recorded. Letters: n vectors, d width, L layers, g groups.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PyTree

from jaxdyn import linalg, nn
from jaxdyn.errors import UsageError
from jaxdyn.nn.observe import unit
from jaxdyn.text import language

LEVEL = 0.99  # quantile of |cos|


class Probe(NamedTuple):
    """Windows of a text, and where in them (as one stream) words occur for the first time."""

    tokens: Int[np.ndarray, "b length"]
    places: Int[np.ndarray, " n"]

    @property
    def words(self) -> Int[np.ndarray, " n"]:
        """The different words."""
        return self.tokens.reshape(-1)[self.places]


def probe(stream: Int[np.ndarray, " t"], length: int, vectors: int) -> Probe:
    """The first windows of a stream that hold so many different words.

    Raises:
        UsageError: if the stream has fewer.
    """
    whole = stream[: len(stream) // length * length]
    _, first = np.unique(whole, return_index=True)
    places = np.sort(first)[:vectors]
    if len(places) < vectors:
        raise UsageError(f"vectors={vectors} is not allowed: the validation text has {len(places)} different words")
    return Probe(whole.reshape(-1, length)[: places[-1] // length + 1], places)


class Spread(NamedTuple):
    """How far from orthogonal n vectors are."""

    mean: Float[Array, ""]  # of |cos| over pairs
    rms: Float[Array, ""]
    high: Float[Array, ""]  # quantile LEVEL of |cos|
    top: Float[Array, ""]  # largest eigenvalue of the Gram matrix of the unit vectors, as a share of its trace
    gram: Float[Array, ""]  # Frobenius norm of that matrix minus the identity


def spread(vectors: Float[Array, "n d"]) -> Spread:
    """Statistics of the cosines over pairs of different rows; the quantile is the nearest rank."""
    u = unit(vectors)
    n, d = u.shape
    pairs = n * (n - 1)
    cosines = jnp.where(jnp.eye(n, dtype=bool), -1, jnp.abs(u @ u.T))  # the diagonal sorts first
    ranked = jnp.sort(cosines.reshape(-1))[n:]
    values = linalg.eigvalsh(u @ u.T if n <= d else u.T @ u)
    return Spread(
        mean=nn.mean_cosine(vectors),
        rms=jnp.sqrt(jnp.sum(jnp.square(ranked)) / pairs),
        high=ranked[round(LEVEL * (pairs - 1))],
        top=values[-1] / jnp.sum(values),
        gram=nn.unit_gram_error(vectors),
    )


def names(layers: int) -> tuple[str, ...]:
    """The groups' names, in the order of :func:`groups`."""
    streams = range(layers + 1)
    return (
        "embedding",
        *(f"input {i}" for i in streams),
        *(f"centred {i}" for i in streams),
        *(f"written {i}" for i in range(layers)),
    )


def groups(net: nn.Network, params: PyTree, probed: Probe) -> tuple[Float[Array, "g n d"], Float[Array, ""]]:
    """The groups of vectors, and the loss on the probed windows (nats per word), from one pass over them."""
    tokens = jnp.asarray(probed.tokens)
    out, observed = net.trunk(params, tokens, observe=("inputs",))
    inputs = observed["inputs"].reshape(net.shape.layers + 1, -1, net.shape.width)[:, probed.places]
    centred = inputs - jnp.mean(inputs, 1, keepdims=True)
    written = params["blocks"]["down"][:, : len(probed.places)]
    vectors = jnp.concatenate([params["embed"][probed.words][None], inputs, centred, written])
    last = out[:, :-1].reshape(-1, net.shape.width)
    return vectors, language.cross_entropy(last, *nn.read_out(params), tokens[:, 1:].reshape(-1))
