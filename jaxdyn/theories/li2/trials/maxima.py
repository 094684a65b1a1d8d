r"""The trial of the claims on maxima: gradient ascent of many nodes from random starts on each group.

Predictions are those for the irrep in which a node ends. Members are the starts' parts in the group's largest irrep, with v = u.
Letters as in ``dynamics/energy.py``.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Inexact, Int, PRNGKeyArray

import jaxdyn as jd
from jaxdyn import linalg, sampling
from jaxdyn.data import irreps as fourier
from jaxdyn.data.groups import parse
from jaxdyn.data.irreps import Irreps, decompose
from jaxdyn.theories.li2.dynamics import ascent, energy
from jaxdyn.theories.li2.model import Activation

__all__ = ["Maxima", "shapes", "trial"]


@jd.setting
class Maxima:
    """Gradient ascent from random starts; an ``activation`` other than x^2 is a breach."""

    groups: tuple[str, ...] = ("7", "8", "S3", "Q8", "A4", "SL2:3")
    activation: Activation = "square"
    starts: int = 16
    steps: int = 300

    def __post_init__(self) -> None:
        """Refuse names that are no groups, trivial groups, and no starts or steps."""
        orders = [parse(name).order for name in self.groups]
        jd.require(self, min(orders, default=0) >= 2, "there is at least one group, of at least two elements", "groups")
        for name in ("starts", "steps"):
            jd.require(self, getattr(self, name) >= 1, "it is at least 1", name)


def trial(s: Maxima, key: PRNGKeyArray) -> jd.Observables:
    """The ends of the ascents on each group, and the predictions for the irreps in which they lie."""
    groups = [parse(name) for name in s.groups]
    normal = sampling.normal(key, (2, 2 * max(g.order for g in groups), s.starts))
    rows = [_explored(s, decompose(g), normal[:, : 2 * g.order]) for g in groups]
    predicted, measured, recorded = ({name: _stacked([row[i][name] for row in rows]) for name in rows[0][i]} for i in range(3))
    axes = {name: "form group start" for name in ("energy", "mixture", "zeros")} | dict.fromkeys(
        ("values", "member"), "group start rank"
    )
    axes |= {"hit": "group peak"}

    def named(arrays: dict[str, Array], forms: bool) -> dict[str, jd.Named]:
        dims = {name: axes.get(name, "group start") for name in arrays}
        return {
            n: jd.named(jnp.moveaxis(x, 0, 1), dims[n])
            if forms and "form" in dims[n]
            else jd.named(x, dims[n].removeprefix("form "))
            for n, x in arrays.items()
        }

    return jd.observables(
        predicted=named(predicted, True),
        measured=named(measured, False),
        recorded=named(recorded, False),
        coords={"form": ("derived", "printed"), "group": s.groups},
    )


def _stacked(arrays: list[Float[Array, "*rows _"]]) -> Float[Array, "arrays *rows longest"]:
    """Arrays of different lengths along their last axis, stacked; zeros fill the shorter ones."""
    longest = max(a.shape[-1] for a in arrays)
    return jnp.stack([jnp.pad(a, [(0, 0)] * (a.ndim - 1) + [(0, longest - a.shape[-1])]) for a in arrays])


def _explored(s: Maxima, irreps: Irreps, ways: Float[Array, "2 D K"]) -> tuple[dict[str, Array], ...]:
    """Predictions, measurements and records of one group."""
    group, peaks = irreps.group, energy.peaks(irreps)
    w = ascent.climb(ways, group, s.activation, s.steps)
    end = ascent.top(w, group, s.activation)
    u, v = energy.split(w, group)
    share = _shares(u, irreps), _shares(v, irreps)
    start = _shares(energy.split(ways[0], group)[0], irreps)
    place = jnp.argmax(share[0] + share[1], 1)
    values, aligned, normal = shapes(u, v, irreps, place)
    member, mixture, formula = _members(ways[0], irreps)

    def at(numbers: list) -> Float[Array, " K"]:
        return jnp.asarray(numbers, jnp.float64)[place]

    exact, printed = at([p.energy for p in peaks]), at([_printed(p, group.order) for p in peaks])
    zeros = at([p.dimension for p in peaks])
    one = jnp.ones(len(place), jnp.float64)
    pick = jnp.take_along_axis
    predictions = {
        "energy": jnp.stack([exact, printed]),
        "zeros": jnp.stack([zeros, jnp.maximum(zeros, 1.0)]),
        "mixture": jnp.stack([formula, jnp.full_like(formula, _largest(peaks).energy)]),
        "values": normal,
        "aligned": at([0.5**0.5 if p.kind == "quaternionic" else 1.0 for p in peaks]),
        "balance": one / 2,
        "purity": one,
    }
    measurements = {
        "energy": end.energy,
        "zeros": end.zeros.astype(jnp.float64),
        "mixture": mixture,
        "values": values,
        "aligned": aligned,
        "balance": jnp.sum(jnp.square(u), 0),
        "purity": jnp.min(jnp.stack([pick(x, place[:, None], 1)[:, 0] for x in share]), 0),
    }
    records = {
        "tied": at([_tied(p) for p in peaks]),
        "frequency": at([float(p.kind == "complex") for p in peaks]),
        "member": member,
        "largest": end.largest,
        "gradient": end.gradient,
        "start_purity": jnp.max(start, 1),
        "place": place.astype(jnp.float64),
        "hit": jnp.sum(place[:, None] == np.arange(len(peaks)), 0).astype(jnp.float64),
        "peaks": one * len(peaks),
    }
    return predictions, measurements, records


def _shares(u: Float[Array, "M K"], irreps: Irreps) -> Float[Array, "K peaks"]:
    """The share of u in each irrep but the trivial one, conjugate pairs together."""
    mass = energy.masses(u, irreps)
    mass = mass / jnp.sum(mass, 1, keepdims=True)
    return jnp.stack([jnp.sum(mass[:, list(numbers)], 1) for numbers in irreps.merged[1:]], 1)


def shapes(
    u: Float[Array, "M K"], v: Float[Array, "M K"], irreps: Irreps, place: Int[Array, " K"]
) -> tuple[Float[Array, "K rank"], Float[Array, " K"], Float[Array, "K rank"]]:
    r"""Of the blocks of u and v in the irrep of number ``place`` among the peaks: singular values, alignment, predicted values.

    Singular values are those of the block of u or v that is farther from the prediction, on the unit sphere; the alignment is
    :math:`\|\hat u \hat v^*\| / \|\hat u\| \|\hat v\|`.
    """
    rank, count = int(irreps.degrees.max()), u.shape[1]
    blocks = [fourier.blocks(fourier.transform(f.T, irreps), irreps) for f in (u, v)]
    values, predicted, aligned = jnp.zeros((count, rank)), jnp.zeros((count, rank)), jnp.zeros(count)
    for i, peak in enumerate(energy.peaks(irreps)):
        x, y = (b[peak.irreps[0]] for b in blocks)
        both = jnp.linalg.norm(jnp.einsum("nab,ncb->nac", x, jnp.conj(y)), axis=(1, 2))
        both = both / (jnp.linalg.norm(x, axis=(1, 2)) * jnp.linalg.norm(y, axis=(1, 2)))
        ideal = np.zeros(rank)
        ideal[: 2 if peak.kind == "quaternionic" else 1] = 0.5**0.5 if peak.kind == "quaternionic" else 1.0
        here, s = (place == i)[:, None], _worse(_singular(x, rank), _singular(y, rank), ideal)
        values, predicted = jnp.where(here, s, values), jnp.where(here, ideal, predicted)
        aligned = jnp.where(here[:, 0], both, aligned)
    return values, aligned, predicted


def _singular(block: Inexact[Array, "K d d"], rank: int) -> Float[Array, "K rank"]:
    """Singular values, of sum of squares 1, with zeros at the end."""
    d = block.shape[-1]
    s = linalg.singular_values(block) if d > 1 else jnp.abs(block[:, 0])
    return jnp.pad(s / jnp.linalg.norm(s, axis=1, keepdims=True), ((0, 0), (0, rank - d)))


def _worse(a: Float[Array, "K rank"], b: Float[Array, "K rank"], ideal: Float[np.ndarray, " rank"]) -> Float[Array, "K rank"]:
    far = jnp.max(jnp.abs(a - ideal), 1) >= jnp.max(jnp.abs(b - ideal), 1)
    return jnp.where(far[:, None], a, b)


def _members(w: Float[Array, "D K"], irreps: Irreps) -> tuple[Array, Array, Array]:
    """The start's part in the largest irrep, v = u: singular values, energy over all pairs, and the energy by singular values."""
    group, peak = irreps.group, _largest(energy.peaks(irreps))
    projector = sum(irreps.projector(k) for k in peak.irreps).real
    u = jnp.asarray(projector) @ w[: group.order]
    u = u / jnp.sqrt(2 * jnp.sum(jnp.square(u), 0))
    block = fourier.blocks(fourier.transform(u.T, irreps), irreps)[peak.irreps[0]]
    s = _singular(block, int(irreps.degrees.max()))
    # scaled by the norm of u, shared by a pair's two blocks, and not by the transform's own scale
    fourth = jnp.sum(s**4, 1) * (0.5 / len(peak.irreps)) ** 2
    formula = 2 * group.order / peak.degree * len(peak.irreps) * fourth
    return s, energy.energy(energy.join(u, u, group), group), formula


def _largest(peaks: tuple[energy.Peak, ...]) -> energy.Peak:
    return max(peaks, key=lambda p: p.degree)


def _printed(peak: energy.Peak, order: int) -> float:
    """M/8d, M/16d for a pair; the paper does not tell quaternionic type from real."""
    return order / ((16 if peak.kind == "complex" else 8) * peak.degree)


def _tied(peak: energy.Peak) -> int:
    """The dimension of the maxima with v = u."""
    d = peak.degree
    return {"real": 2 * d - 2, "complex": 4 * d - 3, "quaternionic": 4 * d - 5}[peak.kind]
