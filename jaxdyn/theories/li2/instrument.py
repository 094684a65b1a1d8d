r"""Laws of features, read from the last MLP of a transformer that learns to add residues: in which frequencies its nodes respond.

A node's response to the pairs (a, b), at the last place, has the sums z(h) over the pairs with a + b = h, and

.. math:: E = \sum_{k \ne 0} E_k, \qquad E_k = \tfrac12 \|\Pi_k z\|^2

is its energy, which feature learning climbs. Its maxima lie in one frequency each.

*Fourier.* Where a node reads :math:`u(a) + v(b)`, its energy for :math:`\sigma = x^2` is, as for small u and v of any activation,

.. math:: E_k \propto |\hat u_k|^2 |\hat v_k|^2, \qquad \text{gated:}\quad E_k \propto |\hat g_k \hat v_k + \hat u_k \hat f_k|^2

with g(a) + f(b) what the gate reads: a product of masses is purer than the masses.

*Forecast.* While outputs are small each node climbs its own energy, and ends in the frequency whose maximum it is drawn to: it is
in it before the network's outputs have moved.

Source: arXiv:2509.21519, theorems 1 and 2 (energy, corrected) and section 4. Letters: M residues, n pairs, K nodes, F frequencies.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from jaxdyn.instruments.law import Asked, Law
from jaxdyn.instruments.moment import Moment
from jaxdyn.nn import Transformer, choices
from jaxdyn.nn.activations import BlockActivations, reduce_blocks
from jaxdyn.nn.transformer import entering, normed, product, read

__all__ = ["FORECAST", "FOURIER", "INSTRUMENTS", "masses", "spectra"]

Curves = Mapping[str, Float[Array, "time ..."]]
NODES = 32  # that are read, of all
STILL = 0.9  # of the outputs' distance from the targets at the start, down to which nodes are forecast
LEARNED = 0.1  # of the loss at the start, from which on the data are learned
ADDITIVE = 0.9  # share of the variance of what nodes read that is a sum over operands, from which on the energy's form is compared


class Pairs(NamedTuple):
    """All pairs of residues as sequences, and their sums."""

    order: int
    tokens: Int[Array, "n 3"]
    sums: Int[Array, " n"]


class Response(NamedTuple):
    """The last MLP at work on all pairs, at the last place."""

    read: Float[Array, "n d"]
    units: Float[Array, "n K"]
    chances: Float[Array, "n V"]  # of the next token


def pairs(shape: Transformer) -> Pairs:
    """Every token but the last, the query, is a residue."""
    order = shape.vocabulary - 1
    left, right = jnp.divmod(jnp.arange(order**2, dtype=jnp.int32), order)
    return Pairs(order, jnp.stack([left, right, jnp.full_like(left, order)], 1), (left + right) % order)


def chosen(shape: Transformer) -> Int[np.ndarray, " K"]:
    """Nodes that are read, evenly among all."""
    assert shape.hidden is not None  # a law needs an MLP
    return np.linspace(0, shape.hidden - 1, min(NODES, shape.hidden)).astype(int)


def look(moment: Moment, every: Pairs) -> Response:
    """One pass over all pairs."""
    shape, places = moment.shape, chosen(moment.shape)

    def reduce(block: BlockActivations) -> tuple[Array, Array]:
        stream = block.before[:, -1]
        if not shape.parallel:
            stream = stream * jnp.asarray(shape.skip, stream.dtype) + block.written[:, -1]
            stream = normed(shape, block.weights, "attention_norm", stream) if shape.norm_place == "post" else stream
        return entering(shape, block.weights, "mlp_norm", stream), block.units[:, -1, places]

    x, seen = reduce_blocks(shape, moment.params, every.tokens, reduce)
    z, units = (part[-1].astype(jnp.float32) for part in seen)
    return Response(z, units, jax.nn.softmax(read(shape, moment.params, x[:, -1]).astype(jnp.float32)))


def spectra(responses: Float[Array, "n K"], every: Pairs) -> Float[Array, "K F"]:
    """The share of every frequency in each node's energy."""
    sums = jax.ops.segment_sum(responses, every.sums, every.order)
    return shared(jnp.square(jnp.abs(jnp.fft.rfft(sums, axis=0)[1:])).T)


def shared(energies: Float[Array, "K F"]) -> Float[Array, "K F"]:
    """Parts over their sum; zeros of what has none."""
    total = jnp.sum(energies, -1, keepdims=True)
    return energies / jnp.where(total > 0, total, 1)


def operands(x: Float[Array, "n K"], order: int) -> tuple[Float[Array, "M K"], Float[Array, "M K"]]:
    """A function of pairs as a sum of functions of both operands, without its mean."""
    table = x.reshape(order, order, -1)
    table = table - jnp.mean(table, (0, 1))
    return jnp.mean(table, 1), jnp.mean(table, 0)


def additive(x: Float[Array, "n K"], order: int) -> Float[Array, ""]:
    """The share of the variance of functions of pairs that is a sum over operands."""
    u, v = operands(x, order)
    total = jnp.sum(jnp.square(x - jnp.mean(x, 0)))
    return order * (jnp.sum(jnp.square(u)) + jnp.sum(jnp.square(v))) / jnp.where(total > 0, total, 1)


def reads(moment: Moment, z: Float[Array, "n d"]) -> list[Float[Array, "n K"]]:
    """What the nodes read: by the upper matrix, and by the gate if there is one."""
    shape, places = moment.shape, chosen(moment.shape)
    w = {name: weight[-1].astype(jnp.float32) for name, weight in moment.params["blocks"].items()}
    names = ("up", "gate") if shape.mlp == "gated" else ("up",)
    return [product(shape, w, name, z)[:, places] for name in names]


def masses(what: list[Float[Array, "n K"]], order: int) -> Float[Array, "K F"]:
    r"""The share of every frequency in the energy by its form :math:`|\hat u_k \hat v_k|^2`, or that of gated nodes."""
    (u, v), *gate = ([jnp.fft.rfft(side, axis=0)[1:] for side in operands(x, order)] for x in what)
    across = gate[0][0] * v + u * gate[0][1] if gate else u * v
    return shared(jnp.square(jnp.abs(across)).T)


def loss(moment: Moment, every: Pairs, chances: Float[Array, "n V"]) -> Float[Array, ""]:
    """The loss on the batch."""
    known, batch = moment.batch.known, moment.batch
    rows = chances[known["left"] * every.order + known["right"]]
    return -jnp.sum(batch.weights[:, -1] * jnp.log(jnp.take_along_axis(rows, batch.targets[:, -1:], 1)[:, 0] + 1e-30))


def as_distances(shares: Float[Array, "... F"]) -> Float[Array, "... F"]:
    """Scaled so that the mean absolute difference of shares is half the sum of their differences: 1 at most."""
    return shares * (shares.shape[-1] / 2)


def linear(asked: Asked) -> str:
    """Of nodes without a product of both operands there is no energy."""
    plain = asked.shape.mlp == "plain" and set(choices.names(asked.shape.activation)) == {"linear"}
    return "The energy of linear nodes is zero: their response to a pair is a sum over its operands." if plain else ""


# energy and masses


def read_fourier(moment: Moment) -> dict[str, Array]:
    """Energies of nodes by frequency; by their form from what nodes read; how far that is a sum, and the loss."""
    every = pairs(moment.shape)
    seen = look(moment, every)
    what = reads(moment, seen.read)
    return {
        "response": spectra(seen.units, every),
        "form": masses(what, every.order),
        "additive": jnp.min(jnp.stack([additive(x, every.order) for x in what])),
        "loss": loss(moment, every, seen.chances),
    }


def learned(curve: Float[Array, " time"]) -> Bool[Array, " time"]:
    """Where the loss is a tenth of that at the start, at most."""
    return curve <= LEARNED * curve[0]


FOURIER = Law(
    name="fourier",
    title="A node's energy in a frequency is the product of its operands' masses",
    theory=(
        r"Of a node that reads $u(a) + v(b)$ the energy is in frequency $k$ like $|\hat u_k|^2 |\hat v_k|^2$: exactly for squares, "
        "and for other activations where features are pure. Predicted from what nodes read are the shares of all frequencies in "
        "their responses, once the data are learned and 90% of what they read is such a sum."
    ),
    source="arXiv:2509.21519, theorems 1 and 2",
    read=read_fourier,
    own=("response",),
    measure=lambda own: as_distances(own["response"]),
    predict=lambda others: as_distances(others["form"]),
    speaks=lambda curves: learned(curves["loss"]) & (curves["additive"] >= ADDITIVE),
    dims="node frequency",
    bound=0.1,
    absolute=True,
    needs=("MLP",),
    data=("groups",),
    refuses=linear,
    cost=0.5,
)

# the frequency in which a node ends


class Watched(NamedTuple):
    """The frequency forecast for every node, and the outputs at the start."""

    place: Int[Array, " K"]
    chances: Float[Array, "n V"]


def begun(moment: Moment) -> Watched:
    """At the start."""
    every = pairs(moment.shape)
    seen = look(moment, every)
    return Watched(places(spectra(seen.units, every)), seen.chances)


def places(share: Float[Array, "K F"]) -> Int[Array, " K"]:
    """The frequency of each node's largest energy; -1 of nodes that respond to no pair."""
    return jnp.where(jnp.any(share > 0, -1), jnp.argmax(share, -1), -1).astype(jnp.int32)


def read_forecast(moment: Moment, at: Watched) -> tuple[dict[str, Array], Watched]:
    """The frequency of every node's largest energy, now and before the outputs come near the targets, their distance, the loss."""
    every = pairs(moment.shape)
    seen = look(moment, every)
    aims = jax.nn.one_hot(every.sums, moment.shape.vocabulary, dtype=jnp.float32)
    far = jnp.linalg.norm(seen.chances - aims) / jnp.linalg.norm(at.chances - aims)
    share = spectra(seen.units, every)
    now = places(share)
    place = jnp.where(far > STILL, now, at.place)
    count = share.shape[-1]
    one, ahead = (jax.nn.one_hot(x, count, dtype=jnp.float32) for x in (now, place))
    ahead = jnp.where(place[:, None] < 0, 1 / count, ahead)  # a node that is silent may wake in any frequency
    return {"place": one, "forecast": ahead, "far": far, "loss": loss(moment, every, seen.chances)}, at._replace(place=place)


def forecast_of(others: Curves) -> Float[Array, "time K F"]:
    """The forecast, one for the whole run."""
    return as_distances(jnp.broadcast_to(others["forecast"][-1:], others["forecast"].shape))


def ended(curves: Curves) -> Bool[Array, " time"]:
    """The last reading, of runs that have learned the data."""
    n = curves["loss"].shape[0]
    return learned(curves["loss"]) & (curves["far"] <= STILL) & (jnp.arange(n) == n - 1)


def chance(predicted: Float[Array, "*runs F"], measured: Float[Array, "*runs F"]) -> Float[Array, "*runs F"]:
    """All frequencies alike."""
    return 0 * predicted + as_distances(1 / predicted.shape[-1] + 0 * measured)


FORECAST = Law(
    name="forecast",
    title="Nodes are in their final frequency before the outputs move",
    theory=(
        "While outputs are small each node climbs its own energy, whose maxima have one frequency each. The frequency of its "
        "largest energy at the last reading at which the outputs are less than a tenth nearer to the targets than at the start is "
        "its frequency at the end. The error is the share of nodes that end in another one: by chance, 10 of 11."
    ),
    source="arXiv:2509.21519, section 4",
    read=read_forecast,
    own=("place",),
    measure=lambda own: as_distances(own["place"]),
    predict=forecast_of,
    speaks=ended,
    dims="node frequency",
    off=chance,
    bound=0.5,
    absolute=True,
    needs=("MLP",),
    data=("groups",),
    refuses=linear,
    memory=begun,
    cost=0.5,
)

INSTRUMENTS: tuple[Any, ...] = (FOURIER, FORECAST)
