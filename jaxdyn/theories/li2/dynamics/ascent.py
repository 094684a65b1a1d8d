r"""Gradient ascent on the energy of single nodes on the unit sphere, thousands at once, and the Hessian at the end.

.. math:: \dot w = (I - w w^\top) \nabla E(w), \qquad w_{t+1} \propto w_t + s\, \nabla E(w_t) / \|\nabla E(w_t)\|

Energies of homogeneous activations have no maximum but on the sphere. The steps have no scale: with a small s they follow the
flow at unit speed of the gradient, with s = 1 they are the power iteration shifted by one, which converges without a step size
to choose and does not oscillate between u and v (without the shift their norms alternate). Source: arXiv:2509.21519,
section 4. Letters: M elements, D = 2M, K nodes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from jaxdyn import flow, linalg
from jaxdyn.data.cayley import Group
from jaxdyn.data.irreps import Irreps
from jaxdyn.theories.li2.dynamics import energy as theory
from jaxdyn.theories.li2.model import AnyActivation

_EXACT = jax.lax.Precision.HIGHEST
PERTURBATION = 1e-2
ZERO = 1e-5  # an eigenvalue below this share of the largest counts as zero


class Top(NamedTuple):
    """Where nodes ended and the Hessian there.

    Args:
        energy: E.
        gradient: norm of the gradient along the sphere, over that of the whole gradient.
        zeros: number of zero eigenvalues of the Hessian on the sphere.
        largest: its largest eigenvalue, over the largest modulus: not above zero at a maximum.
    """

    energy: Float[Array, " K"]
    gradient: Float[Array, " K"]
    zeros: Int[Array, " K"]
    largest: Float[Array, " K"]


def velocity(
    w: Float[Array, "D K"], group: Group, activation: AnyActivation = "square", **data: Float[Array, "M M"]
) -> Float[Array, "D K"]:
    r""":math:`(I - w w^\top) \nabla E(w)` at points of the sphere; ``data`` as in :func:`energy.energy`."""
    g = theory.gradient(w, group, activation, **data)
    return g - w * jnp.sum(w * g, 0)


def ascend(
    w: Float[Array, "D K"],
    group: Group,
    activation: AnyActivation = "square",
    steps: int = 400,
    step: float | Float[Array, ""] = 1.0,
    block: int = 64,
    **data: Float[Array, "M M"],
) -> Float[Array, "D K"]:
    """``steps`` steps of size ``step`` of ascent on the sphere; a node whose gradient vanishes does not move.

    Args:
        w: nodes, one a column; scaled to norm 1 first.
        group: the group.
        activation: sigma.
        steps: how many.
        step: s; small for the flow, 1 for the fastest ascent.
        block: nodes that are updated together: few enough for a processor's cache; on an accelerator, all.
        data: ``mask`` or ``residual`` as in :func:`energy.energy`.
    """

    def climb(w: Float[Array, "D K"]) -> Float[Array, "D K"]:
        return jax.lax.scan(lambda w, _: (_raised(w, theory.gradient(w, group, activation, **data), step), None), w, None, steps)[0]

    return _in_blocks(climb, w / jnp.linalg.norm(w, axis=0), block)


def ascend_spectra(
    w: Float[Array, "D K"], irreps: Irreps, steps: int = 400, step: float | Float[Array, ""] = 1.0, block: int = 128
) -> Float[Array, "D K"]:
    r"""The steps of :func:`ascend` for x^2 on all pairs, in M times the degree of multiplications a step instead of M^2.

    The Fourier transform is orthogonal, and the gradient of an irrep's share of E involves its own blocks alone:
    :math:`\frac{4M}{d_k}\, \hat u_k \hat v_k^* \hat v_k`, and the same with u and v exchanged.
    """
    rows, parts = _real_transform(irreps)
    matrix = jnp.asarray(rows, w.dtype)
    back = np.argsort(np.concatenate([p.rows.ravel() for p in parts]))

    def gradient(x: Float[Array, "side r K"]) -> Float[Array, "side r K"]:
        sides = [[p.rate * _turned(u[p.rows], v[p.rows]).reshape(-1, u.shape[1]) for p in parts] for u, v in (x, x[::-1])]
        return jnp.stack([jnp.concatenate(side)[back] for side in sides])

    def climb(w: Float[Array, "D K"]) -> Float[Array, "D K"]:
        x = jnp.stack([jnp.matmul(matrix, f, precision=_EXACT) for f in theory.split(w, irreps.group)])
        x = jax.lax.scan(lambda x, _: (_raised(x, gradient(x), step, (0, 1)), None), x, None, steps)[0]
        u, v = (jnp.matmul(matrix.T, f, precision=_EXACT) for f in x)
        return theory.join(u, v, irreps.group)

    return _in_blocks(climb, w / jnp.linalg.norm(w, axis=0), block)


class _Part(NamedTuple):
    rows: Int[np.ndarray, "parts n d d"]  # of real parts and, unless the type is real, of imaginary ones
    rate: float


def _real_transform(irreps: Irreps) -> tuple[Float[np.ndarray, "r M"], list[_Part]]:
    """A real matrix with orthonormal columns that gives real and imaginary parts of blocks, and the places of blocks of each size.

    Of a conjugate pair one stands for both, longer by the root of 2.
    """
    rows: list[np.ndarray] = []
    places: dict[tuple[float, int, int], list[np.ndarray]] = {}
    filled = 0
    for numbers in irreps.merged:
        k, d = numbers[0], int(irreps.degrees[numbers[0]])
        f = irreps.fourier[irreps.owner == k] * len(numbers) ** 0.5
        f = [f.real] if irreps.indicators[k] == 1 else [f.real, f.imag]
        rate = 0.0 if k == 0 else 4 / len(numbers) * irreps.group.order / d
        places.setdefault((rate, len(f), d), []).append(filled + np.arange(len(f) * d * d).reshape(len(f), d, d))
        rows += f
        filled += len(f) * d * d
    return np.concatenate(rows), [_Part(np.stack(same, 1), rate) for (rate, _, _), same in places.items()]


def _turned(u: Float[Array, "parts n d d K"], v: Float[Array, "parts n d d K"]) -> Float[Array, "parts n d d K"]:
    """The products u v^* v of all blocks, written out: products of tiny matrices are slow, and so are complex numbers."""

    def product(x: Float[Array, "n d d K"], y: Float[Array, "n d d K"]) -> Float[Array, "n d d K"]:
        return jnp.sum(x[:, :, :, None] * y[:, None], 2)

    def inner(x: Float[Array, "n d d K"], y: Float[Array, "n d d K"]) -> Float[Array, "n d d K"]:
        return jnp.sum(x[:, :, :, None] * y[:, :, None], 1)

    if len(u) == 1:
        return product(u[0], inner(v[0], v[0]))[None]
    re, im = inner(v[0], v[0]) + inner(v[1], v[1]), inner(v[0], v[1]) - inner(v[1], v[0])
    return jnp.stack([product(u[0], re) - product(u[1], im), product(u[0], im) + product(u[1], re)])


def _raised(
    w: Float[Array, "*rows K"], g: Float[Array, "*rows K"], step: float | Float[Array, ""], axes: int | tuple[int, int] = 0
) -> Float[Array, "*rows K"]:
    """One step along the gradient, then normalised."""
    w = w + (step / jnp.maximum(jnp.sqrt(jnp.sum(g * g, axes)), jnp.finfo(g.dtype).tiny)) * g
    return w / jnp.sqrt(jnp.sum(w * w, axes))


def _in_blocks(
    climb: Callable[[Float[Array, "D K"]], Float[Array, "D K"]], w: Float[Array, "D K"], block: int
) -> Float[Array, "D K"]:
    """Apply ``climb`` to blocks of columns, one after another."""
    rows, count = w.shape
    if count <= block:
        return climb(w)
    blocks = jnp.pad(w, ((0, 0), (0, -count % block)), mode="edge").reshape(rows, -1, block).swapaxes(0, 1)
    return jax.lax.map(climb, blocks).swapaxes(0, 1).reshape(rows, -1)[:, :count]


def directions(key: PRNGKeyArray, group: Group, count: int, moves: int = 1, dtype: str = "float64") -> Float[Array, "moves D K"]:
    """Random columns of norm 1: a start, and where to move from what may be a saddle."""
    x = jax.random.normal(key, (moves, 2 * group.order, count), dtype)
    return x / jnp.linalg.norm(x, axis=1, keepdims=True)


def climb(
    ways: Float[Array, "moves D K"],
    group: Group,
    activation: AnyActivation = "square",
    steps: int = 400,
    **data: Any,
) -> Float[Array, "D K"]:
    """Ascend from ``ways[0]``; then for every further one move by a hundredth of it, off a possible saddle, and ascend again."""
    sizes = jnp.where(jnp.arange(len(ways)) == 0, 1.0, PERTURBATION).astype(ways.dtype)

    def leg(w: Float[Array, "D K"], move: Float[Array, "D K"]) -> tuple[Float[Array, "D K"], None]:
        return ascend(w + move, group, activation, steps, **data), None

    return jax.lax.scan(leg, jnp.zeros_like(ways[0]), sizes[:, None, None] * ways)[0]


def follow(
    w: Float[Array, "D K"], group: Group, ts: Float[np.ndarray, " T"], activation: AnyActivation = "square"
) -> flow.Solution:
    r"""The flow on the sphere by adaptive steps: :math:`\dot w = \frac1M (I - ww^\top) \nabla E`, float64."""
    return flow.solve(lambda t, w, args: velocity(w, group, activation) / group.order, w, ts, rtol=1e-9, atol=1e-11)


def curvatures(
    w: Float[Array, "D K"], group: Group, activation: AnyActivation = "square", **data: Float[Array, "M M"]
) -> Float[Array, "K D"]:
    r"""Eigenvalues of the Hessian on the sphere, rising; w itself, which is no direction on it, counts as :math:`-w\cdot g`.

    .. math:: (I - ww^\top)(\nabla^2 E - (w \cdot g) I)(I - ww^\top) - (w \cdot g)\, w w^\top, \qquad g = \nabla E(w)
    """

    def up(w: Float[Array, "D K"]) -> Float[Array, "D K"]:
        return theory.gradient(w, group, activation, **data)

    g = up(w)
    along = jnp.sum(w * g, 0)
    hessian = jax.vmap(lambda e: jax.jvp(up, (w,), (jnp.broadcast_to(e[:, None], w.shape),))[1])(jnp.eye(w.shape[0], dtype=w.dtype))
    h = jnp.moveaxis(hessian, 2, 0)
    n = w.T
    p = jnp.eye(w.shape[0], dtype=w.dtype) - n[:, :, None] * n[:, None]
    h = p @ ((h + jnp.swapaxes(h, 1, 2)) / 2) @ p - along[:, None, None] * jnp.eye(w.shape[0], dtype=w.dtype)
    return linalg.eigvalsh(h)


def top(w: Float[Array, "D K"], group: Group, activation: AnyActivation = "square", **data: Float[Array, "M M"]) -> Top:
    """Energy, remaining gradient and Hessian of nodes at the end of an ascent."""
    e, g = theory.value_and_gradient(w, group, activation, **data)
    along = g - w * jnp.sum(w * g, 0)
    values = curvatures(w, group, activation, **data)
    size = jnp.max(jnp.abs(values), 1)
    zeros = jnp.sum(jnp.abs(values) < ZERO * size[:, None], 1)
    return Top(e, jnp.linalg.norm(along, axis=0) / jnp.linalg.norm(g, axis=0), zeros, values[:, -1] / size)
