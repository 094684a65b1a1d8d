r"""What random directions predict: mean, root mean square and quantiles of |cos|, and the Gram matrix of many of them.

.. math:: E|\cos| = \frac{\Gamma(d/2)}{\sqrt\pi\,\Gamma((d+1)/2)} \approx \sqrt{\frac{2}{\pi d}}, \qquad \sqrt{E\cos^2} = d^{-1/2}

Source: the cosine of two independent directions, one of them uniform on the sphere, has density proportional to
:math:`(1-c^2)^{(d-3)/2}`. Letters: d dimensions, n vectors, m common mean of the entries, s their standard deviation.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import scipy.special
from jax.scipy.special import gammaln, hyp1f1
from jaxtyping import Array, Float

from jaxdyn.nn.observe import random_cosine

Scalar = float | Float[Array, ""]
Numbers = float | Float[Array, "*d"]


def mean_absolute_cosine(d: Numbers) -> Float[Array, "*d"]:
    r""":math:`\Gamma(d/2) / (\sqrt\pi\,\Gamma((d+1)/2))`: .0353 for d = 512."""
    return random_cosine(d)


def approximate_mean(d: Numbers) -> Numbers:
    r""":math:`\sqrt{2/(\pi d)}`, the form that papers print; too small by the factor 1 - 1/(4d) and so on."""
    return (2 / (np.pi * d)) ** 0.5


def cosine_quantile(d: float, level: float) -> float:
    r"""The share ``level`` of |cos| lies below this; :math:`\cos^2` has a beta law with parameters 1/2 and (d-1)/2."""
    return float(scipy.special.betaincinv(0.5, (d - 1) / 2, level) ** 0.5)


def gram_error(n: Numbers, d: Numbers) -> Numbers:
    r"""Root mean square of :math:`\|\hat U^\top \hat U - I\|_F` for n random columns of length one: :math:`\sqrt{n(n-1)/d}`.

    No n columns in d < n dimensions come below :math:`\sqrt{n(n-d)/d}`, since the Gram matrix has trace n and rank d: the
    random ones are nearly as orthogonal as any.
    """
    return (n * (n - 1) / d) ** 0.5


def common_share(mean: Scalar, deviation: Scalar = 1.0) -> Scalar:
    r"""Cosine of long vectors whose entries share a mean, :math:`\rho = m^2/(m^2 + s^2)`."""
    return mean**2 / (mean**2 + deviation**2)


def mean_cosine(d: Scalar, mean: Scalar) -> Float[Array, ""]:
    r"""Mean cosine of two vectors with independent entries N(m, 1), exactly.

    .. math:: E\cos = \|E\,x/\|x\|\,\|^2 = \Bigl(m\sqrt{\tfrac d2}\,\frac{\Gamma((d+1)/2)}{\Gamma(d/2+1)}\;
       {}_1F_1\bigl(\tfrac12;\, \tfrac d2 + 1;\, -\tfrac{d m^2}{2}\bigr)\Bigr)^2 \to \rho

    Derived: the two are independent, and the mean direction lies along the common one. NaN beyond :math:`d m^2 \approx 195`.
    """
    d = jnp.asarray(d)
    factor = jnp.exp(gammaln((d + 1) / 2) - gammaln(d / 2 + 1))
    return (mean * jnp.sqrt(d / 2) * factor * hyp1f1(0.5, d / 2 + 1, -d * mean**2 / 2)) ** 2
