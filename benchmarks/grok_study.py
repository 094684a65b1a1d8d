"""A study of grokking, cold: 64 networks of cyclic groups of order 23 to 41, each trained until it knows every pair.

They have 512 hidden nodes and see a tenth more pairs than the critical share of their group. Ours is one sweep on a worker
process a core, from nothing compiled to the results on disk; a network stops at the first record (every 50 epochs) at which all
held-out pairs are right. PyTorch makes the same steps for one network after another (see ``li2_torch.py``): what it takes per epoch
at each order, the better of two threads and of two processes of one thread, times the epochs that our networks needed. Target: at
most three minutes on two cores.

``of peak``: share of this machine's matrix-product rate, by the three products of n x K x M of every epoch, compilation and all.
"""

from __future__ import annotations

import argparse
import concurrent.futures as cf
import multiprocessing
import os
import statistics
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import numpy as np
from common import Children, matmul_peak, publish

ORDERS, SEEDS, HIDDEN, EVERY, LONGEST = (23, 31, 37, 41), 16, 512, 50, 6000
SHARE = 1.1  # in units of the critical share of the group
TORCH = str(Path(__file__).with_name("li2_torch.py"))


def epochs_needed(seeds: int) -> tuple[float, np.ndarray]:
    """Seconds of the sweep, and the epochs of each network, [order, seed]."""
    import jaxdyn as jd
    from jaxdyn.theories.li2.grokking.phase_decay import trial
    from jaxdyn.theories.li2.training import Training

    sizes = {"group": [str(m) for m in ORDERS], "hidden": HIDDEN, "share": SHARE, "critical": True}
    grid = jd.grid(Training, **sizes, epochs=LONGEST, every=EVERY)
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["JAX_COMPILATION_CACHE_DIR"] = str(Path(folder) / "programs")  # of the workers: none has anything compiled
        os.environ["PJRT_NPROC"] = "1"
        with cf.ProcessPoolExecutor(os.cpu_count(), multiprocessing.get_context("spawn")) as pool:
            ds = jd.sweep(trial, grid, seeds=seeds, out=Path(folder) / "runs", cluster=pool)
    seconds = time.perf_counter() - begin
    right = ds.test_accuracy >= 1
    assert bool(right.any("epoch").all()), "some network has not learned all pairs"
    return seconds, ds.epoch.values[right.argmax("epoch").transpose("group", "seed").values]


def share(order: int) -> float:
    """Of all pairs."""
    from jaxdyn.data.groups import parse
    from jaxdyn.theories.li2.dynamics.retention import critical_share

    return SHARE * critical_share(parse(str(order)))


def torch_seconds(order: int, epochs: int, rounds: int) -> float:
    """Seconds per epoch and run of PyTorch, whichever way is faster; medians over runs."""
    with ExitStack() as stack:
        case = (order, HIDDEN, share(order))
        ways = [Children(stack, TORCH, [*case, threads], count) for threads, count in ((2, 1), (1, 2))]
        return min(statistics.median(way.seconds(epochs) for _ in range(rounds)) for way in ways)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="two networks of each order: does it work?")
    options = parser.parse_args()
    seeds, rounds = (2, 1) if options.quick else (SEEDS, 5)
    peak = matmul_peak()
    rows, samples = [], []
    for _ in range(1 if options.quick else 3):
        seconds, epochs = epochs_needed(seeds)
        samples.append(seconds)
    seconds = statistics.median(samples)
    torch = {order: torch_seconds(order, 200, rounds) for order in ORDERS}
    work = 0.0
    for order, needed in zip(ORDERS, epochs, strict=True):
        work += 6 * round(share(order) * order**2) * HIDDEN * order * float(needed.sum())
        rows.append(
            {"M": order, "networks": needed.size, "epochs, median": float(np.median(needed)), "epochs, most": int(needed.max())}
            | {"torch (ms/epoch)": torch[order] * 1e3, "torch (s)": torch[order] * float(needed.sum())}
        )
    total = sum(row["torch (s)"] for row in rows)
    facts = {"ours, cold (s)": seconds, "torch (s)": total, "torch / ours": total / seconds, "of peak": work / peak / seconds}
    question = f"{seeds * len(ORDERS)} networks to generalisation in {seconds:.0f} s, PyTorch {total:.0f} s"
    publish("grok_study", question, rows, save=not options.quick, **facts, samples=samples)


if __name__ == "__main__":
    main()
