r"""What is known exactly of the one-layer model: clocks of single rows, the theorems' bound, entries of the decoder.

A row x1 of Y after k visits, all with one target, is :math:`h (M e_\text{target} - 1)` with :math:`h = u_k / M`; the
clock u_k and its mean over the randomness of SGD are those of ``theories/snap/dynamics/clock.py``. A row that no sequence
begins with never moves. Letters: M tokens, N training sequences, eta the step size, t the steps made, :math:`s = M\eta t/N`.
Source: arXiv:2405.04669, Theorems 3 and 4 and their proofs.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

Scalar = float | int | Float[Array | np.ndarray, "*#n"]


def time(eta: Scalar, steps: Scalar, size: Scalar, rows: Scalar) -> Float[Array, "*n"]:
    r"""The theorems' time :math:`s = M \eta t / N`."""
    return jnp.asarray(size * eta * steps / rows)


def bound(s: Scalar, size: Scalar, exponent: Scalar) -> Float[Array, "*n"]:
    r"""Lower bound of the probability of a trained target, :math:`1 - \frac{M-1}{2 s^c}` (Theorems 3 and 4)."""
    return 1 - (size - 1) / (2 * jnp.asarray(s) ** exponent)


def effective_exponent(p: Scalar, s: Scalar, size: Scalar) -> Float[Array, "*n"]:
    r"""The largest c for which a probability p obeys the bound at time s: :math:`\ln\frac{M-1}{2(1-p)} / \ln s`."""
    return jnp.log((size - 1) / (2 * (1 - jnp.asarray(p)))) / jnp.log(s)


def flow_exponent(u: Scalar, s: Scalar, size: Scalar) -> Float[Array, "*n"]:
    r"""The same in gradient flow: :math:`\ln\frac{M-1+e^u}{2}/\ln s`, u the clock at s; below 1, about :math:`1 - \ln 2/\ln s`."""
    return (jnp.logaddexp(u, jnp.log(size - 1.0)) - jnp.log(2.0)) / jnp.log(s)


def entry_target(u: Scalar, size: Scalar) -> Float[Array, "*n"]:
    r"""Transformer entry of a row's target, :math:`h(M-1)`."""
    return jnp.asarray(u) * (size - 1) / size


def entry_other(u: Scalar, size: Scalar) -> Float[Array, "*n"]:
    r"""Transformer entry of each other token, :math:`-h`."""
    return -jnp.asarray(u) / size
