"""CoGO's training loss and its gradient: summed over pairs, or all pairs by Gram matrices less the held-out ones?

Both are the same number (checked in float64). A tenth of the pairs is held out; the full-data loss is timed as well, directly by
broadcasting and by Gram matrices. Training (``jaxdyn.theories.cogo.training.objective``) takes Gram
matrices for d above 32; their programs take four times as long to compile. Below it takes a masked sum over all pairs.
"""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
from common import interleaved, publish

from jaxdyn.data.abelian import parse
from jaxdyn.theories.cogo import model, training

SIZES = {23: (64, 128, 256, 512), 71: (256, 512, 1024, 2048), 127: (512, 1024, 2048)}


def forms(d: int, held_out: float = 0.1) -> dict[str, Callable]:
    """The loss of weights, four ways: two over the training pairs, two over all."""
    group = parse(str(d))
    kept, held = training.split(jax.random.key(0), group, held_out)
    return {
        "pairs": lambda w: model.loss_at(w, group, "code", kept),
        "Gram less held-out": lambda w: model.loss_without(w, group, "code", held)[0],
        "all pairs": lambda w: model.loss(w, group, "code"),
        "all by Gram": lambda w: model.loss_by_gram(w, group, "code"),
    }


def same_value(d: int, q: int = 32) -> dict[str, float]:
    """Relative differences of values and gradients in float64."""
    with jax.enable_x64(True):
        w = model.init(jax.random.key(1), parse(str(d)), q, "float64")
        values = {name: jax.value_and_grad(f)(w) for name, f in forms(d).items()}
        gaps = {}
        for one, other in (("pairs", "Gram less held-out"), ("all pairs", "all by Gram")):
            (v, g), (u, h) = values[one], values[other]
            gaps[other] = float(abs(v - u) / v)
            gaps[f"{other}, gradient"] = float(jnp.max(jnp.abs(g - h)) / jnp.max(jnp.abs(g)))
    assert max(gaps.values()) < 1e-12, f"the forms differ: {gaps}"
    return gaps


@functools.partial(jax.jit, static_argnums=(0, 2))
def descend(f: Callable, w: jax.Array, count: int) -> jax.Array:
    """Small steps down the loss: no evaluation can be left out."""
    return jax.lax.fori_loop(0, count, lambda _, x: x - 1e-4 * jax.grad(f)(x), w)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="d = 23 alone, once: does it work?")
    options = parser.parse_args()
    rows, gaps = [], {d: same_value(d) for d in (5, 23)}
    for d, widths in SIZES.items():
        if options.quick and d > 23:
            break
        for q in widths:
            w, count = model.init(jax.random.key(1), parse(str(d)), q), max(3, 10**9 // (d**3 * q))
            every = {name: f for name, f in forms(d).items() if name != "all pairs" or d * d * q < 10**7}
            runs = {name: lambda f=f, w=w, n=count: descend(f, w, n).block_until_ready() for name, f in every.items()}
            times = {name: t["median"] / count * 1e3 for name, t in interleaved(runs, 1 if options.quick else 5).items()}
            ratio = times["pairs"] / times["Gram less held-out"]
            chosen = "Gram" if d > training.SMALL else "all pairs"
            ms = {f"{name} (ms)": times.get(name, "") for name in forms(d)}
            rows.append({"d": d, "q": q, **ms, "pairs / Gram": ratio, "training takes": chosen})
    publish(
        "cogo_loss",
        "CoGO's loss and gradient, float32: over pairs or by Gram matrices (medians)",
        rows, save=not options.quick, largest_differences_float64=gaps,
    )  # fmt: skip


if __name__ == "__main__":
    main()
