r"""Partial solutions: nodes at one pair k, -k of frequencies, and the table of their potentials.

Only the values at k are written, as columns (3, n) with rows a, b, c; those at -k are their conjugates. Sums and products are
those of the semi-ring. A node of order one has modulus one and abc = 1; with :math:`\omega = e^{2\pi i/3}`, :math:`|\nu| = |\xi| =
|\alpha| = |\beta| = 1`, the solutions are polynomials of such nodes u (:math:`1 + x + x^2` and :math:`1 + x`) or generalise them:

.. math:: z_{syn} = \begin{pmatrix} 1 & \omega & \bar\omega \\ 1 & \omega & \bar\omega \\
        1 & \omega & \bar\omega \end{pmatrix},\quad
    z_{\alpha\beta} = \begin{pmatrix} 1 & \alpha\omega & \beta\bar\omega \\ 1 & \bar\alpha\omega & \bar\beta\bar\omega \\
        1 & \omega & \bar\omega \end{pmatrix},\quad
    z_\nu = \begin{pmatrix} 1 & \nu \\ 1 & -\nu \\ 1 & -\bar\nu^2 \end{pmatrix},\quad
    z_\xi = \begin{pmatrix} 1 & \xi \\ 1 & -i\bar\xi \\ 1 & i \end{pmatrix}

and the twin of the last has :math:`(\xi, i\bar\xi, -i)`.
Source: arXiv:2410.01779, partial solutions; entries of the table that it leaves out: derived. Letters: d elements of the group,
n nodes.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Complex, Float

from jaxdyn.data.abelian import Abelian
from jaxdyn.errors import UsageError
from jaxdyn.theories.cogo.dynamics.semiring import Element, element

ENTRIES = ("abc", "~abc", "a~bc", "ab~c", "a~ac", "b~bc", "aac", "bbc", "~a~ac", "~b~bc")  # potentials at +-k; ~ conjugates
OMEGA = np.exp(2j * np.pi / 3 * np.arange(3))  # 1, omega and its conjugate

Unit = Complex[Array, ""]
Value = int | float | complex | Unit
Columns = Complex[Array, "3 n"]


def turn(angle: Float[Array, "*n"]) -> Complex[Array, "*n"]:
    """The number of modulus one at that angle."""
    return jnp.cos(angle) + 1j * jnp.sin(angle)


def node(a: Value, b: Value, c: Value) -> Complex[Array, "3 1"]:
    """A single node of these values."""
    return jnp.stack([jnp.asarray(v, jnp.complex128) for v in (a, b, c)])[:, None]


def unit(angles: Float[Array, "2"]) -> Complex[Array, "3 1"]:
    r""":math:`y = (e^{i\theta}, e^{i\phi}, e^{-i(\theta+\phi)})`, which turns phases and leaves abc alone."""
    return turn(jnp.stack([angles[0], angles[1], -angles[0] - angles[1]]))[:, None]


def multiply(*factors: Complex[Array, "3 _"]) -> Complex[Array, "3 m"]:
    """The product of the semi-ring, at one frequency."""
    product = factors[0]
    for factor in factors[1:]:
        product = (product[:, :, None] * factor[:, None, :]).reshape(3, -1)
    return product


def scaled(columns: Columns, factor: float) -> Columns:
    """All potentials times a positive factor."""
    return columns * factor ** (1 / 3)


def syn() -> Complex[Array, "3 3"]:
    r""":math:`z_{syn} = 1 + u + u^2` with u = (omega, omega, omega)."""
    return jnp.asarray(np.broadcast_to(OMEGA, (3, 3)))


def syn_ab(alpha: Unit, beta: Unit) -> Complex[Array, "3 3"]:
    r""":math:`z_{syn,\alpha\beta}`; at alpha = beta = 1 it is :func:`syn`."""
    a = jnp.stack([jnp.ones_like(alpha), alpha, beta])
    return jnp.stack([a, jnp.conj(a), jnp.ones_like(a)]) * jnp.asarray(OMEGA)


def nu(value: Unit) -> Complex[Array, "3 2"]:
    r""":math:`z_\nu = 1 + u` with :math:`u = (\nu, -\nu, -\bar\nu^2)`."""
    return jnp.concatenate([node(1, 1, 1), node(value, -value, -jnp.square(jnp.conj(value)))], 1)


def xi(value: Unit, twin: bool = False) -> Complex[Array, "3 2"]:
    r""":math:`z_\xi = 1 + u` with :math:`u = (\xi, -i\bar\xi, i)`, or with -i for i (the twin)."""
    i = -1j if twin else 1j
    return jnp.concatenate([node(1, 1, 1), node(value, -i * jnp.conj(value), i)], 1)


def embed(columns: Columns, group: Abelian, k: int) -> Element:
    """The element that holds the columns at k and their conjugates at -k.

    Raises:
        UsageError: if k is no frequency of the group, or one with a real character.
    """
    require_pair(group, k)
    z = jnp.zeros((3, group.order, columns.shape[1]), columns.dtype)
    return element(z.at[:, k].set(columns).at[:, group.negative[k]].set(jnp.conj(columns)))


def require_pair(group: Abelian, k: int) -> None:
    """Refuse a frequency that is its own conjugate.

    Raises:
        UsageError: if k is no frequency of the group, or one with a real character.
    """
    paired = [i for i in range(group.order) if group.negative[i] != i]
    if k not in paired:
        raise UsageError(
            f"k={k} is not allowed: the frequencies of {group} that come in pairs are {', '.join(map(str, paired)) or 'none'}"
        )


def potentials(z: Columns) -> Complex[Array, "10"]:
    """The sum potentials at one pair of frequencies up to conjugation, in the order of ``ENTRIES``."""
    a, b, c = z
    ca, cb, cc = jnp.conj(z)
    factors = (a, b, c), (ca, b, c), (a, cb, c), (a, b, cc), (a, ca, c), (b, cb, c), (a, a, c), (b, b, c), (ca, ca, c), (cb, cb, c)
    return jnp.stack([jnp.sum(x * y * w) for x, y, w in factors])


def _table(*entries: Value) -> Complex[Array, "10"]:
    return jnp.stack([jnp.asarray(e, jnp.complex128) for e in entries])


def syn_table() -> Complex[Array, "10"]:
    """Potentials of :func:`syn`, in the order of ``ENTRIES``."""
    return _table(3, 0, 0, 0, 0, 0, 3, 3, 0, 0)


def syn_ab_table(alpha: Unit, beta: Unit) -> Complex[Array, "10"]:
    """Potentials of :func:`syn_ab`."""
    a2, b2, w, v = alpha**2, beta**2, OMEGA[1], OMEGA[2]
    ca, cb = jnp.conj(a2), jnp.conj(b2)
    mixed = 1 + ca * w + cb * v, 1 + a2 * w + b2 * v
    return _table(3, *mixed, 0, 0, 0, 1 + a2 + b2, 1 + ca + cb, 1 + ca * v + cb * w, 1 + a2 * v + b2 * w)


def nu_table(value: Unit) -> Complex[Array, "10"]:
    """Potentials of :func:`nu`: those of (k, k) vanish, those of (-k, -k) only if the fourth power is 1."""
    c2 = jnp.conj(value) ** 2
    return _table(2, 1 + c2, 1 + c2, 1 + value**4, 1 - c2, 1 - c2, 0, 0, 1 - c2**2, 1 - c2**2)


def xi_table(value: Unit, twin: bool = False) -> Complex[Array, "10"]:
    """Potentials of :func:`xi`."""
    i, x2 = (-1j if twin else 1j), value**2
    c2 = jnp.conj(x2)
    return _table(2, 1 + c2, 1 - x2, 0, 1 + i, 1 + i, 1 + i * x2, 1 - i * c2, 1 + i * c2, 1 - i * x2)
