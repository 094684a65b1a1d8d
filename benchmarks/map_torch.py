"""A map of 4096 small networks, JoMA's softmax law over ratio x learning rate: how long here, and how long in a loop in PyTorch?

Ours is all of ``jd.map`` in a fresh process: imports, compilation, training of the first coarse points and those at the border, the
judge with its rivals in every cell, and the fit of the border. PyTorch only trains: networks of the same sizes, steps, precision
(float64) and records one after another, with autograd, in one process or two at once. Single runs of it are timed and multiplied by
the number of networks; what they compute is compared with ours in ``fig2_torch.py``.
"""

from __future__ import annotations

import argparse
import concurrent.futures as cf
import json
import multiprocessing
import os
import subprocess
import sys
import time

from common import interleaved, publish
from fig2_torch import one, starts, torch_study, use_threads

CLAIM, EVERY = "joma.softmax_invariant", 12  # steps between two of 41 records, as in the claim
OVER = {"ratio": (0.01, 100.0, "log"), "lr": (0.005, 10.0, "log")}


def child(cells: int) -> None:
    """Draw the map and print what it took."""
    import jax

    jax.config.update("jax_num_cpu_devices", os.cpu_count())
    import jaxdyn as jd

    start = time.perf_counter()
    found = jd.map(CLAIM, over=OVER, cells=cells)
    print(json.dumps({"seconds": time.perf_counter() - start, "runs": found.runs, "cells": len(found.cells)}))


def ours(cells: int) -> dict[str, float]:
    """The map in a fresh process without compiled programs."""
    start = time.perf_counter()
    env = {k: v for k, v in os.environ.items() if k != "JAX_COMPILATION_CACHE_DIR"} | {"JAX_ENABLE_COMPILATION_CACHE": "false"}
    words = [sys.executable, __file__, "--child", "--cells", str(cells)]
    done = subprocess.run(words, env=env, check=True, capture_output=True, encoding="utf-8")
    return json.loads(done.stdout) | {"whole": time.perf_counter() - start}


def main() -> None:
    """Both sides, and the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="25 cells, one run of PyTorch: does it work?")
    parser.add_argument("--cells", type=int, default=128)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    cells = 25 if options.quick else options.cells
    if options.child:
        return child(cells)
    drawn = [ours(cells) for _ in range(1 if options.quick else 3)]
    best = min(drawn, key=lambda d: d["whole"])
    first = starts(2)
    with cf.ProcessPoolExecutor(2, multiprocessing.get_context("spawn"), use_threads, (1,)) as pool:
        use_threads(1)
        times = interleaved(
            {
                "torch, one after another": lambda: torch_study(one(first, 0), EVERY, ledger=False),
                "torch, two processes": lambda: list(
                    pool.map(torch_study, [one(first, i) for i in (0, 1)], [EVERY] * 2, [False] * 2)
                ),
            },
            1 if options.quick else 3,
        )
    rows = [
        {"contestant": "jd.map, new process, nothing compiled", "networks": best["runs"], "s": best["whole"], "times ours": 1.0}
    ]
    for name, count in (("torch, one after another", 1), ("torch, two processes", 2)):
        seconds = times[name]["median"] * best["runs"] / count
        rows.append(
            {"contestant": f"{name} (a run timed)", "networks": best["runs"], "s": seconds, "times ours": seconds / best["whole"]}
        )
    title = f"A map of {best['runs']} networks of 480 steps in {best['cells']} cells (target: PyTorch 20 times ours)"
    publish("map_torch", title, rows, save=not options.quick, drawn=drawn, times=times)


if __name__ == "__main__":
    main()
