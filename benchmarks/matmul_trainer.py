"""What share of this machine's own float32 matrix-product rate does a trainer reach that is nothing but matrix products?

A two-layer ReLU network of d inputs, d hidden nodes and d outputs, trained on one batch of 1024 by SGD (``train.record``, swept by
the engine), for one seed and four, mapped and vmapped. A step has five products of a (1024, d) by a (d, d) matrix or the like (two
forward, three backward: the inputs need no gradient), so 10 d^2 flop a sample; the textbook count of 6 flop a weight and sample
would be 12 d^2. XLA's own count is printed beside. The peak is the best rate of single 2048^3 products, measured before and after.
"""

from __future__ import annotations

import argparse
import functools
import os
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from common import interleaved, matmul_peak, publish

import jaxdyn as jd
from jaxdyn import train

BATCH = 1024


@jd.setting
class Wide:
    """Sizes and learning rate."""

    lr: jd.Swept = 0.01
    d: int = 512
    steps: int = 20
    dtype: str = "float32"


def problem(d: int, key: jax.Array) -> tuple[dict[str, jax.Array], jax.Array, jax.Array]:
    """Start and data, with few draws, as they are timed too: targets are the inputs reversed, layers start as transposes."""
    k_init, k_data = jax.random.split(key)
    w = jax.random.normal(k_init, (d, d), jnp.float32) * (1 / d) ** 0.5
    x = jax.random.normal(k_data, (BATCH, d), jnp.float32)
    return {"w": w, "v": w.T}, x, x[:, ::-1]


def loss(params: dict[str, jax.Array], x: jax.Array, y: jax.Array) -> jax.Array:
    return 0.5 * jnp.mean(jnp.sum(jnp.square(jax.nn.relu(x @ params["w"]) @ params["v"] - y), -1))


def trial(s: Wide, key: jax.Array) -> jd.Observables:
    """Train; the loss at the start and at the end."""
    params, x, y = problem(s.d, key)
    tx = optax.sgd(s.lr)
    step = train.make_step(loss, tx)
    _, losses = train.record(
        lambda state: step(state, x, y), train.init(tx, params), lambda state: loss(state.params, x, y), samples=1, every=s.steps
    )
    return jd.observables(measured={"loss": jd.named(losses, "end")})


def flop(d: int, steps: int) -> float:
    """Of one run: the steps, and the two forward passes of the records (two products each)."""
    return 2 * BATCH * d * d * (5 * steps + 2 * 2)


def counted_by_xla(d: int) -> float:
    """Flop of one step as XLA counts them (products and elementwise work)."""
    params, x, y = jax.eval_shape(lambda: problem(d, jax.random.key(0)))
    tx = optax.sgd(0.01)
    step = jax.jit(train.make_step(loss, tx)).lower(jax.eval_shape(lambda p: train.init(tx, p), params), x, y)
    return step.compile().cost_analysis()["flops"]


def check(d: int, steps: int) -> float:
    """Largest relative difference from the same training in NumPy, float64."""
    key = jax.random.fold_in(jax.random.key(0), 0)
    params, x, y = (jax.tree.map(lambda a: np.asarray(a, np.float64), part) for part in problem(d, key))
    w, v, lr = params["w"], params["v"], Wide().lr
    losses = []
    for i in range(steps + 1):
        h = np.maximum(x @ w, 0)
        r = (h @ v - y) / BATCH
        losses += [0.5 * BATCH * np.sum(r * r)] if i in (0, steps) else []
        w, v = w - lr * x.T @ ((r @ v.T) * (h > 0)), v - lr * h.T @ r
    ds = jd.sweep(trial, jd.grid(Wide, d=[d], steps=[steps]), seeds=1)
    return float(np.max(np.abs(ds.measured_loss.values.ravel() / losses - 1)))


def rates(d: int, steps: int, repeats: int) -> list[dict[str, Any]]:
    """Rows of one size, in flop/s."""

    def run(seeds: int, executor: str) -> None:
        jd.sweep(trial, jd.grid(Wide, d=[d], steps=[steps]), seeds=seeds, executor=executor)

    contestants = {(n, e): functools.partial(run, n, e) for n in (1, 4) for e in ("map", "vmap")}
    times = interleaved(contestants, repeats)
    return [
        {"d": d, "seeds": n, "executor": e, "median s": t["median"], "median": n * flop(d, steps) / t["median"],
         "best": n * flop(d, steps) / t["min"]}
        for (n, e), t in times.items()
    ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="d = 128, 3 steps, once: does it work?")
    options = parser.parse_args()
    sizes = {128: 3} if options.quick else {512: 40, 1024: 10}  # steps of a run, which then lasts about a second
    peaks = [matmul_peak()]
    rows, counts = [], {}
    agreement = check(min(sizes), 3)
    assert agreement < 1e-4, f"the trainer differs from numpy by {agreement}"
    for d, steps in sizes.items():
        rows += rates(d, steps, 1 if options.quick else 5)
        counts[d] = {"products_of_a_step": 10 * BATCH * d * d, "xla_flop_of_a_step": counted_by_xla(d)}
        peaks.append(matmul_peak())
    for row in rows:
        median, best = row.pop("median"), row.pop("best")
        row |= {"Gflop/s": median / 1e9, "share of peak, median": median / max(peaks), "share of peak, best": best / max(peaks)}
    publish(
        "matmul_trainer",
        f"Batch {BATCH}, float32, {os.cpu_count()} cores; peak {max(peaks) / 1e9:.0f} Gflop/s",
        rows, save=not options.quick, peaks=peaks, flop_counts=counts, agreement=agreement,
    )  # fmt: skip


if __name__ == "__main__":
    main()
