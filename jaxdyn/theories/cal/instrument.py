r"""Laws of descent on any loss, read from a transformer in training: balance, the edge of stability, and the deviation from flow.

*Balance.* Scores depend on a head's query and key matrices through :math:`W_Q W_K^\top` alone, so that gradient flow conserves

.. math:: W_Q^\top W_Q - W_K^\top W_K

of every head, and the other way round what the one changes by the other changes by, too. Descent at rate eta keeps it up to
:math:`O(\eta)`. Positions that are rotations mix entries of a head, and leave its trace only; a norm of queries and keys, weight
decay and other optimizers break it.

*Edge.* On one batch the sharpness, the largest eigenvalue of the Hessian, grows until descent is no longer stable, and stays there:
at :math:`2/\eta`, with momentum :math:`\beta` at :math:`2(1+\beta)/\eta`.

*Deviation.* From gradient flow x(t) on the same batch, descent deviates by :math:`\eta e(t) + O(\eta^2)` at :math:`t = n\eta`,

.. math:: \dot x = -\nabla L(x), \qquad \dot e = -H(x)\,\bigl(e + \tfrac12 \nabla L(x)\bigr), \qquad e(0) = 0 .

Source: arXiv:1806.00900, theorem 2.2 (balance); arXiv:2103.00065, section 2 (edge); Hairer, Nørsett, Wanner, Solving Ordinary
Differential Equations I, section II.8 (deviation). Letters: L layers, h heads of e numbers, d width, p weights.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Bool, Float, PyTree

from jaxdyn import flow
from jaxdyn.instruments.law import Law
from jaxdyn.instruments.moment import Moment
from jaxdyn.nn import Transformer
from jaxdyn.nn.transformer import blocks_of
from jaxdyn.status import OK

__all__ = ["BALANCE", "DEVIATION", "EDGE", "INSTRUMENTS", "grams"]

Curves = Mapping[str, Float[Array, "time ..."]]


def grams(shape: Transformer, w: Float[Array, "L d all"], heads: int) -> Float[Array, "L h e e"]:
    r""":math:`W^\top W` of every head."""
    each = w.reshape(*w.shape[:2], heads, shape.entries)
    return jnp.einsum("ldhe,ldhf->lhef", each, each)


def read_balance(moment: Moment) -> dict[str, Array]:
    """Gram matrices of queries and keys, of every head of keys the sum over the queries that share it."""
    shape, blocks = moment.shape, blocks_of(moment.shape, moment.params)
    queries = grams(shape, blocks["q"], shape.heads)
    groups = queries.reshape(queries.shape[0], shape.key_heads, -1, *queries.shape[2:])
    return {"queries": jnp.sum(groups, 2), "keys": grams(shape, blocks["k"], shape.key_heads)}


def change(curve: Float[Array, "time ..."]) -> Float[Array, "time ..."]:
    """Since the start."""
    return curve - curve[:1]


BALANCE = Law(
    name="balance",
    title="Query and key matrices of a head change alike",
    theory=(
        r"Gradient flow conserves $W_Q^\top W_Q - W_K^\top W_K$ of every head, since scores depend on $W_Q W_K^\top$ alone: what "
        r"$W_Q^\top W_Q$ has changed by is predicted from $W_K^\top W_K$."
    ),
    source="arXiv:1806.00900, theorem 2.2",
    read=read_balance,
    own=("queries",),
    measure=lambda own: change(own["queries"]),
    predict=lambda others: change(others["keys"]),
    dims="layer head row col",
    bound=0.05,
    cost=0.05,
)

# the edge of stability

WARM, SHIFT = 3, 0.25  # power iterations at the start; what is added to the Hessian, in units of 1 / lr


def curvature(loss: Callable[[PyTree], Float[Array, ""]], params: PyTree, v: PyTree) -> PyTree:
    """The Hessian times a vector."""
    return jax.jvp(jax.grad(loss), (params,), (v,))[1]


def unit(v: PyTree) -> PyTree:
    """A vector of length one."""
    return optax.tree.scale(1 / optax.tree.norm(v), v)


def iterated(moment: Moment, v: PyTree) -> tuple[PyTree, Float[Array, ""]]:
    """The next vector of a power iteration on the Hessian, whose negative end is shifted away, and the quotient of this one."""
    bent = curvature(moment.loss, moment.params, v)
    quotient = optax.tree.vdot(v, bent)
    return unit(jax.tree.map(lambda h, x: h + (SHIFT / moment.lr) * x, bent, v)), quotient


def first_direction(moment: Moment) -> PyTree:
    """A vector near the sharpest direction at the start, from random signs."""
    flat, tree = jax.flatten_util.ravel_pytree(moment.params)
    v = unit(tree(jax.random.rademacher(jax.random.key(0, impl="threefry2x32"), flat.shape, flat.dtype)))
    return jax.lax.fori_loop(0, WARM, lambda _, v: iterated(moment, v)[0], v)


def read_edge(moment: Moment, v: PyTree) -> tuple[dict[str, Array], PyTree]:
    """The sharpness in units of 2 / lr; one more iteration of the direction of the last reading."""
    v, quotient = iterated(moment, v)
    return {"sharpness": quotient * moment.lr / 2}, v


def late(curve: Float[Array, " time"]) -> Float[Array, " time"]:
    """The mean over the last quarter of the readings up to each."""
    n = curve.shape[0]
    window = max(n // 4, 1)
    sums = jnp.cumsum(jnp.concatenate([jnp.zeros(1, curve.dtype), curve]))
    at = np.arange(n) + 1
    first = np.maximum(at - window, 0)
    return (sums[at] - sums[first]) / (at - first)


def near(curves: Curves) -> Bool[Array, " time"]:
    """The last reading, of runs that come near the edge."""
    n = curves["sharpness"].shape[0]
    return (jnp.max(curves["sharpness"]) > 0.9) & (jnp.arange(n) == n - 1)


EDGE = Law(
    name="edge",
    title="On one batch, sharpness rises to 2 over the step size, not beyond",
    theory=(
        r"Where descent on one batch becomes as sharp as it can be, the largest eigenvalue of the Hessian stays at $2/\eta$: "
        "sharper, it would leave; the largest mean over a quarter of training is that. Of a run that never comes within 10% of it, "
        "nothing is said."
    ),
    source="arXiv:2103.00065, section 2",
    read=read_edge,
    own=("sharpness",),
    measure=lambda own: jax.lax.cummax(late(own["sharpness"])),
    predict=lambda others: jnp.ones_like(others["step"]),
    speaks=near,
    bound=0.1,
    absolute=True,
    optimizers=("sgd",),
    same_batch=True,
    memory=first_direction,
    cost=2.5,
)

# descent and gradient flow

PROBES = 64  # random directions in which deviations are compared
TIGHT: dict[str, Any] = {"rtol": 1e-6, "atol": 1e-8, "solver": "tsit5", "max_steps": 4096}


class Followed(NamedTuple):
    """Where the flow is, its leading error, the time, and the directions that are looked at."""

    flow: PyTree
    lead: PyTree
    time: Float[Array, ""]
    status: Array


def exact(params: PyTree) -> PyTree:
    """In float64, as ODEs are solved."""
    return jax.tree.map(lambda x: x.astype(jnp.float64), params)


def probes(params: PyTree) -> Float[Array, "probe p"]:
    """Random directions, the same in all runs."""
    size = sum(x.size for x in jax.tree.leaves(params))
    return jax.random.normal(jax.random.key(1, impl="threefry2x32"), (PROBES, size), jnp.float32) * size**-0.5


def along(params: PyTree, directions: Float[Array, "probe p"]) -> Float[Array, " probe"]:
    """Weights in these directions."""
    return directions.astype(jnp.float64) @ jax.flatten_util.ravel_pytree(exact(params))[0]


def begun(moment: Moment) -> Followed:
    """The flow at the start."""
    params = exact(moment.params)
    return Followed(params, jax.tree.map(jnp.zeros_like, params), jnp.float64(0), jnp.int32(0))


def followed(moment: Moment, at: Followed) -> Followed:
    """The flow and the leading error of descent on the batch, up to the time of a moment; as they are if no time has passed."""

    def field(t: Any, y: tuple[PyTree, PyTree], span: Float[Array, ""]) -> tuple[PyTree, PyTree]:
        x, e = y
        slope = jax.grad(lambda p: moment.loss(p).astype(jnp.float64))(x)
        bent = curvature(moment.loss, x, jax.tree.map(lambda a, g: a + 0.5 * g, e, slope))
        return jax.tree.map(lambda g: -span * g, slope), jax.tree.map(lambda h: -span * h, bent)

    now = moment.step * jnp.asarray(moment.lr, jnp.float64)
    sol = flow.solve(field, (at.flow, at.lead), np.array([0.0, 1.0]), now - at.time, **TIGHT)
    x, e = jax.tree.map(lambda y: y[-1], sol.ys)
    return Followed(x, e, now, jnp.maximum(at.status, sol.status))


def read_deviation(moment: Moment, at: Followed) -> tuple[dict[str, Array], Followed]:
    """Descent minus flow, and the theory's leading error, in random directions."""
    at, directions = followed(moment, at), probes(moment.params)
    gap = along(moment.params, directions) - along(at.flow, directions)
    return {"deviation": jnp.where(at.status == OK, gap, jnp.nan), "lead": along(at.lead, directions)}, at


DEVIATION = Law(
    name="deviation",
    title="Descent leaves gradient flow by its leading error",
    theory=(
        r"At $t = n\eta$ the weights of descent on one batch are those of gradient flow plus $\eta e(t)$, where "
        r"$\dot e = -H(e + \tfrac12\nabla L)$ along the flow, as the modified loss $L + \tfrac\eta4\|\nabla L\|^2$ has it, too."
    ),
    source="Hairer, Nørsett, Wanner, Solving Ordinary Differential Equations I, section II.8; arXiv:2009.11162",
    read=read_deviation,
    own=("deviation",),
    measure=lambda own: own["deviation"],
    predict=lambda others: others["lr"] * others["lead"],
    dims="probe",
    bound=0.05,
    optimizers=("sgd",),
    same_batch=True,
    memory=begun,
    cost=100.0,
)

INSTRUMENTS = (BALANCE, EDGE, DEVIATION)
