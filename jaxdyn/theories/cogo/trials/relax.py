r"""Trials on the flow of potentials: velocities of small networks, the metric of wide ones, and gradient flow of the weights.

Letters as in ``dynamics/relax.py``. Widths are masks over the nodes of one array, so that all widths share a program.
"""

from __future__ import annotations

from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Complex, Float, PRNGKeyArray

import jaxdyn as jd
from jaxdyn import flow
from jaxdyn.data.abelian import parse
from jaxdyn.theories.cogo import model
from jaxdyn.theories.cogo.dynamics import relax as theory
from jaxdyn.theories.cogo.dynamics import spectrum
from jaxdyn.theories.cogo.trials.padding import parts

__all__ = ["TURNS", "Potentials", "Wide", "decouple_trial", "flow_trial", "rdot_trial"]

TURNS = 1.5  # lambda t at the end of the flow
SAVES = 5


@jd.setting
class Potentials:
    """Gaussian weights of small networks, zero modes included."""

    std: jd.Swept = 1.0
    groups: tuple[str, ...] = ("5", "2x2")
    hidden: int = 6

    def __post_init__(self) -> None:
        """Refuse groups without a name, empty networks, and weights that are all zero."""
        for name in self.groups:
            parse(name)
        jd.require(self, len(self.groups) > 0, "there is at least one group", "groups")
        jd.require(self, self.hidden > 0, "there is at least one hidden node", "hidden")
        jd.require(self, self.std > 0, "std is positive", "std")


@jd.setting
class Wide:
    """Independent Gaussian weights of a network with ``width`` nodes; ``tied`` breaks their independence."""

    width: jd.Swept = 256.0
    std: jd.Swept = 1.0
    tied: jd.Swept = 0.0  # b = (1 - tied) b + tied a
    nodes: int = 4096  # places for nodes
    group: str = "5"
    loss: Literal["cross", "whole"] = "cross"  # what flows: the cross terms alone, or the whole loss of zero-mean weights

    def __post_init__(self) -> None:
        """Refuse widths beyond the places, and groups without pairs of frequencies."""
        jd.require(self, 2 <= self.width <= self.nodes, "2 <= width <= nodes", "width", "nodes")
        jd.require(self, len(parse(self.group).pairs) > 0, "the group has a pair of conjugate characters", "group")
        jd.require(self, self.std > 0, "std is positive", "std")
        jd.require(self, 0 <= self.tied <= 1, "0 <= tied <= 1", "tied")
        jd.require(self, self.loss in ("cross", "whole"), "loss is cross or whole", "loss")


def rdot_trial(s: Potentials, key: PRNGKeyArray) -> jd.Observables:
    r"""Velocities of spectra and potentials: the direct loss's gradient through the transform, and the formula."""
    groups = [parse(name) for name in s.groups]
    sizes = np.cumsum([3 * group.order * s.hidden for group in groups])
    normal = jnp.split(s.std * jax.random.normal(key, (sizes[-1],), jnp.float64), sizes[:-1])
    measured, predicted = [], []
    for group, draw in zip(groups, normal, strict=True):
        w = draw.reshape(3, group.order, s.hidden)
        descent = -jax.grad(lambda w, group=group: model.loss(w, group, "paper"))(w)
        z, dz = spectrum.transform(w, group), spectrum.transform(descent, group)
        r, dr = jax.jvp(theory.every, (z,), (dz,))
        measured.append((dz, dr, jnp.sum(jnp.square(descent))))
        g, velocity = theory.slope(r, group), theory.velocity(z, group)
        predicted.append((theory.spectrum_velocity(z, group), velocity, -jnp.sum(g.real * velocity.real + g.imag * velocity.imag)))

    def named(sides: list[tuple]) -> dict[str, jd.Named]:
        dz, dr, fall = zip(*sides, strict=True)
        return {
            "spectrum": jd.named(parts(dz), "part group entry"),
            "velocity": jd.named(parts(dr), "part group potential"),
            "fall": jd.named(jnp.stack(fall), "group"),
        }

    return jd.observables(
        predicted=named(predicted),
        measured=named(measured),
        recorded={"order": jd.named(jnp.asarray([group.order for group in groups], jnp.float64), "group")},
        coords={"part": ("re", "im"), "group": s.groups},
    )


def _draw(s: Wide, key: PRNGKeyArray) -> Float[Array, "3 d q"]:
    """Weights at the start; nodes beyond the width are zero, and stay so."""
    a, b, c = s.std * jax.random.normal(key, (3, parse(s.group).order, s.nodes), jnp.float64)
    return jnp.where(jnp.arange(s.nodes) < s.width, jnp.stack([a, (1 - s.tied) * b + s.tied * a, c]), 0.0)


def decouple_trial(s: Wide, key: PRNGKeyArray) -> jd.Observables:
    r"""J J^* over q kappa of one draw: its diagonal and the root mean square of the rest, for cross and for autopotentials."""
    group = parse(s.group)
    z = spectrum.transform(_draw(s, key), group)
    unit = s.width * theory.kappa(s.std, group.order)
    cross, auto = theory.off_diagonal(theory.cross_gram(z[:, 1:])), theory.off_diagonal(theory.auto_gram(z, group))
    return jd.observables(
        predicted={"diagonal": jnp.ones((), jnp.float64), "ratio": jnp.asarray(theory.spread(group, s.width), jnp.float64)},
        measured={"diagonal": cross[0] / unit, "ratio": cross[1] / unit},
        recorded={
            "own_ratio": cross[1] / cross[0],
            "largest": cross[2],
            "auto_ratio": auto[1] / auto[0],
            "auto_largest": auto[2],
        },
    )


def flow_trial(s: Wide, key: PRNGKeyArray) -> jd.Observables:
    """Gradient flow of the weights, and every cross potential's exponential from its start."""
    group = parse(s.group)
    turns = jnp.linspace(0, TURNS, SAVES, dtype=jnp.float64)
    pace = 1 / theory.rate(s.std, s.width, group.order)

    def objective(w: Float[Array, "3 d q"]) -> Float[Array, ""]:
        if s.loss == "cross":
            return theory.modified_loss(w, group)
        return model.loss(w - jnp.mean(w, 1, keepdims=True), group, "paper")

    # steps this long are good for eight digits (dopri8 agrees), where the theory is a few percent off
    solution = flow.gradient_flow(objective, _draw(s, key), turns, rate=pace, rtol=1e-6, atol=1e-8)
    r = jax.vmap(lambda w: spectrum.potentials(spectrum.transform(w, group)[:, 1:]))(solution.ys)
    predicted, start = theory.relaxed(r[0], turns), r[0] - theory.goal(group.order - 1)

    def stored(x: Complex[Array, "t n n n"]) -> jd.Named:
        flat = x.reshape(SAVES, -1)
        return jd.named(jnp.stack([flat.real, flat.imag], 1), "turns part potential")

    return jd.observables(
        predicted={"r": stored(predicted)},
        measured={"r": stored(r)},
        recorded={"start": jnp.sqrt(jnp.mean(jnp.square(jnp.abs(start)))), "steps": solution.steps},
        status=solution.status,
        coords={"turns": np.linspace(0, TURNS, SAVES), "part": ("re", "im")},
    )
