r"""The network's own gradient flow with one common token in all classes and one distinct token in each (Theorem 4's case).

"Measured" is the flow of the network's loss in (Y, Z), by automatic differentiation, from zero. It is compared with the law of
Theorem 4 with the clock of the flow (rho = 1/K), and with the law of a decoder with memory. By symmetry all classes do the same;
the logits are those of the first one. Letters as in ``dynamics/growth.py``.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

import jaxdyn as jd
from jaxdyn.theories.snap import model, tasks
from jaxdyn.theories.snap.dynamics import growth
from jaxdyn.theories.snap.dynamics.clock import clock
from jaxdyn.theories.snap.dynamics.gradient import attention, excess, gamma_integral, unit
from jaxdyn.theories.snap.population import population_flow
from jaxdyn.theories.snap.snapping.common_pair import SETTLED

FORMS = ("memory", "instant")
DOUBLINGS = 40


@jd.setting
class PairFlow:
    """One common token and a distinct token per class, trained by gradient flow at rates ``ratio`` and 1 until eta_Y t = reach."""

    odds: jd.Swept = jd.field(0.05, above=0)  # P of the common token over P of the distinct one
    ratio: jd.Swept = jd.field(1.0, above=0)  # eta_Y / eta_Z
    per_query: jd.Swept = jd.field(1.0, at_least=1)  # K_m, classes per query
    reach: jd.Swept = jd.field(1e9, above=0, role="time")  # eta_Y t at the end
    classes: int = jd.field(4, at_least=2)  # K, each with one distinct token
    spare: int = jd.field(0, at_least=0)  # tokens of the vocabulary that never occur

    def __post_init__(self) -> None:
        """Refuse queries with more classes than there are."""
        jd.require(self, self.per_query <= self.classes, "per_query is at most classes", "per_query", "classes")


def trial(s: PairFlow, key: PRNGKeyArray) -> jd.Observables:
    """B, which is the logit of a distinct token, along the flow and by both laws; attention and the decoder's error."""
    del key  # nothing is random
    # the classes, and the network's flow
    task = tasks.weighted_task(jnp.ones((s.classes, 1), jnp.float64), jnp.reshape(jnp.asarray(s.odds, jnp.float64), 1))
    query = jnp.floor(jnp.arange(s.classes) / s.per_query).astype(jnp.int32)
    task = task._replace(p=jnp.pad(task.p, ((0, 0), (0, s.spare))), query=query)
    k, size = float(s.classes), float(task.p.shape[1])
    eta_y_t = s.reach * jnp.asarray(0.5 ** np.arange(DOUBLINGS, -1, -1))
    ts = jnp.concatenate([jnp.zeros(1), eta_y_t / s.ratio])
    rates = model.Params(jnp.asarray(s.ratio, jnp.float64), jnp.ones((), jnp.float64))
    sol = population_flow(task, rates, ts)
    params = jax.tree.map(lambda leaf: leaf[1:], sol.ys)
    b, c = params.z[:, 0, 1], attention(params.z[:, 0], jnp.broadcast_to(task.p[0], params.z[:, 0].shape))[:, 0]
    # both laws
    u = clock(size * eta_y_t / k, size)
    q, c0 = growth.exponent(s.per_query), growth.constant(s.odds, k, size)
    drive = gamma_integral(u, size, k, s.ratio) / k
    spread = growth.scale(u, s.odds, s.ratio, size)
    laws = {"memory": growth.b_memory(spread, k, size, q), "instant": growth.b_law(drive, c0, q)}
    moves = {name: _moves(growth.suppressed(law, s.odds, s.per_query)) for name, law in laws.items()}
    return jd.observables(
        predicted={
            "b": jd.named(jnp.stack([laws[form] for form in FORMS]), "form time"),
            "move": jd.named(jnp.stack([moves[form] for form in FORMS]), "form double"),
        },
        measured={"b": jd.named(b, "time"), "move": jd.named(_moves(c), "double")},
        recorded={
            "instant": jd.named(laws["instant"], "time"),
            "instant_move": jd.named(moves["instant"], "double"),
            "linear": jd.named(drive / c0, "time"),
            "argument": jd.named(q * drive / c0, "time"),
            "scale": jd.named(spread, "time"),
            "u": jd.named(u, "time"),
            "eta_y_t": jd.named(eta_y_t, "time"),
            "error": jd.named(-jnp.expm1(-jax.vmap(lambda now: model.loss(now, task))(params)), "time"),
            "settles": SETTLED * jnp.log(size) * k,  # eta_Y t at the end of the transition
            "share": (k - 1) / (size - 1),
            "number": k,
            "size": size,
        },
        assumed={"overlap": excess(unit(task.p)), "rate_ratio": s.ratio},
        status=sol.status,
        coords={"form": FORMS},
    )


def _moves(c: jax.Array) -> jax.Array:
    """L1 distance of the attention at time 2t from that at time t; what one of two tokens loses the other gains."""
    return 2 * jnp.abs(c[1:] - c[:-1])


# what claims on these runs share
QUICK = jd.grid(PairFlow, ratio=[1e-3, 2e-3, 0.1, 10.0, 100.0], odds=[0.02, 0.05], per_query=[1.0, 2.0], spare=[0, 36])
SOURCE = "arXiv:2305.16380, Theorem 4; the law with memory is derived"
TESTED = (
    r"Gradient flow of decoder and attention from zero in float64 until $\eta_Y t$ = {reach}, $\eta_Y/\eta_Z$ of "
    "{ratio}: {classes} classes, {per_query} per query, each with one distinct token, and a common token that is {odds} "
    "times as probable; {spare} further tokens of the vocabulary never occur. Nothing is random."
)
