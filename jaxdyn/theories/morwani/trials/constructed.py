"""Margins of constructed networks for several moduli, and of those with perturbed weights."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

import jaxdyn as jd
from jaxdyn.theories.morwani import model
from jaxdyn.theories.morwani.dynamics import largest as theory

__all__ = ["STEPS", "Constructed", "trial"]

STEPS = (1e-4, 1e-3, 1e-2, 1e-1)  # sizes of the perturbation over that of the weights


@jd.setting
class Constructed:
    """Constructed networks, one for each modulus.

    Args:
        phases: "matched", or "free": the output's phases are random, a breach.
        left_out: share of the first frequency that is taken from it, a breach.
        moduli: p of each network.
    """

    phases: jd.Code = jd.code("matched", "free")
    left_out: jd.Swept = 0.0
    moduli: tuple[int, ...] = (5, 11, 23)

    def __post_init__(self) -> None:
        """Refuse moduli that are not odd primes, and shares beyond one."""
        prime = all(p > 2 and all(p % q for q in range(2, p)) for p in self.moduli)
        jd.require(self, bool(self.moduli) and prime, "there is at least one modulus, and all are odd primes", "moduli")
        jd.require(self, 0 <= self.left_out <= 1, "left_out is from 0 to 1", "left_out")


def margins(s: Constructed, key: PRNGKeyArray, modulus: int) -> tuple[Float[Array, ""], Float[Array, " step"]]:
    """The normalised margin of one network, and with perturbations of every size along one random direction."""
    k_phase, k_step = jax.random.split(key)
    count = theory.frequencies(modulus)
    share = jnp.full(count, 1 / count, jnp.float64).at[0].multiply(1 - s.left_out)
    free = 2 * jnp.pi * jax.random.uniform(k_phase, (8 * count,), jnp.float64)
    params = theory.construct(modulus, share, jnp.where(s.phases == "free", free, 0.0))
    root = jnp.sqrt(jnp.mean(model.sizes(params)) / (3 * modulus))
    way = model.init(k_step, modulus, 8 * count, 1.0, "float64")

    def moved(size: Float[Array, ""]) -> Float[Array, ""]:
        return model.normalised(jax.tree.map(lambda x, z: x + size * root * z, params, way))

    return model.normalised(params), jax.vmap(moved)(jnp.asarray(STEPS, jnp.float64))


def trial(s: Constructed, key: PRNGKeyArray) -> jd.Observables:
    """Margins for every modulus beside the largest one."""
    each = [margins(s, jax.random.fold_in(key, p), p) for p in s.moduli]
    best = jnp.asarray([theory.largest(p) for p in s.moduli], jnp.float64)
    return jd.observables(
        predicted={"margin": jd.named(best, "prime")},
        measured={"margin": jd.named(jnp.stack([x[0] for x in each]), "prime")},
        recorded={
            "moved": jd.named(jnp.stack([x[1] for x in each]), "prime size"),
            "single": jd.named(jnp.asarray([theory.one_frequency(p) for p in s.moduli], jnp.float64), "prime"),
        },
        coords={"prime": s.moduli, "size": STEPS},
    )
