"""Values and gradients of a decoder's MLP on one core: with ``jaxdyn.linalg.dense``, with plain products in JAX, and in PyTorch.

The block is ``dense(silu(dense(x, gate)) * dense(x, up), down)``, float32, as ``jaxdyn.nn.transformer`` has it; a step computes its
value and its gradients by x and by the three matrices, and moves all of them. All sides have one thread, as a worker of a sweep
has, and run in turn. That they compute the same gradients is checked first.

``of peak``: share of one core's matrix-product rate, by the nine products of a step.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import numpy as np
from common import Children, alternate, matmul_peak, publish, serve

os.environ.setdefault("PJRT_NPROC", "1")  # threads of XLA, read when JAX starts

CASES = ((64, 28, 32, 64), (32, 64, 128, 352), (8, 128, 256, 688))  # sequences, tokens, width, units
FLOP, RATE = 0.1, 1e-6  # Tflop of a sample; the step, small so that nothing grows


def start(case: tuple[int, ...]) -> list[np.ndarray]:
    """Inputs and the three matrices."""
    sequences, tokens, width, units = case
    rng = np.random.default_rng(0)
    sizes = ((sequences, tokens, width), (width, units), (width, units), (units, width))
    return [(rng.standard_normal(s) * (1 if i == 0 else s[0] ** -0.5)).astype(np.float32) for i, s in enumerate(sizes)]


def flop(case: tuple[int, ...]) -> float:
    """Of the nine products of a step."""
    return 18.0 * np.prod(case)


def jax_gradients(product: Callable[..., Any]) -> Callable[..., tuple[Any, ...]]:
    """Gradients with the given product."""
    import jax
    import jax.numpy as jnp

    def loss(x: Any, gate: Any, up: Any, down: Any) -> Any:
        return 0.5 * jnp.sum(jnp.square(product(jax.nn.silu(product(x, gate)) * product(x, up), down)))

    return jax.grad(loss, argnums=(0, 1, 2, 3))


def jax_seconds(case: tuple[int, ...], product: Callable[..., Any], steps: int) -> Callable[[], float]:
    """Seconds of a step, as an average over a loop inside one compiled program."""
    import jax

    gradients, arrays = jax_gradients(product), start(case)

    def step(_: Any, arrays: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(a - RATE * g for a, g in zip(arrays, gradients(*arrays), strict=True))

    run = jax.jit(lambda *a: jax.lax.fori_loop(0, steps, step, a))
    jax.block_until_ready(run(*arrays))

    def seconds() -> float:
        begin = time.perf_counter()
        jax.block_until_ready(run(*arrays))
        return (time.perf_counter() - begin) / steps

    return seconds


def torch_gradients(arrays: list[Any]) -> None:
    """The same gradients in PyTorch, left in the arrays."""
    from torch.nn.functional import silu

    x, gate, up, down = arrays
    (0.5 * ((silu(x @ gate) * (x @ up)) @ down).square().sum()).backward()


def torch_step(arrays: list[Any]) -> None:
    """The same step in PyTorch, in place."""
    import torch

    torch_gradients(arrays)
    with torch.no_grad():
        for a in arrays:
            a.sub_(a.grad, alpha=RATE)
            a.grad = None


def child(case: tuple[int, ...]) -> None:
    """A PyTorch process: for each line, which is a number of steps, the seconds of one."""
    import torch

    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    arrays = [torch.tensor(a).requires_grad_() for a in start(case)]
    torch_step(arrays)
    serve(lambda _: torch_step(arrays))


def apart(case: tuple[int, ...], product: Callable[..., Any]) -> float:
    """The largest difference of a gradient, ours from PyTorch's, over the largest entry of each array."""
    import torch

    theirs = [torch.tensor(a).requires_grad_() for a in start(case)]
    torch_gradients(theirs)
    pairs = [(np.asarray(o), t.grad.numpy()) for o, t in zip(jax_gradients(product)(*start(case)), theirs, strict=True)]
    return max(float(abs(o - t).max() / abs(t).max()) for o, t in pairs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--child", nargs=4, type=int, metavar="SIZE", help=argparse.SUPPRESS)
    parser.add_argument("--quick", action="store_true", help="the smallest case, nothing is written")
    arguments = parser.parse_args()
    if arguments.child:
        child(tuple(arguments.child))
        return
    import jax.numpy as jnp

    from jaxdyn.linalg import dense

    rows, peak = [], matmul_peak()
    for case in CASES[:1] if arguments.quick else CASES:
        difference = apart(case, dense)
        steps = max(3, round(FLOP * 1e12 / flop(case) / (20 if arguments.quick else 1)))
        with ExitStack() as stack:
            torch = Children(stack, __file__, case, 1)
            contestants = {"dense": jax_seconds(case, dense, steps), "plain": jax_seconds(case, jnp.matmul, steps)}
            times = alternate({**contestants, "torch": lambda torch=torch, steps=steps: torch.seconds(steps)}, 5)
            for c in torch.children:
                c.stdin.close()
        best = {name: min(t) for name, t in times.items()}
        rows.append(
            {
                "sequences x tokens, width, units": "{} x {}, {}, {}".format(*case),
                "dense (ms)": 1e3 * best["dense"],
                "plain JAX (ms)": 1e3 * best["plain"],
                "PyTorch (ms)": 1e3 * best["torch"],
                "faster than plain": best["plain"] / best["dense"],
                "faster than PyTorch": best["torch"] / best["dense"],
                "of peak": flop(case) / best["dense"] / peak,
                "apart": difference,
            }
        )
    question = "An MLP's values and gradients on one core"
    publish("dense_layer", question, rows, save=not arguments.quick, peak_gflops=peak / 1e9, times=times)


if __name__ == "__main__":
    main()
