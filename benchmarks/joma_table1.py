"""Table 1's training step: a batch of 128 sequences, the unique ones weighted, and those without their repeated padding.

Loss, gradient, coupled decay and Adam, float32, full matrix precision, weights kept on the device; compilation apart. That all
three have the same gradient is checked first. Unique sequences: one a class, its loss times how often it is in the batch. Without
padding: positions before every token are alike, one stands for them all; the top block has one query.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from common import interleaved, publish

from jaxdyn import nn, train
from jaxdyn.theories.joma.experiments.table1 import trial as training

CASES = ((256, 2, 4), (256, 3, 4), (1024, 2, 1))  # width, members, steps of a sample


def contestants(s: training.Table1) -> tuple[dict[str, Callable], Any, Any, Any]:
    """Losses of (weights, labels), the start, and labels."""
    k_problem, k_start, k_labels = jax.random.split(jax.random.key(0), 3)
    p, net, n = training.problem(s, k_problem), nn.network(training.shape(s)), training.positions(s)
    labels = jax.random.randint(k_labels, (s.batch,), 0, s.classes)

    def counts(labels: Any) -> Any:
        return jax.numpy.bincount(labels, length=s.classes)

    def unique(w: Any, labels: Any) -> Any:
        logits = net.apply(w, p.tokens)[:, -1]
        each = training.cross_entropy(logits, jax.numpy.arange(s.classes))
        return jax.numpy.sum(counts(labels) * each) / s.batch

    losses = {
        "batch": lambda w, labels: training.plain_loss(w, labels, p.tokens, net),
        "unique": unique,
        "unique, no padding": lambda w, labels: training.weighted_loss(net.shape, w, counts(labels), p.tokens, n),
    }
    return losses, training.start(s, k_start), labels, training.optimizer(s.lr, s.decay)


def largest_difference(losses: dict[str, Callable], weights: Any, labels: Any) -> float:
    """Between gradients, over the largest entry of each array."""
    grads = [jax.tree.leaves(jax.jit(jax.grad(loss))(weights, labels)) for loss in losses.values()]
    return max(float(np.abs(a - b).max() / np.abs(a).max()) for g in grads[1:] for a, b in zip(grads[0], g, strict=True))


def measure(case: tuple[int, int, int], repeats: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """One row of the table, and all samples."""
    width, members, steps = case
    s = training.Table1(width=width, members=members)
    losses, weights, labels, tx = contestants(s)
    state = train.init(tx, weights)
    difference = largest_difference(losses, weights, labels)
    assert difference < 1e-3, f"not the same gradient: {difference}"
    compile_seconds, runs = {}, {}
    for name, loss in losses.items():
        step = train.make_step(loss, tx)
        run = jax.jit(lambda now, labels, step=step: jax.lax.fori_loop(0, steps, lambda _, x: step(x, labels), now))
        start = time.perf_counter()
        compiled = run.lower(state, labels).compile()
        compile_seconds[name] = time.perf_counter() - start
        runs[name] = lambda compiled=compiled: jax.block_until_ready(compiled(state, labels))
    found = interleaved(runs, repeats)
    ms = {name: times["median"] / steps * 1e3 for name, times in found.items()}
    row = {"width": width, "members": members, **{f"{name} (ms/step)": t for name, t in ms.items()}}
    row |= {f"batch / {name}": ms["batch"] / ms[name] for name in list(ms)[1:]}
    facts = {"difference of gradients": difference, "compile (s)": compile_seconds, "steps of a sample": steps, "samples": found}
    return row, facts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="width 256 and two members alone, once: does it work?")
    quick = parser.parse_args().quick
    rows, facts = [], {}
    with jax.default_matmul_precision("highest"):
        for case in CASES[:1] if quick else CASES:
            row, found = measure(case, 1 if quick else 5)
            rows.append(row)
            facts[f"width {case[0]}, {case[1]} members"] = found
    question = "Table 1, a training step with 20 classes, (10, 20) latents: median milliseconds, and how much faster than the batch"
    publish("joma_table1", question, rows, save=not quick, **facts)


if __name__ == "__main__":
    main()
