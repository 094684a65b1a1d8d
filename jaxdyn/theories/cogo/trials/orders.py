r"""Searches for blocks of few nodes at one pair of frequencies. Letters as in ``dynamics/orders.py``."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

import jaxdyn as jd
from jaxdyn.theories.cogo.dynamics import orders
from jaxdyn.theories.cogo.trials.blocks import ZERO

__all__ = ["COUNTS", "LEAST", "LEFT", "MEANS", "Search", "trial"]

COUNTS = (2, 3, 4, 5, 6)
MEANS = ("its own", "taken by others")
LEAST = (6, 4)
LEFT = {("its own", 4): 1 / 6, ("taken by others", 3): 1 / 6, ("its own", 5): 0.0}  # what so many nodes leave of the loss


@jd.setting
class Search:
    """Least squares over blocks of every order from random starts; ``star`` is a breach."""

    spread: jd.Swept = 0.7  # standard deviation of the real and imaginary parts at the start
    star: jd.Swept = 1.0  # 0 drops the potentials of R_*
    starts: int = 8
    steps: int = 200

    def __post_init__(self) -> None:
        """Refuse searches that do not move."""
        jd.require(self, self.starts > 0, "there is at least one start", "starts")
        jd.require(self, self.steps > 0, "there is at least one step", "steps")
        jd.require(self, self.spread > 0, "spread is positive", "spread")


def trial(s: Search, key: PRNGKeyArray) -> jd.Observables:
    """The least loss at every order over all starts, with the mean in the loss and without, and along the search of five nodes."""
    x = s.spread * jax.random.normal(key, (2, s.starts, 3, max(COUNTS)), jnp.float64)
    count, bias = (v.ravel() for v in jnp.meshgrid(jnp.asarray(COUNTS), jnp.asarray([1.0, 0.0], jnp.float64)))
    nodes = jnp.arange(max(COUNTS)) < count[:, None]

    def search(nodes: Bool[Array, " n"], bias: Float[Array, ""]) -> tuple[Array, Array]:
        ends = jax.vmap(lambda start: orders.solve(start, nodes, bias, s.star, s.steps))(x[0] + 1j * x[1])
        best = jnp.argmin(ends.loss[:, -1])
        return ends.loss[best], ends.energy[best]

    along = [v.reshape(len(MEANS), len(COUNTS), s.steps) for v in jax.vmap(search)(nodes, bias)]
    loss, energy = (v[..., -1] for v in along)
    five, size = (v[MEANS.index("its own"), COUNTS.index(5)] for v in along)
    solved = jnp.concatenate([loss < ZERO, jnp.ones((len(MEANS), 1), bool)], 1)
    least = jnp.asarray([*COUNTS, COUNTS[-1] + 1])[jnp.argmax(solved, 1)]
    return jd.observables(
        predicted={
            "order": jd.named(jnp.asarray(LEAST, jnp.float64), "mean"),
            "left": jd.named(jnp.asarray([*LEFT.values()], jnp.float64), "few"),
        },
        measured={
            "order": jd.named(least.astype(jnp.float64), "mean"),
            "left": jd.named(jnp.stack([loss[MEANS.index(mean), COUNTS.index(count)] for mean, count in LEFT]), "few"),
        },
        recorded={
            "loss": jd.named(loss, "mean nodes"),
            "energy": jd.named(energy, "mean nodes"),
            "five_loss": jd.named(five, "step"),
            "five_energy": jd.named(size, "step"),
        },
        coords={
            "mean": MEANS,
            "nodes": COUNTS,
            "few": [f"{count} nodes, mean {mean}" for mean, count in LEFT],
            "step": range(1, s.steps + 1),
        },
    )
