"""Figure 6 of Scan & Snap, 64 cells x 10 seeds of 100 steps: how long does the study take here, and how long in plain PyTorch?

The same data law, network, start, optimizer, precision (float32), steps, records and statistic on both sides; both flush
denormals. Ours shards the runs over all cores. PyTorch trains one run after another with autograd, with the better number of
threads: as the formulas are written (tokens one-hot, sequences drawn one by one, as in the authors' study), and tidied up
(token numbers, gather and scatter, one draw a batch); and the seeds of a cell as a batch axis, tidied up. Sampled runs, one of
each vocabulary, are timed and multiplied. New processes are timed as well: there imports and compilation count. Random numbers
differ between the sides: mean entropies are compared cell by cell, and gradients on the same batch.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from common import interleaved, matmul_peak, publish

BATCH, LENGTH, STEPS, EVERY, MOMENTUM = 128, 127, 100, 2, 0.9  # as jaxdyn.theories.snap.synthetic.syn.Syn; checked in main
QUERIES, NEXT = (1, 3, 5, 10), 2
CELLS = tuple(itertools.product((0.5, 1.0, 2.0, 3.0), (1.0, 2.0, 5.0, 10.0)))  # rate of Z, rate of Y over it
COMMON, DISTINCT = 10, 10


class Data:
    """The classes as tensors: law and tokens of every class, its query, its next token."""

    def __init__(self, queries: int) -> None:
        import torch

        k = queries * NEXT
        self.classes, self.queries, self.contextual = k, queries, COMMON + DISTINCT * k
        self.size = self.contextual + queries + k
        weights = torch.cat([torch.ones(COMMON), torch.linspace(0.1, 1, DISTINCT)])
        self.law = weights / weights.sum()
        own = COMMON + torch.arange(DISTINCT * k).reshape(k, DISTINCT)
        self.tokens = torch.cat([torch.arange(COMMON).expand(k, -1), own], 1)
        self.query = torch.arange(queries).repeat_interleave(NEXT)
        self.label = self.contextual + queries + torch.arange(k)

    def one_by_one(self) -> tuple[Any, Any]:
        """Classes and tokens of a batch, each sequence drawn by itself."""
        import torch

        chosen = torch.randint(self.classes, (BATCH,))
        rows = [self.tokens[n][torch.multinomial(self.law, LENGTH, replacement=True)] for n in chosen]
        return chosen, torch.stack(rows)

    def at_once(self, *runs: int) -> tuple[Any, Any]:
        """Classes and tokens of a batch (of many runs) in one draw."""
        import torch

        chosen = torch.randint(self.classes, (*runs, BATCH))
        slots = torch.multinomial(self.law, chosen.numel() * LENGTH, replacement=True).reshape(*chosen.shape, LENGTH)
        return chosen, self.tokens[chosen].gather(-1, slots)


def written_out(data: Data, y, z, chosen, tokens):
    """Logits as the formulas are written: one-hot keys times Z times a one-hot query, one-hot values weighted by attention."""
    import torch
    from torch.nn.functional import one_hot

    keys = one_hot(tokens, data.size).float()
    query = one_hot(data.contextual + data.query[chosen], data.size).float()
    b = torch.softmax(torch.bmm(keys @ z.T, query[:, :, None])[:, :, 0], 1)
    c = torch.bmm(b[:, None, :], keys)[:, 0]
    return c / c.norm(dim=1, keepdim=True) @ y


def tidied(data: Data, y, z, chosen, tokens):
    """The same logits by gather and scatter, for one run or many with a leading axis; Z has rows for the queries alone."""
    import torch

    rows = z[data.query[chosen]] if z.ndim == 2 else z[torch.arange(len(z))[:, None], data.query[chosen]]
    b = torch.softmax(rows.gather(-1, tokens), -1)
    c = torch.zeros(*chosen.shape, data.size).scatter_add(-1, tokens, b)
    return c / c.norm(dim=-1, keepdim=True) @ y


def entropy(data: Data, z) -> Any:
    """Entropy of attention at infinite length among each class's own tokens, mean over classes; ``z`` (..., queries, M)."""
    own = data.tokens[:, COMMON:]
    c = (z[..., data.query[:, None], own] + data.law[COMMON:].log()).softmax(-1)
    return -(c * c.log()).sum(-1).mean(-1)


def torch_runs(queries: int, lr: float, ratio: float, seed: int, runs: int = 0, one_hot: bool = False) -> np.ndarray:
    """Train one run (``runs=0``) or many as a batch axis; the entropy at every record."""
    import torch
    from torch.nn.functional import cross_entropy

    torch.manual_seed(seed)
    data = Data(queries)
    lead, size = (runs,) if runs else (), data.size
    y, z = ((2 * torch.rand(*lead, n, size) - 1) / size**0.5 for n in (size, size if one_hot else queries))
    y.requires_grad_(), z.requires_grad_()
    optimizer = torch.optim.SGD([{"params": [y], "lr": lr * ratio}, {"params": [z], "lr": lr}], momentum=MOMENTUM)
    forward, draw = (written_out, data.one_by_one) if one_hot else (tidied, data.at_once)
    seen = []

    def record() -> None:
        with torch.no_grad():
            seen.append(entropy(data, z[data.contextual : data.contextual + queries] if one_hot else z))

    record()
    for step in range(STEPS):
        chosen, tokens = draw(*lead)
        optimizer.zero_grad()
        logits = forward(data, y, z, chosen, tokens)
        loss = cross_entropy(logits.flatten(0, -2), data.label[chosen].flatten(), reduction="sum") / BATCH
        loss.backward()
        optimizer.step()
        if (step + 1) % EVERY == 0:
            record()
    return torch.stack(seen).numpy()


def use_threads(count: int) -> None:
    import torch

    torch.set_num_threads(count)
    torch.set_flush_denormal(True)


def our_study(seeds: int, executor: str = "vmap", queries: tuple[int, ...] = QUERIES) -> np.ndarray:
    """Entropies at the end by the engine, with the claim's own trial: (queries, cell, seed)."""
    import jaxdyn as jd
    from jaxdyn.theories.snap.synthetic.syn import MEDIUM, medium_trial

    grid = MEDIUM.replace(num_last=list(queries))
    ds = jd.sweep(medium_trial, grid, seeds=seeds, executor=executor)
    assert int((ds.status != 0).sum()) == 0
    return ds.measured_entropy.transpose("num_last", "lr", "ratio", "seed").values.reshape(len(queries), len(CELLS), seeds)


def same_gradient() -> dict[str, float]:
    """Largest relative difference of the gradients of all three networks on one batch, ours as the reference."""
    import jax
    import torch
    from torch.nn.functional import cross_entropy

    from jaxdyn.data.classes import Vocabulary
    from jaxdyn.theories.snap.synthetic import syn

    data, v = Data(3), Vocabulary(3, NEXT)
    chosen, tokens = data.at_once()
    counts = (tokens[:, :, None] == data.tokens[chosen][:, None, :]).sum(1).float().numpy()
    params = syn.start(jax.random.key(0), v, 1.0, "float32")
    full = syn.expand(params, v)
    ours = jax.grad(syn.make_loss(v))(params, syn.Batch(chosen.numpy().astype(np.int32), counts))
    ours = syn.expand(ours, v)
    found = {}
    for forward in (written_out, tidied):
        z = np.zeros((v.size, v.size), np.float32)
        z[v.contextual : v.contextual + 3] = full.z
        z = torch.tensor(z if forward is written_out else np.array(full.z), requires_grad=True)
        y = torch.tensor(np.array(full.y), requires_grad=True)
        cross_entropy(forward(data, y, z, chosen, tokens), data.label[chosen]).backward()
        theirs = (y.grad, z.grad[v.contextual : v.contextual + 3] if forward is written_out else z.grad)
        gaps = [float(np.abs(a - b.numpy()).max() / np.abs(a).max()) for a, b in zip(ours, theirs, strict=True)]
        found[forward.__name__] = max(gaps)
    assert max(found.values()) < 1e-4, f"the contestants' gradients differ: {found}"
    return found


def agreement(ours: np.ndarray, theirs: np.ndarray) -> dict[str, float]:
    """Differences of the cells' means in standard errors; the two sides have their own random numbers."""
    import scipy.stats

    n = ours.shape[-1]
    error = np.sqrt(ours.var(-1, ddof=1) / n + theirs.var(-1, ddof=1) / n)
    z = np.abs(ours.mean(-1) - theirs.mean(-1)) / error
    bound = float(scipy.stats.t.isf(0.005 / z.size, n - 1))  # 99% for all cells at once; the fewer degrees of freedom of the two
    found = {"largest |difference| / s.e.": float(z.max()), "bound": bound, "rms": float(np.sqrt((z**2).mean())), "cells": z.size}
    assert z.max() < bound, f"the contestants disagree: {found}"
    return found


def better_threads(run: Callable[[], Any], repeats: int) -> tuple[int, dict[str, Any]]:
    """PyTorch's faster number of threads, 1 or 2, and the seconds that decided it."""
    short = interleaved({f"{n} thread(s)": lambda n=n: (use_threads(n), run()) for n in (1, 2)}, repeats)
    return 1 + (short["2 thread(s)"]["median"] < short["1 thread(s)"]["median"]), short


def cold(seeds: int, quick: bool) -> list[dict[str, float]]:
    """Fresh processes: interpreter, imports, compilation, study; first with an empty compilation cache, then with a filled one."""
    found = []
    with tempfile.TemporaryDirectory() as cache:
        env = {k: v for k, v in os.environ.items() if k != "JAX_COMPILATION_CACHE_DIR"} | {"JAXDYN_CACHE": cache}
        command = [sys.executable, __file__, "--child", "--seeds", str(seeds), *(["--quick"] if quick else [])]
        for _ in range(2):
            start = time.perf_counter()
            done = subprocess.run(command, env=env, check=True, capture_output=True, encoding="utf-8")
            found.append({"seconds": time.perf_counter() - start, **json.loads(done.stdout)})
    return found


def child(seeds: int, queries: tuple[int, ...]) -> None:
    start = time.perf_counter()
    import jaxdyn.theories.snap.synthetic.syn  # noqa: F401

    imported = time.perf_counter() - start
    our_study(seeds, queries=queries)
    print(json.dumps({"import": imported, "sweep": time.perf_counter() - start - imported}))


def torch_import() -> float:
    """Seconds of a fresh process that does nothing but import torch."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import torch"], check=True)
    return time.perf_counter() - start


def product_flops(seeds: int, queries: tuple[int, ...]) -> float:
    """Operations of the two large matrix products of every step of every run, (n x T)(T x M) and back."""
    from jaxdyn.data.classes import Vocabulary

    sizes = [Vocabulary(q, NEXT) for q in queries]
    return sum(2 * 2 * BATCH * v.contextual * v.size for v in sizes) * STEPS * len(CELLS) * seeds


def measure(seeds: int, queries: tuple[int, ...], repeats: int) -> tuple[dict[str, dict[str, float]], dict[str, Any]]:
    """Seconds of every contestant for the whole study, and facts on the way."""
    facts: dict[str, Any] = {"gradient": same_gradient()}
    cell, seed = itertools.cycle(CELLS), itertools.count()

    def alone(one_hot: bool) -> None:
        lr, ratio = next(cell)
        for q in queries:
            torch_runs(q, lr, ratio, next(seed), one_hot=one_hot)

    def batched() -> None:
        lr, ratio = next(cell)
        for q in queries:
            torch_runs(q, lr, ratio, next(seed), runs=seeds)

    threads = {}
    for name, run in (("one-hot", lambda: alone(True)), ("tidy", lambda: alone(False)), ("batch", batched)):
        threads[name], facts[f"threads of {name}"] = better_threads(run, max(1, repeats // 2))
    ours, compiled = {}, {}
    for executor in ("map", "vmap"):
        start = time.perf_counter()
        ours[executor] = our_study(seeds, executor, queries)
        compiled[executor] = time.perf_counter() - start
    facts["compile_and_first_seconds"] = compiled
    theirs = [[torch_runs(q, lr, ratio, 10_000 + i, runs=seeds)[-1] for i, (lr, ratio) in enumerate(CELLS)] for q in queries]
    facts["agreement of means"] = agreement(ours["vmap"], np.array(theirs))
    facts["map and vmap, largest difference of means"] = float(np.abs(ours["map"].mean(-1) - ours["vmap"].mean(-1)).max())
    contestants = {
        "jd.sweep, map": (1, lambda: our_study(seeds, "map", queries)),
        "jd.sweep, vmap": (1, lambda: our_study(seeds, "vmap", queries)),
        f"torch, run by run, as written, {threads['one-hot']} thread(s)": (
            len(CELLS) * seeds, lambda: (use_threads(threads["one-hot"]), alone(True)),
        ),
        f"torch, run by run, tidied up, {threads['tidy']} thread(s)": (
            len(CELLS) * seeds, lambda: (use_threads(threads["tidy"]), alone(False)),
        ),
        f"torch, seeds as a batch axis, tidied up, {threads['batch']} thread(s)": (
            len(CELLS), lambda: (use_threads(threads["batch"]), batched()),
        ),
    }  # fmt: skip
    times = interleaved({name: run for name, (_, run) in contestants.items()}, repeats)
    for name, (factor, _) in contestants.items():
        times[name] |= {"min": factor * times[name]["min"], "median": factor * times[name]["median"], "factor": factor}
    peak, flops = matmul_peak(), product_flops(seeds, queries)
    facts |= {"peak flop/s": peak, "flops of the two large products": flops}
    facts["share of peak"] = {n: flops / times[n]["min"] / peak for n in ("jd.sweep, map", "jd.sweep, vmap")}
    return times, facts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one and three queries, 3 seeds, once: does it work?")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    seeds, queries = (3, QUERIES[:2]) if options.quick else (options.seeds, QUERIES)
    import jax

    jax.config.update("jax_num_cpu_devices", os.cpu_count())  # a sweep is sharded over the devices: use all cores
    if options.child:
        return child(seeds, queries)
    from jaxdyn.theories.snap import published
    from jaxdyn.theories.snap.synthetic.syn import Syn

    s = Syn()
    assert (s.batch, s.length, s.steps, s.every, s.momentum) == (BATCH, LENGTH, STEPS, EVERY, MOMENTUM)
    assert CELLS == tuple(itertools.product(published.LRS, published.RATIOS)) and tuple(published.FIG6) == QUERIES
    use_threads(1)
    times, facts = measure(seeds, queries, 1 if options.quick else 5)
    base = min(times["jd.sweep, map"]["median"], times["jd.sweep, vmap"]["median"])
    total = len(CELLS) * len(queries) * seeds
    rows = [
        {"contestant": n, "runs timed": "all" if t["factor"] == 1 else f"{total // t['factor']} of {total}", "min s": t["min"],
         "median s": t["median"], "times ours": t["median"] / base}
        for n, t in times.items()
    ]  # fmt: skip
    first, second = cold(seeds, options.quick)
    imports = min(torch_import() for _ in range(3))
    late = [
        ("jd.sweep, new process, nothing compiled", "all", first["seconds"]),
        ("jd.sweep, new process, compiled before", "all", second["seconds"]),
        *((f"{n}, import included", "", t["median"] + imports) for n, t in times.items() if "run by run" in n),
    ]
    for name, timed, seconds in late:
        ratio = seconds / first["seconds"]
        rows.append({"contestant": name, "runs timed": timed, "min s": "", "median s": seconds, "times ours": ratio})
    publish(
        "fig6_torch",
        f"Figure 6 of Scan & Snap, {total} runs x {STEPS} steps, float32 (target: torch run by run 20 times ours)",
        rows,
        save=not options.quick, times=times, cold=first, cold_cached=second, torch_import_seconds=imports, **facts,
    )  # fmt: skip
    print(json.dumps(facts, indent=1), file=sys.stderr)


if __name__ == "__main__":
    main()
