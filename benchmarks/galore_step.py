"""GaLore-Adam on the 56 matrices of the 60M model: a step, and a refresh of all bases; beside plain Adam, optax and PyTorch.

float32, rank 128, short side (optax: its long side). Steps take the gradient as an argument and update weights and states in place.
A step of GaLore has two products with each basis, 4 r flop for every weight: the time that they need at the machine's measured peak
is a floor, in the table beside the step. PyTorch runs the authors' formulas by hand, and its fused AdamW.

Gradients have singular values like 1/i and drift by a tenth of their size between two refreshes, so that the last basis is a good
but not a perfect start. Refreshes are compared at their distance from the exact subspace and by the share of the gradient's squared
norm that they keep of what the exact one keeps.
"""

from __future__ import annotations

import argparse
import functools
import math
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import numpy as np
from common import Children, interleaved, matmul_peak, publish, serve

NEVER = 10**6
FINDERS = {"exact": ("svd", 0), "randomised, q = 1": ("randomized", 1), "iteration, 1 round": ("iteration", 1),
           "iteration, 2 rounds": ("iteration", 2)}  # fmt: skip
SIZES = {"60M": (512, 1376, 8), "9M": (128, 352, 4)}  # width, units, layers; checked against jaxdyn's
RATE, SCALE = 1e-3, 0.25
Tree = dict[str, Any]


def shapes(name: str) -> dict[str, tuple[int, int, int]]:
    """Shapes of the matrices, layers stacked."""
    d, f, layers = SIZES[name]
    return {**{n: (layers, d, d) for n in "qkvo"}, "gate": (layers, d, f), "up": (layers, d, f), "down": (layers, f, d)}


def matrices(name: str, rank: int, seed: int) -> dict[str, np.ndarray]:
    """Gradients of all matrices: singular values 1/i, a quarter of that beyond the rank, in random directions."""
    rng, out = np.random.default_rng(seed), {}
    for weight, (layers, m, n) in shapes(name).items():
        i = np.arange(1, min(m, n) + 1)
        values = np.where(i <= rank, 1 / i, 0.25 / i)
        pairs = ([np.linalg.qr(rng.normal(size=(size, i.size)))[0] for size in (m, n)] for _ in range(layers))
        out[weight] = np.stack([u * values @ v.T for u, v in pairs]).astype(np.float32)
    return out


def gaussian(name: str) -> dict[str, np.ndarray]:
    """Gradients for steps, whose time does not depend on their entries."""
    rng = np.random.default_rng(0)
    return {weight: 0.01 * rng.standard_normal(size, np.float32) for weight, size in shapes(name).items()}


# PyTorch's side


class TorchGalore:
    """The authors' formulas by hand, one matrix after another; the shorter side is projected."""

    def __init__(self, gradient: dict[str, np.ndarray], rank: int) -> None:
        import torch

        self.rank, self.count = rank, 0
        self.gradient = [torch.tensor(g) for stack in gradient.values() for g in stack]
        self.weights = [g.clone() for g in self.gradient]
        self.bases: list[Any] = [None] * len(self.weights)
        low = [(rank, g.shape[1]) if g.shape[0] < g.shape[1] else (g.shape[0], rank) for g in self.gradient]
        self.first, self.second = [torch.zeros(s) for s in low], [torch.zeros(s) for s in low]

    def refresh(self) -> None:
        """All bases, by exact decompositions."""
        import torch

        for i, g in enumerate(self.gradient):
            u, _, vh = torch.linalg.svd(g, full_matrices=False)
            self.bases[i] = u[:, : self.rank].clone() if g.shape[0] < g.shape[1] else vh[: self.rank].clone()

    def step(self) -> None:
        """A step of Adam (epsilon beside the root of the second moment) in the bases."""
        self.count += 1
        size = SCALE * RATE * math.sqrt(1 - 0.999**self.count) / (1 - 0.9**self.count)
        for w, g, p, m, v in zip(self.weights, self.gradient, self.bases, self.first, self.second, strict=True):
            left = g.shape[0] < g.shape[1]
            r = p.T @ g if left else g @ p.T
            m.mul_(0.9).add_(r, alpha=0.1)
            v.mul_(0.999).addcmul_(r, r, value=0.001)
            n = m / (v.sqrt().add_(1e-6))
            w.add_(p @ n if left else n @ p, alpha=-size)


def child(name: str, rank: int, what: str, threads: int) -> None:
    """A PyTorch process: for each line, which is a number of repeats, the seconds of one."""
    import torch

    torch.set_num_threads(threads)
    torch.set_flush_denormal(True)
    ours = TorchGalore(matrices(name, rank, 1) if what == "refresh" else gaussian(name), rank)
    if what == "adamw":
        for w, g in zip(ours.weights, ours.gradient, strict=True):
            w.requires_grad_().grad = g
        run = torch.optim.AdamW(ours.weights, lr=RATE, weight_decay=1e-4, fused=True).step
    else:
        ours.refresh()
        run = ours.step if what == "step" else ours.refresh
    run()
    serve(lambda _: run())


def same_steps() -> float:
    """The largest difference of two weights after five steps, ours against PyTorch's, over the largest change."""
    import jax
    import optax

    gradient = {n: g[:1] for n, g in matrices("9M", 32, 0).items() if n in ("up", "down")}
    theirs = TorchGalore(gradient, 32)
    theirs.refresh()
    params, tx = gradient, our_galore(32)
    state = tx.init(params)

    @jax.jit
    def step(params: Tree, state: Any) -> tuple[Tree, Any]:
        updates, state = tx.update(gradient, state, params)
        return optax.apply_updates(params, updates), state

    for _ in range(5):
        theirs.step()
        params, state = step(params, state)
    ours = np.concatenate([(np.asarray(params[n]) - g).ravel() for n, g in gradient.items()])
    other = np.concatenate([(w - g).numpy().ravel() for w, g in zip(theirs.weights, theirs.gradient, strict=True)])
    return float(np.abs(ours - other).max() / np.abs(other).max())


# our side


def our_galore(rank: int, finder: str = "svd", stored: str = "parameter") -> Any:
    """GaLore-Adam whose basis stays after the first step."""
    import optax

    from jaxdyn.optim.adam import adam_direction
    from jaxdyn.optim.projection import galore
    from jaxdyn.optim.subspace import Subspace

    inner = adam_direction(stored=stored)
    return optax.chain(galore(inner, Subspace(rank=rank, finder=finder), every=NEVER, scale=SCALE), optax.scale(-RATE))


def stepper(tx: Any, gradient: Tree) -> tuple[Callable[[], None], dict[str, float]]:
    """A step that is not a refresh, in place; megabytes of the state, and of all there is during the step."""
    import jax
    import jax.numpy as jnp
    import optax

    from jaxdyn.optim.memory import account, nbytes

    def step(state: Any, params: Tree, gradient: Tree) -> tuple[Any, Tree]:
        updates, state = tx.update(gradient, state, params)
        return state, optax.apply_updates(params, updates)

    held: list[Any] = [tx.init(gradient), jax.tree.map(jnp.copy, gradient)]
    compiled = jax.jit(step, donate_argnums=(0, 1)).lower(*held, gradient).compile()
    bytes_ = {"state (MB)": nbytes(held[0]) / 1e6, "peak (MB)": account(compiled)["peak"] / 1e6}

    def run() -> None:
        held[:] = compiled(*held, gradient)
        jax.block_until_ready(held)

    run()  # the first step finds the bases
    return run, bytes_


def products(gradient: Tree, rank: int) -> Callable[[], None]:
    """The two products of a step alone."""
    import jax

    from jaxdyn.optim.subspace import Subspace, find, lift, lower

    s = Subspace(rank=rank, finder="orthonormal")
    bases = {n: find(s, g, _none(s, g), jax.random.key(0)) for n, g in gradient.items()}
    both = jax.jit(lambda g, b: {n: lift(b[n], lower(b[n], g[n])) for n in g})
    return lambda: jax.block_until_ready(both(gradient, bases)) and None


def _none(s: Any, g: Any) -> Any:
    from jaxdyn.optim.subspace import zeros

    return zeros(s, g.shape, g.dtype)


def refresh(s: Any, gradient: Tree, old: Tree) -> Callable[[], Tree]:
    """All bases anew."""
    import jax

    from jaxdyn.optim.subspace import find

    every = jax.jit(lambda g, old: {n: find(s, g[n], old[n], jax.random.key(0)) for n in g})
    return lambda: jax.block_until_ready(every(gradient, old))


def compared(found: Tree, exact: Tree, gradient: Tree) -> dict[str, float]:
    """Largest distance from the exact subspace, and the smallest share of what that one keeps of the gradient."""
    import jax.numpy as jnp

    from jaxdyn.optim.subspace import lower

    distances, shares = [], []
    for name, g in gradient.items():
        ours, best = ((b.left if b.left is not None else b.right) for b in (found[name], exact[name]))
        cosines = jnp.linalg.svd(jnp.swapaxes(ours, -1, -2) @ best, compute_uv=False)[..., -1]
        distances.append(float(jnp.max(jnp.sqrt(jnp.maximum(1 - cosines**2, 0)))))
        kept = [jnp.sum(jnp.square(lower(b[name], g)), (-2, -1)) for b in (found, exact)]
        shares.append(float(jnp.min(kept[0] / kept[1])))
    return {"distance": max(distances), "share kept": min(shares)}


def steps_table(gradient: Tree, rank: int, repeats: int, torch: Callable[[str], Callable[[], float]]) -> tuple[list[dict], dict]:
    """Times, states and peaks of a step, and the floor that the two products set."""
    import jax
    import optax
    import optax.contrib

    from jaxdyn.optim.adam import adam_direction
    from jaxdyn.optim.memory import MemoryLayout, estimate

    single = {f"{name}{i}": w[i] for name, w in gradient.items() for i in range(w.shape[0])}  # as optax's GaLore needs it
    steps = {
        "adamw (optax)": stepper(optax.adamw(RATE), gradient),
        "Adam, ours": stepper(optax.chain(adam_direction(), optax.scale(-RATE)), gradient),
        "GaLore, ours": stepper(our_galore(rank, "orthonormal"), gradient),
        "GaLore, ours, 8-bit": stepper(our_galore(rank, "orthonormal", "8bit"), gradient),
        "GaLore (optax)": stepper(optax.contrib.galore(RATE, rank=rank, update_proj_gap=NEVER), single),
    }
    for name, layout in {
        "GaLore, ours": MemoryLayout(rank=rank),
        "GaLore, ours, 8-bit": MemoryLayout(rank=rank, moments="8bit"),
    }.items():
        counted = estimate(gradient, layout)
        assert counted.states + counted.counters == round(1e6 * steps[name][1]["state (MB)"]), name
    runs = {name: run for name, (run, _) in steps.items()}
    runs |= {"products alone": products(gradient, rank), "adamw (torch)": torch("adamw"), "GaLore (torch)": torch("step")}
    times = interleaved(runs, 4 * repeats)
    peak = matmul_peak()
    floor = 4 * rank * sum(g.size for g in jax.tree.leaves(gradient)) / peak
    plain = times["adamw (optax)"]["min"]
    rows = [
        {"what": f"step: {name}", "min (ms)": 1e3 * t["min"], "median (ms)": 1e3 * t["median"], "to adamw": t["min"] / plain,
         "to the floor": t["min"] / floor} | (steps[name][1] if name in steps else {"state (MB)": "", "peak (MB)": ""})
        for name, t in times.items()
    ]  # fmt: skip
    return rows, {"peak flop/s": peak, "floor of the two products (ms)": 1e3 * floor, "samples (s)": times}


def refresh_table(
    gradient: Tree, drift: Tree, rank: int, repeats: int, torch: Callable[[str], Callable[[], float]]
) -> tuple[list[dict], dict]:
    """Times of a refresh of all bases, and how near its bases are to the exact ones."""
    from jaxdyn.optim.subspace import Subspace

    s = Subspace(rank=rank)
    before = refresh(s, gradient, {n: _none(s, g) for n, g in gradient.items()})()
    named = {n: functools.partial(Subspace, rank=rank, finder=finder)(power=power) for n, (finder, power) in FINDERS.items()}
    ways = {name: refresh(one, drift, before) for name, one in named.items()}
    exact = ways["exact"]()
    times = interleaved(ways | {"exact (torch)": torch("refresh")}, repeats)
    rows = [
        {"refresh": name, "min (ms)": 1e3 * t["min"], "median (ms)": 1e3 * t["median"],
         "faster than exact": times["exact"]["min"] / t["min"]}
        | (compared(ways[name](), exact, drift) if name in ways else {"distance": 0.0, "share kept": 1.0})
        for name, t in times.items()
    ]  # fmt: skip
    return rows, {"samples (s)": times}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="the 9M model at rank 32, once: does it work?")
    parser.add_argument("--part", choices=("both", "step", "refresh"), default="both")
    parser.add_argument("--child", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        name, rank, what, threads = options.child
        return child(name, int(rank), what, int(threads))
    import jax
    import jax.numpy as jnp

    from jaxdyn.nn import llama

    name, rank, repeats = ("9M", 32, 1) if options.quick else ("60M", 128, 5)
    assert shapes(name) == {n: (llama(name).layers, *s) for n, s in llama(name).weights.items()}
    with ExitStack() as stack:

        def torch(what: str) -> Callable[[], float]:
            process = Children(stack, __file__, [name, rank, what, 2], 1)
            return lambda: process.seconds(1)

        if options.part != "refresh":
            difference = same_steps()
            assert difference < 1e-3, f"not the same steps: {difference}"
            gradient = {n: jnp.asarray(g) for n, g in gaussian(name).items()}
            rows, facts = steps_table(gradient, rank, repeats, torch)
            title = f"GaLore: a step on the matrices of LLaMA {name}, rank {rank}"
            publish("galore_step", title, rows, save=not options.quick, **facts, **{"difference after 5 steps": difference})
        if options.part != "step":
            gradient, other = ({n: jnp.asarray(g) for n, g in matrices(name, rank, seed).items()} for seed in (0, 1))
            drift = jax.tree.map(lambda g, d: g + 0.01 * jnp.linalg.norm(g) / jnp.linalg.norm(d) * d, gradient, other)
            rows, facts = refresh_table(gradient, drift, rank, repeats, torch)
            title = f"GaLore: a refresh of the bases of LLaMA {name}, rank {rank}"
            publish("galore_refresh", title, rows, save=not options.quick, **facts)


if __name__ == "__main__":
    main()
