"""What does the sweep engine cost over a hand-written ``jit(vmap(trial))``? A warm sweep of at least 2 s, shards included."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from common import interleaved, publish

import jaxdyn as jd


@jd.setting
class Net:
    """A small tanh network on random data, trained by gradient descent."""

    lr: jd.Swept = 0.1
    width: int = 16
    steps: int = 2000
    dtype: str = "float32"


def trial(s: Net, key: jax.Array) -> jd.Observables:
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


LR = np.linspace(0.02, 0.3, 16).tolist()
SEEDS = 64


def main() -> None:
    cells = jd.grid(Net, lr=LR)

    def one(lr, seed):
        key = jax.random.fold_in(jax.random.key(0), seed)
        return trial(Net(lr=lr), key).measured["loss"].value

    hand = jax.jit(jax.vmap(jax.vmap(one, (0, None)), (None, 0)))
    lrs, seeds = jnp.asarray(LR, jnp.float32), jnp.arange(SEEDS, dtype=jnp.uint32)

    def by_hand():
        return np.asarray(hand(lrs, seeds))

    def by_engine():
        with tempfile.TemporaryDirectory() as out:
            return jd.sweep(trial, cells, seeds=SEEDS, out=Path(out) / "store", executor="vmap")

    start = time.perf_counter()
    a, b = by_hand(), by_engine()
    first = time.perf_counter() - start
    assert np.allclose(a.swapaxes(0, 1), b.measured_loss.values, rtol=1e-3, atol=1e-5), "the contestants disagree"
    times = interleaved({"jit(vmap(trial)) by hand": by_hand, "jd.sweep with shards": by_engine}, repeats=7)
    base = times["jit(vmap(trial)) by hand"]
    rows = [
        {"contestant": n, "min s": t["min"], "median s": t["median"], "ratio of medians": t["median"] / base["median"]}
        for n, t in times.items()
    ]
    publish(
        "sweep_overhead",
        f"{SEEDS * len(LR)} runs, warm (target: ratio below 1.05)",
        rows,
        compile_and_first_seconds=first,
        times=times,
    )


if __name__ == "__main__":
    main()
