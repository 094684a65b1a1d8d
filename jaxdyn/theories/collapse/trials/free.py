"""The unconstrained-features model from a random start, by gradient flow or by gradient descent, to its end.

"Measured" is the model's own loss, by automatic differentiation. Both numbers of classes and all dimensions share a program by
masks. Features move K m times as fast as the mean of the loss would have it, so that a feature's rate does not depend on their
number.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

import jaxdyn as jd
from jaxdyn import flow, sampling
from jaxdyn.theories.collapse import measures, model
from jaxdyn.theories.collapse.dynamics import minimum

__all__ = ["NAMES", "Unconstrained", "trial"]

TIMES = (0.0, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0)
NAMES = measures.Collapse._fields


@jd.setting
class Unconstrained:
    """A problem and its training.

    Args:
        classes: K, at most ``most``.
        dim: d, at most ``width``.
        decay: lambda.
        imbalance: weight of each class of the first half over that of each of the others.
        lr: step size of gradient descent; the flow needs none.
        steps: of gradient descent.
        each, most, width: features a class, largest numbers of classes and dimensions.
    """

    classes: jd.Swept = 3.0
    dim: jd.Swept = 12.0
    decay: jd.Swept = 0.01
    imbalance: jd.Swept = 1.0
    lr: jd.Swept = 0.5
    steps: jd.Swept = 6000.0
    each: int = 4
    most: int = 10
    width: int = 12

    def __post_init__(self) -> None:
        jd.require(self, 2 <= self.classes <= self.most, "classes is from 2 to most", "classes", "most")
        jd.require(self, 1 <= self.dim <= self.width, "dim is from 1 to width", "dim", "width")
        for name in ("decay", "imbalance", "lr", "steps"):
            jd.require(self, getattr(self, name) > 0, f"{name} is positive", name)


def gaps(logits: Float[Array, "K m K"], used: Array) -> tuple[Array, Array]:
    """Least and largest difference of the right logit and another one."""
    k = used.size
    right = jnp.diagonal(logits, axis1=0, axis2=2).T[..., None]  # (K, m, 1)
    others = (used[:, None] & used & ~jnp.eye(k, dtype=bool))[:, None, :]
    difference = right - logits
    return jnp.min(jnp.where(others, difference, jnp.inf)), jnp.max(jnp.where(others, difference, -jnp.inf))


def lengths(p: model.Free, used: Array) -> tuple[Array, Array]:
    """Least and largest squared length of a class mean and of a row of the classifier."""
    squares = jnp.stack([jnp.sum(jnp.mean(p.h, 1) ** 2, -1), jnp.sum(p.w**2, -1)])
    return jnp.min(jnp.where(used, squares, jnp.inf)), jnp.max(jnp.where(used, squares, -jnp.inf))


def trial(s: Unconstrained, key: PRNGKeyArray) -> jd.Observables:
    """Measures along the flow and at the end of gradient descent, beside the minimum."""
    index, used = jnp.arange(s.most), jnp.arange(s.most) < s.classes
    heavy = jnp.where(index < s.classes / 2, s.imbalance, 1.0) * used
    weight, k = heavy / jnp.sum(heavy), jnp.asarray(s.classes, jnp.float64)
    noise = sampling.normal(key, (s.most, s.each + 1, s.width)) * (jnp.arange(s.width) < s.dim) * used[:, None, None]
    start = model.Free(0.5 * noise[:, 0], 0.5 * noise[:, 1:])
    rate = model.Free(jnp.float64(1), k * s.each)
    labels = jnp.repeat(index, s.each)

    def loss(p: model.Free, weight: Array, used: Array, decay: Array) -> Array:
        return model.loss(p, weight, used, decay)

    args = (weight, used, jnp.asarray(s.decay, jnp.float64))
    path = flow.gradient_flow(
        loss, start, jnp.asarray(TIMES, jnp.float64), *args, rate=rate, rtol=1e-7, atol=1e-9, max_steps=40_000
    )

    def step(p: model.Free) -> model.Free:
        g = jax.grad(loss)(p, *args)
        return jax.tree.map(lambda x, d, r: x - s.lr * r * d, p, g, rate)

    last = jax.lax.fori_loop(0, jnp.round(s.steps).astype(jnp.int32), lambda _, p: step(p), start)

    def look(p: model.Free) -> dict[str, Array]:
        z = model.logits(p, used)
        m = measures.measure(p.h.reshape(-1, s.width), labels, p.w, z.reshape(-1, s.most), used)
        (low, high), (least, most) = gaps(z, used), lengths(p, used)
        ends = {"gap_low": low, "gap_high": high, "size_low": least, "size_high": most}
        return m._asdict() | ends | {"objective": loss(p, *args)}

    watched, ended = jax.vmap(look)(path.ys), look(last)
    both = {"cosines": minimum.cosine(k), "gaps": minimum.gap(k, s.decay), "sizes": minimum.size(k, s.decay)}
    predicted = {name: jd.named(jnp.stack([value, value]), "end") for name, value in both.items()} | {
        "objective": minimum.least(k, s.decay),
    }

    def ends(o: dict[str, Array]) -> dict[str, Array]:
        pairs = {"cosines": ("low", "high"), "gaps": ("gap_low", "gap_high"), "sizes": ("size_low", "size_high")}
        return {name: jnp.stack([o[low], o[high]]) for name, (low, high) in pairs.items()}

    flowed, descended = ends({n: v[-1] for n, v in watched.items()}), ends(ended)
    measured = {n: jd.named(v, "end") for n, v in flowed.items()} | {"objective": watched["objective"][-1]}
    predicted |= {f"{n}_descent": predicted[n] for n in (*both, "objective")}
    measured |= {f"{n}_descent": jd.named(v, "end") for n, v in descended.items()} | {"objective_descent": ended["objective"]}
    measured |= {"within": watched["within"][-1], "dual": watched["dual"][-1]}
    measured |= {"within_descent": ended["within"], "dual_descent": ended["dual"]}
    first = ends({n: v[0] for n, v in watched.items()})
    recorded = {f"start_{n}": jd.named(v, "end") for n, v in first.items()}
    recorded |= {f"start_{n}": watched[n][0] for n in ("within", "dual", "objective")}
    recorded |= {f"path_{n}": jd.named(watched[n], "time") for n in ("within", "low", "high", "dual")}
    return jd.observables(
        predicted=predicted,
        measured=measured,
        recorded=recorded,
        assumed={"room": jnp.asarray(s.dim - s.classes + 1, jnp.float64), "threshold": jnp.asarray(s.decay * k, jnp.float64)},
        status=path.status,
        coords={"end": ("least", "largest"), "time": TIMES},
    )
