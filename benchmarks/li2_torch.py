"""Li2's training runs: seconds per epoch at M = 71, K = 2048 and M = 23, K = 256, and 32 seeds at once, here and in plain PyTorch.

The same network, pairs, loss, optimizer (Adam with coupled decay), precision (float32), full batches, no statistics within a run;
one-hot inputs are multiplied on neither side (PyTorch picks rows by ``embedding``) and both flush denormals. Both have the best
of one run after another on two threads and two runs at once, as two processes of one thread (ours: what verifications and sweeps
of the command line do) and, ours alone, on two devices of one process (what a sweep from Python does). PyTorch's Adam is the fused
one. That both sides make the same steps is checked first.

``of peak``: share of this machine's matrix-product rate, by the three products of n x K x M of an epoch; ``products of peak``: the
same for a program of those products alone, in blocks as the trainer has them, two processes at once. ``at peak``: how much faster
than PyTorch a program of those products alone would be at the full rate, thus what no target can exceed.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import numpy as np
from common import Children, alternate, machine, matmul_peak, publish

LR, DECAY = 0.002, 2e-4  # as jaxdyn.theories.li2.training.Training; checked in main
CASES = ((71, 2048, 0.4, 16), (23, 256, 0.8, 400))  # M, K, share, epochs of a sample
SEEDS = 32
PATIENCE = 3.0  # seconds of a PyTorch sample: its threads wait for one another, for long on a machine with other work


def torch_state(order: int, weights: list[Any], pairs: Any) -> tuple[Callable[[], None], list[Any]]:
    """One epoch of PyTorch as a function, and its weights; pairs are those trained on, in the cyclic group."""
    import torch
    from torch.nn.functional import embedding, one_hot

    w, v = layers = [torch.tensor(x).requires_grad_() for x in weights]
    left, right = torch.tensor(pairs[:, 0]), torch.tensor(pairs[:, 1]) + order
    aim = one_hot((left + right) % order, order).float() - 1 / order
    adam = torch.optim.Adam(layers, lr=LR, weight_decay=DECAY, fused=True)

    def epoch() -> None:
        adam.zero_grad()
        o = (embedding(left, w) + embedding(right, w)).square() @ v
        (o - o.mean(1, keepdim=True) - aim).square().sum(1).mean().backward()
        adam.step()

    return epoch, layers


def torch_start(order: int, hidden: int, share: float) -> Callable[[], None]:
    """A run from a start of its own."""
    rng = np.random.default_rng(0)
    weights = [rng.uniform(-1, 1, s).astype(np.float32) / np.float32(b) ** 0.5 for s, b in _shapes(order, hidden)]
    chosen = rng.permutation(order**2)[: round(share * order**2)]
    return torch_state(order, weights, np.stack(np.divmod(chosen, order), -1))[0]


def _shapes(order: int, hidden: int) -> tuple[tuple[tuple[int, int], int], ...]:
    return ((2 * order, hidden), 2 * order), ((hidden, order), hidden)


def our_products(order: int, hidden: int, share: float, epochs: int) -> tuple[Any, Callable[[int], Any]]:
    """The three matrix products of :func:`our_trainer`'s blocks alone; those of a block need those of the one before."""
    import jax

    from jaxdyn.theories.li2 import training

    rows = training.data(training.Training(group=str(order), hidden=hidden, share=share), jax.random.key(0)).samples.shape[1]
    count = epochs * round(share * order**2) / rows  # blocks, of which the trainer computes the last one whole

    @jax.jit
    def run(f: Any, v: Any) -> Any:
        def block(_: Any, carry: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
            v, sums, _ = carry
            r = 1e-3 * (f @ v)
            change, sums = r @ v.T, sums + r.T @ f
            return v.at[0, 0].add(1e-6 * sums[0, 0]), sums, change

        return jax.lax.fori_loop(0, round(count), block, (v, v.T, f))

    def start(seed: int) -> tuple[Any, Any]:
        return tuple(jax.random.normal(jax.random.key(seed), shape) / hidden for shape in ((rows, hidden), (hidden, order)))

    return run, start


def our_child(order: int, hidden: int, share: float, what: str, epochs: int) -> None:
    """A process of ours with one thread, as a worker has: for each line the seconds per epoch of that many epochs."""
    import jax

    os.environ["PJRT_NPROC"] = "1"  # read when JAX first meets the processor
    run, start = OURS[what](order, hidden, share, epochs)
    begun = start(0)

    def seconds() -> float:
        begin = time.perf_counter()
        jax.block_until_ready(run(*begun))
        return (time.perf_counter() - begin) / epochs

    seconds()
    print("ready", flush=True)
    for line in sys.stdin:
        assert int(line) == epochs, "the compiled number of epochs"
        print(seconds(), flush=True)


def child(order: int, hidden: int, share: float, threads: int) -> None:
    """A PyTorch process: for each line, which is a number of epochs, the seconds per epoch of a new run (or of its first part)."""
    import torch

    torch.set_num_threads(threads)
    torch.set_flush_denormal(True)

    def run(epochs: int) -> float:
        begin = time.perf_counter()
        epoch = torch_start(order, hidden, share)
        done, seconds = 0, 0.0
        while done < epochs and seconds < PATIENCE:
            epoch()
            done, seconds = done + 1, time.perf_counter() - begin
        return seconds / done

    run(3)
    print("ready", flush=True)
    for line in sys.stdin:
        print(run(int(line)), flush=True)


def our_trainer(order: int, hidden: int, share: float, epochs: int) -> tuple[Any, Callable[[int], Any]]:
    """``epochs`` epochs as a compiled function of data and state, and those of a seed on their device."""
    import jax
    import optax

    from jaxdyn import train
    from jaxdyn.theories.li2 import model, training

    s = training.Training(group=str(order), hidden=hidden, share=share)
    tx = optax.chain(optax.add_decayed_weights(s.decay), optax.scale_by_adam(), optax.scale_by_learning_rate(s.lr))

    @jax.jit
    def run(data: training.Data, state: train.State) -> train.State:
        def step(_: Any, now: train.State) -> train.State:
            return train.descend(tx, now, training.gradient(now.params, data, s))

        return jax.lax.fori_loop(0, epochs, step, state)

    def start(seed: int) -> tuple[Any, Any]:
        k_data, k_init = jax.random.split(jax.random.key(seed))
        state = train.init(tx, model.init(k_init, order, hidden))
        return jax.device_put((training.data(s, k_data), state), jax.devices()[seed % len(jax.devices())])

    return run, start


OURS = {"ours": our_trainer, "products": our_products}


def same_steps(epochs: int = 10) -> float:
    """The largest difference of weights after some epochs from one start, ours against PyTorch's, over the largest weight."""
    import torch

    order, hidden, share, _ = CASES[-1]
    run, start = our_trainer(order, hidden, share, epochs)
    data, state = start(0)
    ours = run(data, state).params
    pairs = np.asarray(data.samples).reshape(-1, 2)[: int(data.used)].astype(np.int64)
    torch.set_num_threads(1)
    epoch, layers = torch_state(order, [np.array(x) for x in state.params], pairs)
    for _ in range(epochs):
        epoch()
    return max(float(np.abs(a - b.detach().numpy()).max() / np.abs(a).max()) for a, b in zip(ours, layers, strict=True))


def epochs_table(rounds: int, quick: bool) -> tuple[list[dict], dict[str, Any]]:
    """Seconds per epoch, ours and PyTorch's, interleaved."""
    import jax

    rows, facts = [], {}
    for case in CASES[1:] if quick else CASES:
        order, hidden, share, count = case
        run, start = our_trainer(*case)
        states = [start(seed) for seed in range(min(2, len(jax.devices())))]

        def ours(used: list[Any], run: Any = run, count: int = count) -> float:
            begin = time.perf_counter()
            jax.block_until_ready([run(*x) for x in used])
            return (time.perf_counter() - begin) / (count * len(used))

        with ExitStack() as stack:
            wide, narrow = (Children(stack, __file__, [*case[:3], threads], n) for threads, n in ((2, 1), (1, 2)))
            workers, products = (Children(stack, __file__, [*case[:3], what, count], 2) for what in OURS)
            contestants = {
                "ours": lambda ours=ours, x=states: ours(x[:1]),
                "ours, 2 at once": lambda ours=ours, x=states: ours(x),
                "ours, 2 x 1 thread": lambda t=workers, n=count: t.seconds(n),
                "its products alone": lambda t=products, n=count: t.seconds(n),
                "torch, 2 threads": lambda t=wide, n=count: t.seconds(n),
                "torch, 2 x 1 thread": lambda t=narrow, n=count: t.seconds(n),
                "peak": matmul_peak,
            }
            samples = alternate(contestants, rounds)
        peak, pairs = max(samples.pop("peak")), round(share * order**2)
        ms = {name: statistics.median(values) * 1e3 for name, values in samples.items()}
        torch, best = (min(v for n, v in ms.items() if n.startswith(who)) for who in ("torch", "ours"))
        at_peak = 6 * pairs * hidden * order / peak * 1e3
        rows.append(
            {"M": order, "K": hidden, "n": pairs, **{f"{n} (ms/epoch)": v for n, v in ms.items()}}
            | {
                "torch / ours": torch / best,
                "of peak": at_peak / best,
                "products of peak": at_peak / ms["its products alone"],
                "at peak": torch / at_peak,
            }
        )
        facts[f"M={order}"] = {"peak flop/s": peak, "samples (s/epoch)": samples}
    return rows, facts


def trial(s: Any, key: Any) -> Any:
    """One training run; its losses at the start and at the end."""
    import jaxdyn as jd
    from jaxdyn.theories.li2.training import train

    return jd.observables(measured={"loss": jd.named(train(s, key).curves["train_loss"], "record")})


def study(rounds: int, epochs: int) -> dict[str, Any]:
    """Runs per second at M = 23: a sweep of 32 seeds against PyTorch's runs."""
    import jaxdyn as jd
    from jaxdyn.theories.li2.training import Training

    case = CASES[-1]
    grid = jd.grid(Training, group=str(case[0]), hidden=case[1], share=case[2], epochs=epochs, every=epochs)

    def ours() -> float:
        begin = time.perf_counter()
        loss = jd.sweep(trial, grid, seeds=SEEDS).measured_loss.isel(record=-1)
        assert float(loss.max()) < 0.9, f"not trained: {loss.values}"
        return (time.perf_counter() - begin) / SEEDS

    begin = time.perf_counter()
    ours()
    first = time.perf_counter() - begin
    with ExitStack() as stack:
        wide, narrow = (Children(stack, __file__, [*case[:3], threads], n) for threads, n in ((2, 1), (1, 2)))
        contestants = {
            "ours, a sweep": ours,
            "torch, one after another on 2 threads": lambda: epochs * wide.seconds(epochs),
            "torch, 2 x 1 thread": lambda: epochs * narrow.seconds(epochs),
        }
        samples = alternate(contestants, rounds)
    rate = {name: 1 / statistics.median(values) for name, values in samples.items()}
    mine = rate["ours, a sweep"]
    ratios = {f"ours / {n}": mine / v for n, v in rate.items() if n.startswith("torch")}
    return {"seeds": SEEDS, "epochs of a run": epochs, "runs per second": rate, **ratios} | {
        "ours, first sweep with compilation (runs per second)": SEEDS / first,
        "samples (s/run)": samples,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="M = 23 alone, once, runs of 100 epochs: does it work?")
    parser.add_argument("--child", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        order, hidden, share, who, *epochs = options.child
        case = int(order), int(hidden), float(share)
        return our_child(*case, who, int(epochs[0])) if who in OURS else child(*case, int(who))
    import jax

    jax.config.update("jax_num_cpu_devices", os.cpu_count())  # a sweep is sharded over the devices: use all cores
    from jaxdyn.theories.li2.training import Training

    s = Training()
    assert (s.lr, s.decay, s.activation, s.objective, s.optimizer) == (LR, DECAY, "square", "mse", "adam")
    difference = same_steps()
    assert difference < 1e-3, f"not the same steps: {difference}"
    rows, facts = epochs_table(1 if options.quick else 7, options.quick)
    facts = {"difference of weights after 10 epochs": difference, **facts}
    facts["32 seeds at M=23"] = study(1 if options.quick else 5, 100 if options.quick else 400)
    publish(
        "li2_torch",
        "Li2, float32: milliseconds per epoch and run (targets: torch / ours at least 3 at M=71, and products at 0.7 of peak "
        "there; 10 times the runs per second at M=23)",
        rows, save=not options.quick, **facts,
    )  # fmt: skip
    print(json.dumps(facts["32 seeds at M=23"] | {"machine": machine()}, indent=1), file=sys.stderr)


if __name__ == "__main__":
    main()
