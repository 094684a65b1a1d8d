"""Networks trained on all pairs with a small penalty on their weights: margin, frequencies, purity of nodes."""

from __future__ import annotations

import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PRNGKeyArray

import jaxdyn as jd
from jaxdyn import train
from jaxdyn.theories.morwani import model
from jaxdyn.theories.morwani.dynamics import largest as theory

__all__ = ["SAMPLES", "Trained", "trial"]

SAMPLES = 40  # records of a run


@jd.setting
class Trained:
    """A network trained by Adam, whose rate falls to zero like a cosine, on cross-entropy and a penalty.

    Args:
        lr: first rate.
        weight: of the penalty.
        power: of a node's 2-norm in the penalty: 3 is the theorem's, 2 weight decay.
        size: standard deviation of the start.
        modulus: p.
        nodes: m.
        steps: of training, a multiple of the number of records.
    """

    lr: jd.Swept = 0.02
    weight: jd.Swept = 1e-4
    power: jd.Swept = 3.0
    size: jd.Swept = 0.3
    modulus: int = 11
    nodes: int = 64
    steps: int = 6000

    def __post_init__(self) -> None:
        """Refuse moduli that are not odd primes, fewer nodes than the theorem's, and steps that are no multiple of the records."""
        p = self.modulus
        jd.require(self, p > 2 and all(p % q for q in range(2, p)), "modulus is an odd prime", "modulus")
        jd.require(self, self.nodes >= 4 * (p - 1), "nodes is at least 4 (modulus - 1)", "nodes")
        jd.require(self, self.steps > 0 and self.steps % SAMPLES == 0, f"steps is a positive multiple of {SAMPLES}", "steps")
        jd.require(self, min(self.lr, self.size, self.power) > 0, "lr, size and power are positive", "lr", "size", "power")
        jd.require(self, self.weight >= 0, "weight is at least 0", "weight")


def observe(params: model.Params) -> dict[str, Float[Array, "*k"]]:
    """Normalised margin, shares of the frequencies, purity, accuracy."""
    share, purity = model.spectrum(params)
    right = jnp.argmax(model.outputs(params), 1) == model.labels(len(params.u))
    margin = model.normalised(params)
    return {"margin": margin, "share": share, "purity": purity, "accuracy": jnp.mean(right.astype(margin.dtype))}


def trial(s: Trained, key: PRNGKeyArray) -> jd.Observables:
    """The network after training, beside the theorem's margin and equal shares; its margin along training."""
    weight, power = (jnp.asarray(x, jnp.float32) for x in (s.weight, s.power))
    rate = optax.schedules.cosine_decay_schedule(1.0, s.steps)
    tx = optax.chain(optax.scale_by_adam(), optax.scale_by_schedule(lambda i: -jnp.asarray(s.lr * rate(i), jnp.float32)))

    def loss(params: model.Params) -> Float[Array, ""]:
        return model.cross_entropy(params) + weight * model.penalty(params, power)

    start = train.init(tx, model.init(key, s.modulus, s.nodes, jnp.asarray(s.size, jnp.float32)))
    step = train.make_step(loss, tx)
    every = s.steps // SAMPLES
    last, curves = train.record(step, start, lambda state: observe(state.params), samples=SAMPLES, every=every)
    count = theory.frequencies(s.modulus)
    ends = {name: curve[-1].astype(jnp.float64) for name, curve in curves.items()}
    return jd.observables(
        predicted={
            "margin": jnp.asarray(theory.largest(s.modulus), jnp.float64),
            "share": jd.named(jnp.full(count, 1 / count, jnp.float64), "frequency"),
            "purity": jnp.ones((), jnp.float64),
        },
        measured={"margin": ends["margin"], "share": jd.named(ends["share"], "frequency"), "purity": ends["purity"]},
        recorded={
            "single": jnp.asarray(theory.one_frequency(s.modulus), jnp.float64),
            "initial_margin": curves["margin"][0].astype(jnp.float64),
            "initial_share": jd.named(curves["share"][0].astype(jnp.float64), "frequency"),
            "initial_purity": curves["purity"][0].astype(jnp.float64),
            "accuracy": ends["accuracy"],
            "curve": jd.named(curves["margin"], "record"),
        },
        coords={"frequency": tuple(range(1, count + 1)), "record": tuple(every * i for i in range(SAMPLES + 1))},
        status=train.finite_status(last.params),
    )
