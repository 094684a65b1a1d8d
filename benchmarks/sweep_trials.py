"""Trials of ``sweep_overhead.py``: a module of their own, which the workers of a cluster import."""

from __future__ import annotations

import jax
import jax.numpy as jnp

import jaxdyn as jd

__all__ = ["Net", "Trivial", "slow", "trained", "trivial"]


@jd.setting
class Trivial:
    """Two numbers."""

    a: jd.Swept = 1.0
    b: jd.Swept = 1.0


def trivial(s: Trivial, key: jax.Array) -> jd.Observables:
    """One draw per seed; two float64 per run."""
    x = jax.random.uniform(key, (), jnp.float64)
    return jd.observables(measured={"first": s.a * x + s.b, "second": s.a + s.b * x})


def slow(s: Trivial, key: jax.Array) -> jd.Observables:
    """About 10 ms of products of 64 x 64 matrices, one after another."""
    w = jax.random.normal(key, (64, 64), jnp.float32) / 8

    def step(_, x):
        return jnp.tanh(w @ x) + jnp.float32(0.1)

    start = jnp.full((64, 64), (s.a * s.b).astype(jnp.float32))
    return jd.observables(measured={"mean": jnp.mean(jax.lax.fori_loop(0, 1300, step, start))})


@jd.setting
class Net:
    """A small tanh network on random data, trained by gradient descent."""

    lr: jd.Swept = 0.1
    width: int = 16
    steps: int = 2000
    dtype: str = "float32"


def trained(s: Net, key: jax.Array) -> jd.Observables:
    """Train; the loss at 50 steps along the run."""
    kx, kw = jax.random.split(key)
    x = jax.random.normal(kx, (32, 8), jnp.float32)
    y = jnp.sin(x.sum(1))
    w = jax.random.normal(kw, (8, s.width), jnp.float32) / 8**0.5
    v = jnp.full((s.width,), 1 / s.width, jnp.float32)

    def loss(p):
        return jnp.mean(jnp.square(jnp.tanh(x @ p[0]) @ p[1] - y))

    def step(p, _):
        value, grads = jax.value_and_grad(loss)(p)
        return jax.tree.map(lambda a, g: a - s.lr * g, p, grads), value

    _, losses = jax.lax.scan(step, (w, v), length=s.steps)
    return jd.observables(measured={"loss": jd.named(losses[:: s.steps // 50], "step")})
