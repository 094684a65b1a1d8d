r"""Closed laws of the reduced dynamics: relative gain, bounds, the growth of B with its two phases, and with a memory.

With one common token in all K classes, one distinct token per class and K_m classes per query, as long as the common token is rare,

.. math:: B(t) = \tfrac1q \ln\bigl(1 + q\,\rho\,\eta_Z\,\Gamma(t)/C_0\bigr), \qquad q = 2(1 + K_m), \qquad
          C_0^{-1} = \Bigl(\frac{P_c}{P_d}\Bigr)^2 (K-1)\,\beta, \qquad \Gamma = \Bigl(\frac{M-1}{M}\Bigr)^2 \frac{K u^2}{2\eta_Y}

Source: arXiv:2305.16380, Theorems 3 and 4 (there K_m = 1, q = 4); general K_m, C_0 and the exact Gamma are derived. Letters: u the
decoder's clock, t time, eta_y and eta_z learning rates, rho as in ``reduced.py``, M tokens of the vocabulary (``size``).

The decoder's memory (``reduced.py``) leaves of this law its beginning only. For rare common tokens and to first order in
:math:`\varepsilon = (K-1)/(M-1)`, the share of the common token's mean in the attention's pull, it is instead (derived)

.. math:: B = \frac{4\varepsilon}{q}\,D\Bigl(s\sqrt{q/4}\Bigr), \qquad
          s = u\,f_c(0) \sqrt{\frac{M-1}{M}\,\frac{\eta_Z}{\eta_Y}}, \qquad
          D(x) = \int_0^x\! e^{-y^2}\!\!\int_0^y e^{v^2} dv\,dy
               \approx \begin{cases} x^2/2 & x \ll 1 \\ \tfrac12 \ln 2x + \tfrac14 \gamma_E & x \gg 1 \end{cases}

For with :math:`f_c = f_c(0)\,e^{-(1+K_m)B}` and :math:`\bar f = \tfrac1u\int f_c\,du` the logit of a distinct token obeys
:math:`\frac{dB}{du} = \frac{\eta_Z}{\eta_Y}\frac{M-1}{M}\,u f_c \bigl[\varepsilon \bar f - (\bar f - f_c)\bigr]`: the other classes
pull by :math:`\varepsilon`, the class's own past holds back by as much as the attention has moved. With
:math:`B = \varepsilon\zeta` it is :math:`\zeta'' = 1 - (q/2)\,s\,\zeta'` in s, whose solution is Dawson's integral. The argument of
the printed logarithm is :math:`q\rho\eta_Z\Gamma/C_0 = \tfrac q2 \varepsilon s^2`: where it counts, s is of order
:math:`\sqrt{M/K}` and the memory rules.
"""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxdyn.theories.snap.dynamics.clock import hit, miss
from jaxdyn.theories.snap.dynamics.gradient import beta

NODES = 256  # of the trapezoidal rule, whose error falls like exp(-4.9/step): rounding up to s = 1e6

Scalar = int | float | Float[Array, "*#n"]


def exponent(per_query: Scalar) -> Scalar:
    """The rate q = 2 (1 + K_m) for K_m classes per query."""
    return 2 * (1 + per_query)


def constant(odds: Scalar, classes: Scalar, size: Scalar) -> Scalar:
    r""":math:`C_0 = 1 / \bigl((P_c/P_d)^2 (K-1)\,\beta\bigr)` from the odds :math:`P_c/P_d`; no fit."""
    return 1 / (odds**2 * (classes - 1) * beta(size))


def b_law(drive: Scalar, c0: Scalar, q: Scalar = 4.0) -> Float[Array, "..."]:
    r"""B for the drive :math:`\rho\eta_Z\Gamma`; with :func:`early_drive` or :func:`late_drive` it is one branch of the law."""
    return jnp.log1p(q * drive / c0) / q


def scale(u: Scalar, odds: Scalar, ratio: Scalar, size: Scalar) -> Float[Array, "..."]:
    r"""How much the memory matters, :math:`s = u\,f_c(0)\sqrt{\tfrac{M-1}{M}\eta_Z/\eta_Y}` (``ratio``: eta_Y / eta_Z)."""
    return u * odds * jnp.sqrt((size - 1) / (size * ratio * (1 + odds**2)))


def dawson_integral(x: Float[Array, "*n"]) -> Float[Array, "*n"]:
    r"""Integral of Dawson's function from 0, as :math:`D(x) = \frac12\int_0^\infty 1 - e^{-x^2/\cosh^2 y}\,dy`."""
    y = jnp.linspace(0.0, 1.0, NODES, dtype=jnp.float64) * (20 + jnp.log1p(x))[..., None]
    return 0.5 * jnp.trapezoid(-jnp.expm1(-jnp.square(x[..., None] / jnp.cosh(y))), y)


def b_memory(s: Float[Array, "*n"], classes: Scalar, size: Scalar, q: Scalar = 4.0) -> Float[Array, "*n"]:
    r"""B of a decoder with memory, :math:`\frac{4}{q}\,\frac{K-1}{M-1}\,D(s\sqrt{q/4})` with s of :func:`scale`."""
    return 4 / q * (classes - 1) / (size - 1) * dawson_integral(s * jnp.sqrt(jnp.asarray(q / 4)))


def memory_lag(z: Float[Array, "*T K D"], f: Float[Array, "K D"], u: Scalar, ratio: Scalar, size: Scalar) -> Float[Array, "*T K D"]:
    r"""What a decoder's memory takes from the logits z of the attention of the moment, to first order in eta_Z / eta_Y.

    .. math:: -\frac16 \frac{\eta_Z}{\eta_Y} \frac{M-1}{M}\,u^2 f_l^2\,\bigl(z_l - \textstyle\sum_j f_j^2 z_j\bigr)

    Derived for rare common tokens: z grows like :math:`u^2`, so that :math:`f_l` has moved by :math:`f_l(z_l - \sum_j f_j^2 z_j)`
    from its start, and by two thirds of that from its past's mean, against which the class's own term pulls it back.

    Args:
        z: logits without memory.
        f: normalised attention at the start.
        u: the decoder's clock.
        ratio: eta_Y / eta_Z.
        size: M.
    """
    moved = z - jnp.sum(jnp.square(f) * z, -1, keepdims=True)
    return -(size - 1) / (6 * size * ratio) * jnp.square(u) * jnp.square(f) * moved


def early_drive(t: Scalar, size: Scalar, classes: Scalar, eta_y: Scalar) -> Scalar:
    r""":math:`\Gamma \approx ((M-1)/M)^2\,\eta_Y t^2/(2K)` before :math:`K\ln M/\eta_Y`."""
    return ((size - 1) / size) ** 2 * eta_y * t**2 / (2 * classes)


def late_drive(t: Scalar, size: Scalar, classes: Scalar, eta_y: Scalar) -> Scalar:
    r""":math:`\Gamma \approx ((M-1)/M)^2\,\frac{K}{2\eta_Y} \ln^2(M\eta_Y t/K)` after :math:`2K\ln M/\eta_Y`."""
    return ((size - 1) / size) ** 2 * classes * jnp.log(size * eta_y * t / classes) ** 2 / (2 * eta_y)


def slope(u: Scalar, drive: Scalar, c0: Scalar, q: Scalar, size: Scalar) -> Float[Array, "..."]:
    r"""Growth in logarithmic time, :math:`\frac{dB}{d\ln t} = \frac{2}{q}\,\frac{d\ln u}{d\ln t}\,\frac{x}{1+x}`.

    Here :math:`x = q\,\text{drive}/C_0` and :math:`d\ln u/d\ln t = 1 - \alpha + (e^u - 1)/(u\,(M-1+e^u))` with :math:`1 - \alpha`
    the decoder's error; it rises like :math:`t^2` at first, passes 2/q, and falls like :math:`(2/q)/u` in the end.
    """
    x = q * drive / c0
    lag = (size - 1) * miss(u, size) + (hit(u, size) - miss(u, size)) / u
    return 2 / q * lag * x / (1 + x)


def gain(start: Scalar, z: Scalar) -> Float[Array, "..."]:
    r"""Theorem 3, :math:`r_{l/l'}(t) = r_{l/l'}(0)\,\chi_l`, :math:`\chi_l = e^{2 z_l}`."""
    return start * jnp.exp(2 * z)


def gain_shortfall(f: Scalar, u: Scalar, ratio: Scalar) -> Float[Array, "..."]:
    r"""Share of Theorem 3's growth of a relative gain that a decoder's memory takes away, to first order in eta_Z / eta_Y.

    It is :math:`\tfrac16 \frac{\eta_Z}{\eta_Y} u^2 f_{l'}^2`, with :math:`f_{l'}` of the other token (derived from
    :func:`memory_lag` for rare common tokens and M much larger than 1). The logit itself grows like
    :math:`(\eta_Z/\eta_Y)\,u^2`: at a given logit the share does not depend on the ratio (``ratio``: eta_Y / eta_Z).
    """
    return jnp.square(u * f) / (6 * ratio)


def partner(z: Scalar, odds: Scalar) -> Float[Array, "..."]:
    r"""Logit of another distinct token of the class, from the dominant one's: :math:`(1 - e^{-2z_l})/P_l^2` is the same for both.

    Args:
        z: logit of the dominant token, zero at the start.
        odds: P of the other token over P of the dominant one, at most 1.
    """
    return -0.5 * jnp.log1p(odds**2 * jnp.expm1(-2 * z))


def suppressed(b: Scalar, odds: Scalar, per_query: Scalar) -> Float[Array, "..."]:
    r"""Attention on the common token, among it and one distinct token, when :math:`z_d = B`, :math:`z_c = -K_m B`."""
    share = odds * jnp.exp(-(1 + per_query) * b)
    return share / (1 + share)
