r"""The layer of ``layer.py`` with linear activation, trained by gradient flow and by gradient descent.

Both start from the same (z, V). The theory's side knows the saliency Δ, the start and A, nothing of the network. Letters as in
``dynamics/linear.py``; t saved states, m tokens, k nodes, n samples. Times are shares of the first blow-up t*.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax.scipy.special import erf
from jaxtyping import Array, Float, PRNGKeyArray

import jaxdyn as jd
from jaxdyn import flow, metrics
from jaxdyn.theories.joma.dynamics import linear as theory
from jaxdyn.theories.joma.linear import layer as net
from jaxdyn.theories.joma.model import normals

FORMS = ("printed", "derived")
SAVES = 16  # states of the flow, equally spaced in ln(1 - t/t*) from 1 to LEFT; one more where it ends
LEFT = 1e-4
HALFWAY = SAVES // 2 - 1  # the save time at which 1% of t* is left
CHECKPOINTS = 8  # of gradient descent, equally spaced up to TRAINED_TO
TRAINED_TO = 0.8  # of t*
LEVEL = 6.0  # a row of this norm counts as blown up: 1 - erf(6/sqrt 2) = 2e-9 of the way is left
PRECISION = {"rtol": 1e-11, "atol": 1e-13}


@jd.setting
class LinearLayer:
    """One layer under fixed upper gradients.

    Args:
        nodes: nodes in use, at most hidden.
        tokens: m.
        hidden: k.
        samples: n.
        attention: kind of attention.
        phi: activation.
        normalizer: the constant A.
        start_v: standard deviation of V at the start.
        start_z: standard deviation of z at the start.
        boost: factor on the frequency of the token with the largest saliency.
        tie: from 0 to 1, raises the second largest saliency towards the largest.
        tilt: spread of b̄ of ``shared`` attention around uniform, on a logarithmic scale.
        feedback: κ/max‖Δ‖, by which the upper gradients follow the weights; 0 in Theorem 2.
        ratio: learning rate of z over that of V.
        step: of gradient descent, in units of t*.
        horizon: factor on the save times, which end at 0.9999 t*; at most 1 where the flow blows up at t*.
    """

    nodes: jd.Swept = jd.field(1.0, at_least=1, whole=True)
    tokens: int = jd.field(12, at_least=2)
    hidden: int = 3
    samples: int = 32
    attention: jd.Code = jd.code(*net.KINDS)
    phi: jd.Code = jd.code(*net.PHIS)
    normalizer: jd.Swept = 1.0
    start_v: jd.Swept = 0.0
    start_z: jd.Swept = 0.0
    boost: jd.Swept = 1.0
    tie: jd.Swept = 0.0
    tilt: jd.Swept = 0.0
    feedback: jd.Swept = 0.0
    ratio: jd.Swept = 1.0
    step: jd.Swept = jd.field(1e-3, above=0, at_most=TRAINED_TO / CHECKPOINTS, role="rate")
    horizon: jd.Swept = jd.field(1.0, above=0)

    def __post_init__(self) -> None:
        """Refuse parts of a node, and too few samples for the upper gradient."""
        whole = self.nodes <= self.hidden and self.nodes == round(self.nodes)
        jd.require(self, whole, f"nodes is a whole number from 1 to {self.hidden}", "nodes", "hidden")
        jd.require(self, self.samples >= self.tokens, "there are at least as many samples as tokens", "samples", "tokens")


def _emphasised(x: Float[Array, "n m"], g: Float[Array, "n k"], boost: jd.Swept, tie: jd.Swept) -> Float[Array, "n m"]:
    """Frequencies with the largest row of Δ raised by ``boost`` and the second moved to it by ``tie``."""
    size = jnp.linalg.norm(x.T @ g, axis=-1)
    first = jnp.argmax(size)
    second = jnp.argmax(jnp.where(jnp.arange(size.size) == first, 0.0, size))
    factor = jnp.ones_like(size).at[second].set((size[first] * boost / size[second]) ** tie).at[first].set(boost)
    return x * factor


def _sampled(
    key: PRNGKeyArray, samples: int, tokens: int, nodes: int
) -> tuple[Float[Array, "n m"], Float[Array, "n k"], Float[Array, " m"], Float[Array, "m k"], Float[Array, " m"]]:
    """Frequencies (rows sum to 1, a few tokens carry most of a sample), normal g, and three normal arrays."""
    x, g, *rest = normals(key, (samples, tokens), (samples, nodes), (tokens,), (tokens, nodes), (tokens,))
    a, b, c = rest
    return jax.nn.softmax(2.0 * x), g, a, b, c


def build(s: LinearLayer, key: PRNGKeyArray) -> tuple[net.Layer, net.Params]:
    """The layer and its start; nodes beyond ``s.nodes`` have no gradient, and are zero and stay zero."""
    x, g, z, v, b = _sampled(key, s.samples, s.tokens, s.hidden)
    used = (jnp.arange(s.hidden) < s.nodes).astype(jnp.float64)
    g, v = g * used, v * used
    x = _emphasised(x, g, s.boost, s.tie)
    largest = jnp.max(jnp.linalg.norm(x.T @ g, axis=-1)) / s.samples
    layer = net.Layer(x, g, s.attention, jax.nn.softmax(s.tilt * b), s.phi, s.normalizer, net.pull(x, s.feedback * largest))
    return layer, net.Params(s.start_z * z, s.start_v * v)


def _flow(
    s: LinearLayer, layer: net.Layer, start: net.Params, t_star: Float[Array, ""], shares: Float[Array, " t"]
) -> tuple[flow.Solution, net.Params]:
    """Gradient flow up to 1.2 times the horizon (or t*) or a row of norm LEVEL; its states at ``shares`` and at its end."""
    ts = t_star * jnp.concatenate([jnp.zeros(1), shares, 1.2 * jnp.maximum(1.0, shares[-1:])])

    def escape(_t: Array, y: net.Params, _args: tuple) -> Array:
        # exp(-v²/2) falls at a steady rate near the blow-up, v itself too fast for the root finder
        return jnp.exp(-0.5 * jnp.max(jnp.sum(y.v**2, -1))) - jnp.exp(-0.5 * LEVEL**2)

    sol = flow.gradient_flow(net.loss, start, ts, layer, rate=net.rates(s.ratio), event=escape, **PRECISION)
    return sol, jax.tree.map(lambda y, end: jnp.concatenate([y[1:-1], end[None]]), sol.ys, sol.y_end)


def _ratio_forms(r: theory.Rows, w: Float[Array, "t m"]) -> Float[Array, "form t m"]:
    """The rows of V by the erf law from the measured row of the winner: with the printed width 2 and with sqrt 2."""
    winner = w[:, jnp.argmin(theory.blow_up_times(r))]
    widths = jnp.array([2.0, theory.SQRT2], jnp.float64)
    return jax.vmap(lambda width: jax.vmap(lambda one: theory.ratio_law(r, one, width))(winner))(widths)


def _path_forms(r: theory.Rows, layer: net.Layer, left: Float[Array, " t"], nodes: jd.Swept) -> Float[Array, "form t m k"]:
    """V when the share ``left`` of t* is left: the printed row-sum form (from zero start) and the derived form."""
    t = jnp.min(theory.blow_up_times(r)) * (1.0 - left)
    printed = theory.row_sum_position(net.saliency(layer), t, layer.normalizer, nodes)
    return jnp.stack([printed, jax.vmap(lambda one: theory.position(r, one))(left)])


def _velocity_forms(
    r: theory.Rows, layer: net.Layer, path: Float[Array, "form t m k"], nodes: jd.Swept
) -> Float[Array, "form t m k"]:
    """dV/dt of the two forms at their own positions."""
    printed = theory.row_sum_velocity(net.saliency(layer), path[0], layer.normalizer, nodes)
    return jnp.stack([printed, theory.velocity(r, path[1])])


def _descent(s: LinearLayer, layer: net.Layer, start: net.Params, t_star: Array) -> Float[Array, "c m k"]:
    """V along gradient descent at the checkpoints; the step is rounded so that they fall on whole steps."""
    every = jnp.round(TRAINED_TO / CHECKPOINTS / s.step).astype(jnp.int32)
    lr = t_star * TRAINED_TO / CHECKPOINTS / every
    return net.trained(start, layer, lr=lr, ratio=s.ratio, samples=CHECKPOINTS, every=every).v[1:]


def _straight(start: net.Params, delta: Float[Array, "m k"], t: Float[Array, " t"]) -> Float[Array, "t m k"]:
    """V where attention does not learn: it moves at the speed of its start."""
    return start.v + t[:, None, None] * jnp.exp(start.z)[:, None] * delta


def trial(s: LinearLayer, key: PRNGKeyArray) -> jd.Observables:
    """One layer: flow up to the blow-up, descent up to 0.8 t*, and the closed forms for both."""
    # the layer, and the times of its blow-up
    layer, start = build(s, key)
    delta = net.saliency(layer)
    r = theory.rows(delta, start.v, start.z, s.normalizer)
    t_star = jnp.min(theory.blow_up_times(r))
    shares = s.horizon * (1.0 - LEFT ** (jnp.arange(1, SAVES + 1, dtype=jnp.float64) / SAVES))
    escape = theory.level_remaining(r, LEVEL)
    # flow and descent; w: the rows of V along their directions
    sol, states = _flow(s, layer, start, t_star, shares)
    speeds = jax.vmap(lambda z, v: -jax.grad(net.loss)(net.Params(z, v), layer).v)(states.z, states.v)
    w = jnp.sum(jnp.concatenate([states.v, _descent(s, layer, start, t_star)]) * r.unit, -1)
    # the closed forms
    path = _path_forms(r, layer, jnp.append(1.0 - shares, escape), s.nodes)
    ratios = _ratio_forms(r, w)
    cut = SAVES + 1  # states of the flow come first, those of the descent after them
    z = start.z + 0.5 * (jnp.sum(path[1] ** 2, -1) - jnp.sum(start.v**2, -1))
    norms = jnp.sort(jnp.linalg.norm(delta, axis=-1))
    return jd.observables(
        predicted={
            "ratio": jd.named(ratios[:, :cut], "form time token"),
            "path": jd.named(path, "form time token node"),
            "srank_v": jd.named(metrics.stable_rank(path), "form time"),
            "srank_rate": jd.named(metrics.stable_rank(_velocity_forms(r, layer, path, s.nodes)), "form time"),
            "entropy": jd.named(metrics.entropy(jax.nn.softmax(z)), "time"),
            "escape": t_star * (1.0 - escape),
            "limit": jd.named(theory.limits(r), "token"),
            "trained_ratio": jd.named(ratios[:, cut:], "form checkpoint token"),
        },
        measured={
            "ratio": jd.named(w[:cut], "time token"),
            "path": jd.named(states.v, "time token node"),
            "srank_v": jd.named(metrics.stable_rank(states.v), "time"),
            "srank_rate": jd.named(metrics.stable_rank(speeds), "time"),
            "entropy": jd.named(metrics.entropy(jax.nn.softmax(states.z)), "time"),
            "escape": sol.t_end,
            "limit": jd.named(erf(w[cut - 1] / theory.SQRT2), "token"),
            "trained_ratio": jd.named(w[cut:], "checkpoint token"),
        },
        recorded={
            "unattended": jd.named(
                _straight(start, delta / s.normalizer, jnp.append(t_star * shares, sol.t_end)), "time token node"
            ),
            "initial_v": jd.named(start.v, "token node"),
            "initial_entropy": metrics.entropy(jax.nn.softmax(start.z)),
            "share": jd.named(jnp.append(shares, sol.t_end / t_star), "time"),
            "saliency": jd.named(delta, "token node"),
            "margin": norms[-1] / norms[-2],
        },
        status=sol.status,
        coords={"form": FORMS},
    )


@jd.setting
class HyperbolicLayer:
    """One layer with linear attention.

    Args:
        tokens: m.
        nodes: k.
        samples: n.
        attention: kind of attention.
        depth: standard deviation of z at the start.
        start_v: standard deviation of V at the start.
        ratio: learning rate of z over that of V.
        horizon: last save time, in units of the blow-up time t* of exp attention.
    """

    tokens: int = jd.field(12, at_least=2)
    nodes: int = jd.field(2, at_least=1)
    samples: int = 32
    attention: jd.Code = jd.code(*net.KINDS)
    depth: jd.Swept = 1.0
    start_v: jd.Swept = 0.0
    ratio: jd.Swept = 1.0
    horizon: jd.Swept = 4.0

    def __post_init__(self) -> None:
        """Refuse too few samples for the upper gradient."""
        jd.require(self, self.samples >= self.tokens, "there are at least as many samples as tokens", "samples", "tokens")


def hyperbolic_trial(s: HyperbolicLayer, key: PRNGKeyArray) -> jd.Observables:
    """The flow of a layer with linear attention, to times well beyond the blow-up of exp attention."""
    # the layer, and the blow-up time of exp attention
    x, g, z, v, _ = _sampled(key, s.samples, s.tokens, s.nodes)
    layer = net.Layer(x, g, s.attention, jnp.full(s.tokens, 1 / s.tokens, jnp.float64))
    start = net.Params(s.depth * z, s.start_v * v)
    delta = net.saliency(layer)
    t_star = jnp.min(theory.blow_up_times(theory.rows(delta, jnp.zeros_like(v), jnp.zeros_like(z))))
    # its flow, and the closed form
    shares = s.horizon * jnp.arange(1, SAVES + 1, dtype=jnp.float64) / SAVES
    ts = t_star * jnp.append(jnp.zeros(1), shares)
    sol = flow.gradient_flow(net.loss, start, ts, layer, rate=net.rates(s.ratio), rtol=1e-11, atol=1e-20)  # also for tiny z(0)
    z_theory, v_theory = jax.vmap(lambda t: theory.hyperbolic(delta, start.v, start.z, t))(t_star * shares)
    return jd.observables(
        predicted={"z": jd.named(z_theory, "time token"), "v": jd.named(v_theory, "time token node")},
        measured={"z": jd.named(sol.ys.z[1:], "time token"), "v": jd.named(sol.ys.v[1:], "time token node")},
        recorded={
            "initial_z": jd.named(start.z, "token"),
            "initial_v": jd.named(start.v, "token node"),
            "straight": jd.named(start.v + (t_star * shares)[:, None, None] * start.z[:, None] * delta, "time token node"),
            "share": jd.named(shares, "time"),
        },
        status=sol.status,
    )
