"""A network trained on a square by gradient descent: when it fits, when it generalises, how far weights and kernel move.

Losses are over the mean square of the target on the test inputs. Letters as in ``model.py``.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

import jaxdyn as jd
from jaxdyn import train
from jaxdyn.theories.kumar import model
from jaxdyn.theories.kumar.dynamics import statistics, times

__all__ = ["LEVEL", "SAMPLES", "Regression", "trial"]

LEVEL = 0.2  # of the losses, at which a network has fitted or generalises
SAMPLES = 200  # records of a run


@jd.setting
class Regression:
    """One network and its samples.

    Args:
        alpha: output scale.
        epsilon: quadratic part of the nodes.
        centred: 1 subtracts the first output, 0 does not.
        size: of the first weights.
        rate: eta.
        every: steps between records.
        dimension: D.
        nodes: N.
        samples: p.
        tests: samples of the test loss.
    """

    alpha: jd.Swept = 1.0
    epsilon: jd.Swept = 0.5
    centred: jd.Swept = 0.0
    size: jd.Swept = 1.0
    rate: jd.Swept = 2.0
    every: jd.Swept = 20
    dimension: int = 12
    nodes: int = 48
    samples: int = 60
    tests: int = 500
    dtype: str = "float64"

    def __post_init__(self) -> None:
        """Refuse empty sizes and numbers that are not positive."""
        sizes = ("dimension", "nodes", "samples", "tests", "every")
        jd.require(self, min(getattr(self, name) for name in sizes) >= 1, "sizes are at least 1", *sizes)
        positive = ("alpha", "epsilon", "size", "rate")
        jd.require(self, min(getattr(self, name) for name in positive) > 0, "these are positive", *positive)
        jd.require(self, 0 <= self.centred <= 1, "centred is from 0 to 1", "centred")


def lazy(
    net: model.Network, x: Float[Array, "p d"], z: Float[Array, "q d"], rate: Float[Array, ""], steps: Float[Array, ""]
) -> tuple[Float[Array, ""], Float[Array, ""], Float[Array, "p p"]]:
    """Test error and squared movement of the lazy limit, and the first kernel on training inputs."""
    inside, across = (statistics.kernel(net.first, net.epsilon, a, x) for a in (x, z))
    missing = model.target(x) - model.outputs(net, net.first, x)
    added, squared = statistics.frozen(inside, across, missing, rate, steps)
    return jnp.mean(jnp.square(model.outputs(net, net.first, z) + added - model.target(z))), squared, inside


def trial(s: Regression, key: PRNGKeyArray) -> jd.Observables:
    """Losses along training, delay, movement of weights and kernel, beside the lazy limit."""
    k_train, k_test, k_first = jax.random.split(key, 3)
    x, z = (model.inputs(k, n, s.dimension, s.dtype) for k, n in ((k_train, s.samples), (k_test, s.tests)))
    alpha, epsilon, centred, size, rate = (jnp.asarray(v, s.dtype) for v in (s.alpha, s.epsilon, s.centred, s.size, s.rate))
    net = model.Network(alpha, epsilon, model.init(k_first, s.nodes, s.dimension, size, s.dtype), centred)
    unit = jnp.mean(jnp.square(model.target(z)))
    slope = jax.grad(lambda w: model.error(net, w, x) / 2)

    def step(w: Float[Array, "N d"]) -> Float[Array, "N d"]:
        return w - rate * s.nodes / alpha**2 * slope(w)

    def observe(w: Float[Array, "N d"]) -> dict[str, Float[Array, ""]]:
        return {"fit": model.error(net, w, x) / unit, "test": model.error(net, w, z) / unit}

    last, curves = train.record(step, net.first, observe, samples=SAMPLES, every=jnp.asarray(s.every).astype(jnp.int32))
    steps = jnp.asarray(s.every, s.dtype) * jnp.arange(SAMPLES + 1, dtype=s.dtype)
    fitted, general = (times.settled(steps, curves[name], LEVEL) for name in ("fit", "test"))
    kernel_test, squared, inside = lazy(net, x, z, rate, steps[-1])
    norm = jnp.linalg.norm(net.first)
    moved = statistics.kernel(last, epsilon, x, x) - inside
    return jd.observables(
        predicted={
            "delay": alpha,
            "test": kernel_test / unit,
            "movement": statistics.movement(squared, alpha, s.nodes, norm),
        },
        measured={
            "delay": general - fitted,
            "test": curves["test"][-1],
            "movement": jnp.linalg.norm(last - net.first) / norm,
        },
        recorded={
            "kernel_change": jnp.linalg.norm(moved) / jnp.linalg.norm(inside),
            "first_norm": norm,
            "fitted": fitted,
            "general": general,
            "fit_end": curves["fit"][-1],
            "fit_curve": jd.named(curves["fit"], "record"),
            "test_curve": jd.named(curves["test"], "record"),
            "at": jd.named(steps, "record"),
            "first_test": curves["test"][0],
        },
        status=train.finite_status(last),
    )
