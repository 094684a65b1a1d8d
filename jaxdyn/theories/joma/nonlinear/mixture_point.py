"""The setting with the mixture of Theorem 3, and samples of it; shared by the claims on the field and on the paths."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

import jaxdyn as jd
from jaxdyn.theories.joma import model
from jaxdyn.theories.joma.dynamics.thm3 import NOISES
from jaxdyn.theories.joma.nonlinear.mixture import Instance


@jd.setting
class Mixture:
    """One node on a mixture.

    Args:
        activation: of the node.
        noise: distribution around a component's centre.
        spread: standard deviation of a noise coordinate.
        anisotropy: variances alternate between spread^2 (1 + anisotropy) and spread^2 (1 - anisotropy); 0 in the theorem.
        g_slope: slope of the upper gradient along a random direction inside each component; 0 in the theorem.
        tokens: dimension of the noise.
        components: of the mixture.
        samples: in all, shared equally by the components.
    """

    activation: jd.Code = jd.code(*model.ACTIVATIONS)
    noise: jd.Code = jd.code(*NOISES)
    spread: jd.Swept = jd.field(0.5, above=0)
    anisotropy: jd.Swept = jd.field(0.0, at_least=-1, at_most=1)
    g_slope: jd.Swept = 0.0
    tokens: int = jd.field(12, at_least=3)
    components: int = jd.field(4, at_least=1)
    samples: int = 20_000

    def __post_init__(self) -> None:
        """Refuse components without samples."""
        jd.require(self, self.samples >= 2 * self.components, "at least 2 samples per component", "samples", "components")


def sample(key: PRNGKeyArray, one: Instance, s: Mixture, each: int) -> tuple[Float[Array, "C n d"], Float[Array, "C n"]]:
    """``each`` samples of each component, and their upper gradients."""
    d = one.centres.shape[1]
    e = jax.random.normal(key, (len(one.g), each, d), jnp.float64)
    sphere = e * (d**0.5 / jnp.linalg.norm(e, axis=-1, keepdims=True))
    e = jnp.where(s.noise == "gauss", e, sphere)
    signs = jnp.asarray(1 - 2 * (np.arange(d) % 2), jnp.float64)
    x = one.centres[:, None] + s.spread * jnp.sqrt(1 + s.anisotropy * signs) * e
    return x, one.g[:, None] + s.g_slope * (e @ one.direction)
