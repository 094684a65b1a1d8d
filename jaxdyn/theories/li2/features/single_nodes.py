r"""Networks trained from their standard start until they generalise, and what the theory forecasts for each node.

Predicted from the start and the training pairs alone: the irrep of every node (``dynamics/nodes.py``). Measured: the irrep with the
largest share of the node's weights in the trained network, purity, energy on the sphere over all pairs. Other landscape: the climb
on the same targets, given to pairs in a random order. Read off the start without a flow: the irrep of the fastest growth, and of
the best alignment of both layers. The use of an irrep is the sum over nodes of its share times
:math:`\|w\|^2 \|v\|`, for :math:`\sigma = x^2` the size of what the node adds to the outputs; the theory's counts nodes.
Letters as in ``training.py``; p irreps without the trivial one, conjugate pairs as one.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

import jaxdyn as jd
from jaxdyn.data.groups import parse
from jaxdyn.data.irreps import Irreps, decompose
from jaxdyn.theories.li2 import model
from jaxdyn.theories.li2.dynamics import energy, nodes
from jaxdyn.theories.li2.training import Data, Training, data, train


class Forecast(NamedTuple):
    """Shares of the irreps in every node: by each form of the theory, on another landscape, and at the start."""

    forms: Float[Array, "form K p"]
    other: Float[Array, "K p"]
    start: Float[Array, "K p"]


def targets(d: Data, s: Training) -> Float[Array, "n M"]:
    """Centred targets of the training pairs, in the order of the Cayley table."""
    group = parse(s.group)
    rows = d.samples.reshape(-1, 2)
    at = rows[:, 0] * group.order + rows[:, 1]
    known = jnp.zeros(group.order**2, bool).at[at].max((d.number < d.used).reshape(-1))
    return nodes.aims(model.products(group, model.pairs(group.order)), known, group.order)


def forecast(p: model.Params, y: Float[Array, "n M"], key: PRNGKeyArray, s: Training, irreps: Irreps) -> Forecast:
    """What the theory and its rivals forecast for every node, from the start alone."""
    elsewhere = y[jax.random.permutation(key, len(y))]
    *ends, other = nodes.follow(p, [*((form, y) for form in nodes.FORMS), ("node", elsewhere)], s.activation)
    forms = jnp.stack([nodes.shares(w, irreps) for w in ends])
    return Forecast(forms, nodes.shares(other, irreps), nodes.shares(p.w, irreps))


def trial(s: Training, key: PRNGKeyArray) -> jd.Observables:
    """One trained network, and the forecasts for its nodes."""
    # the start, as the trainer has it, and the forecasts
    irreps = decompose(parse(s.group))
    peaks = energy.peaks(irreps)
    k_data, k_init = jax.random.split(key)  # as in ``train``
    d, p = data(s, k_data), model.init(k_init, irreps.group.order, s.hidden, s.dtype)
    p = p._replace(v=p.v * jnp.asarray(s.top, s.dtype))
    ahead = forecast(p, targets(d, s), jax.random.fold_in(key, 1), s, irreps)
    exact = jnp.asarray([peak.energy for peak in peaks])

    # the network along training
    def watch(now: model.Params, before: model.Params, d: Data) -> dict[str, Array]:
        share = nodes.shares(now.w, irreps)
        place = jnp.argmax(share, 1)
        unit = now.w / jnp.linalg.norm(now.w, axis=0)
        return {"place": place, "energy": energy.energy(unit, irreps.group) / exact[place]}

    run = train(s, key, watch)
    end = nodes.shares(run.params.w, irreps)
    places, drawn = jnp.argmax(ahead.forms, -1), nodes.lots(p, irreps, s.activation)
    return jd.observables(
        predicted={"place": jd.named(places.astype(jnp.float32), "form node")},
        measured={"place": jd.named(jnp.argmax(end, 1).astype(jnp.float32), "node")},
        recorded={
            "start_place": jd.named(jnp.argmax(ahead.start, 1).astype(jnp.float32), "node"),
            "other_place": jd.named(jnp.argmax(ahead.other, 1).astype(jnp.float32), "node"),
            "lot_place": jd.named(jnp.argmax(drawn[0], 1).astype(jnp.float32), "node"),
            "aligned_place": jd.named(jnp.argmax(drawn[1], 1).astype(jnp.float32), "node"),
            "purity": jd.named(jnp.max(end, 1), "node"),
            "maximum": jd.named(exact, "irrep"),
            "train_accuracy": run.curves["train_accuracy"][-1],
            "test_accuracy": run.curves["test_accuracy"][-1],
            "curve_test": jd.named(run.curves["test_accuracy"], "epoch"),
            "curve_energy": jd.named(run.curves["energy"], "epoch node"),
            "curve_right": jd.named(jnp.mean(run.curves["place"][None] == places[:, None], -1), "form epoch"),
        },
        coords={"form": nodes.FORMS, "epoch": range(0, s.epochs + 1, s.every), "irrep": np.arange(len(peaks)).tolist()},
    )
