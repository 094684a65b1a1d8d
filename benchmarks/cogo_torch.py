"""CoGO's training runs: seconds per epoch at q = 512, and a study of 5 seeds x 5 decays, here and in plain PyTorch.

The same network, split, start, loss, optimizer (Adam with coupled decay), precision (float32) on both sides, no statistics within
an epoch; one-hot inputs are multiplied on neither side (PyTorch picks rows by ``embedding``) and both flush denormals. PyTorch
has the better of one run with 2 threads after another and two runs with 1 thread at once. Its Adam is the fused one. A run here
leaves dead nodes out, so the study is timed whole (9900 epochs); PyTorch's epochs all cost the same: a sample is multiplied.
Epochs are timed apart for the first ones, when all 512 nodes live. Denormals: the first and the last epochs of a run, when decay
has driven nine nodes in ten to nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from typing import Any

import numpy as np
from common import interleaved, machine, matmul_peak, publish

HIDDEN, LR, DECAY = 512, 0.01, 5e-5  # as jaxdyn.theories.cogo.training.Training; checked in main
DECAYS = (1e-5, 5e-5, 1e-4, 2e-4, 5e-4)
EPOCHS = {23: 400, 71: 60, 127: 15}


def torch_state(d: int, seed: int = 0) -> tuple[Any, Any]:
    """One epoch of PyTorch as a function, and its weights."""
    import torch
    from torch.nn.functional import embedding

    torch.manual_seed(seed)
    scale = (d**-0.5, d**-0.5, HIDDEN**-0.5)
    layers = [((2 * torch.rand(d, HIDDEN) - 1) * s).requires_grad_() for s in scale]
    order = torch.randperm(d * d)[-(-d * d // 10) :]
    g1, g2 = order // d, order % d
    y = ((g1 + g2) % d)[:, None]
    adam = torch.optim.Adam(layers, lr=LR, weight_decay=DECAY, fused=True)

    def epoch() -> None:
        adam.zero_grad()
        o = (embedding(g1, layers[0]) + embedding(g2, layers[1])).square() @ layers[2].T
        o = o - o.mean(1, keepdim=True)
        (o.square().sum(1) - 2 * o.gather(1, y)[:, 0]).mean().backward()
        adam.step()

    return epoch, layers


def torch_seconds(d: int, threads: int, epochs: int) -> float:
    """Seconds per epoch of one run in this process."""
    import torch

    torch.set_num_threads(threads)
    torch.set_flush_denormal(True)
    epoch, _ = torch_state(d)
    for _ in range(3):
        epoch()
    start = time.perf_counter()
    for _ in range(epochs):
        epoch()
    return (time.perf_counter() - start) / epochs


def torch_at_once(d: int, epochs: int) -> float:
    """Seconds per epoch and run of two processes with one thread each."""
    command = [sys.executable, __file__, "--child", str(d), str(epochs)]
    both = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8") for _ in range(2)]
    for child in both:
        child.stdout.readline()  # imported and warmed up
    for child in both:
        child.stdin.write("go\n")
        child.stdin.flush()
    seconds = [float(child.stdout.readline()) for child in both]
    for child in both:
        child.communicate()
    return sum(seconds) / len(seconds) / len(both)


def child(d: int, epochs: int) -> None:
    torch_seconds(d, 1, 3)
    print("ready", flush=True)
    sys.stdin.readline()
    print(torch_seconds(d, 1, epochs), flush=True)


def our_trainer(d: int, epochs: int) -> Any:
    """``epochs`` epochs on all nodes as a compiled function of a state, and the first state."""
    import jax
    import optax

    from jaxdyn import train
    from jaxdyn.data.abelian import parse
    from jaxdyn.theories.cogo import model, training

    s = training.Training(group=str(d), epochs=epochs, every=epochs)
    group = parse(s.group)
    _, out = training.split(jax.random.key(0), group, s.held_out)
    tx = optax.chain(optax.add_decayed_weights(s.decay), optax.scale_by_adam(), optax.scale(-s.lr))
    step = train.make_step(training.objective(s, group, out), tx)

    @jax.jit
    def run(state: train.State) -> train.State:
        return jax.lax.fori_loop(0, epochs, lambda _, x: step(x), state)

    return run, train.init(tx, model.init(jax.random.key(1), group, HIDDEN))


def flops(d: int) -> float:
    """Matrix products of one epoch: three of pairs x q x d, or six of q x q x d and three of held-out pairs x q x d."""
    from jaxdyn.theories.cogo.training import SMALL

    if d > SMALL:
        return 12 * HIDDEN**2 * d + 6 * -(-d * d // 10) * HIDDEN * d
    return 6 * d * d * HIDDEN * d


def epochs_table(quick: bool) -> tuple[list[dict], dict[str, Any]]:
    """Seconds per epoch for every d, ours and PyTorch's, interleaved."""
    import jax

    rows, facts = [], {}
    peak = matmul_peak()
    for d, count in EPOCHS.items():
        if quick and d > 23:
            break
        run, start = our_trainer(d, count)
        jax.block_until_ready(run(start))
        contestants = {
            "ours": lambda run=run, start=start: jax.block_until_ready(run(start)),
            "torch, 2 threads": lambda d=d, n=count: torch_seconds(d, 2, n),
        }
        rounds = 1 if quick else 5
        samples: dict[str, list[float]] = {name: [] for name in (*contestants, "torch, 2 x 1 thread")}
        for _ in range(rounds):
            begin = time.perf_counter()
            contestants["ours"]()
            samples["ours"].append((time.perf_counter() - begin) / count)
            samples["torch, 2 threads"].append(contestants["torch, 2 threads"]())
            samples["torch, 2 x 1 thread"].append(torch_at_once(d, count))
        ms = {name: float(np.median(values)) * 1e3 for name, values in samples.items()}
        best = min(ms["torch, 2 threads"], ms["torch, 2 x 1 thread"])
        share = flops(d) / (ms["ours"] / 1e3) / peak
        rows.append({"d": d, **{f"{n} (ms/epoch)": v for n, v in ms.items()}, "torch / ours": best / ms["ours"], "of peak": share})
        facts[f"samples at d={d}"] = samples
    return rows, facts | {"peak flop/s": peak}


def trial(s: Any, key: Any) -> Any:
    """One training run; its losses."""
    import jaxdyn as jd
    from jaxdyn.theories.cogo.training import train

    return jd.observables(measured={"loss": jd.named(train(s, key).curves["train_loss"], "record")})


def study(quick: bool) -> tuple[dict[str, Any], float]:
    """All 25 runs of 9900 epochs as one sweep: seconds with compilation, and again warm."""
    import jaxdyn as jd
    from jaxdyn.theories.cogo.training import Training

    epochs = 500 if quick else 9900
    grid = jd.grid(Training, epochs=epochs, decay=list(DECAYS))
    seconds = []
    for _ in range(2):
        start = time.perf_counter()
        ds = jd.sweep(trial, grid, seeds=5)
        seconds.append(time.perf_counter() - start)
    last = ds.measured_loss.isel(record=-1).max("seed").values
    assert (last < 1e-2).all(), f"not trained: {last}"
    return {"runs": 25, "epochs": epochs, "seconds, compilation included": seconds[0], "seconds, compiled": seconds[1]}, epochs * 25


def denormals(quick: bool) -> dict[str, float]:
    """Seconds of 400 epochs at d = 23 at the start of a run and at its end, where 89% of the nodes have decayed to nothing.

    Ours keeps all nodes here (in a sweep it would leave the dead ones out); PyTorch has one thread, denormals flushed and not.
    """
    import jax

    run, start = our_trainer(23, 400)
    end = start
    for _ in range(4 if quick else 24):
        end = run(end)
    small = np.abs(np.asarray(end.params))
    facts = {"share of weights below 1e-20 at the end": float((small < 1e-20).mean())}
    both = {f"ours, {name}": lambda x=x: jax.block_until_ready(run(x)) for name, x in (("start", start), ("end", end))}
    facts |= {name: t["median"] for name, t in interleaved(both, 1 if quick else 5).items()}
    for flush in (True, False):
        for name, seconds in zip(("start", "end"), torch_start_and_end(flush, 400, 4 if quick else 24), strict=True):
            facts[f"torch, {name}, {'flushed' if flush else 'not flushed'}"] = seconds
    return facts


def torch_start_and_end(flush: bool, epochs: int, blocks: int) -> tuple[float, float]:
    """Seconds of the first and of the last block of that many epochs of one run."""
    import torch

    torch.set_num_threads(1)
    torch.set_flush_denormal(flush)
    epoch, _ = torch_state(23)
    seconds = []
    for _ in range(blocks + 1):
        start = time.perf_counter()
        for _ in range(epochs):
            epoch()
        seconds.append(time.perf_counter() - start)
    return seconds[0], seconds[-1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="d = 23 alone, once, 500 epochs: does it work?")
    parser.add_argument("--child", nargs=2, type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        return child(*options.child)
    import jax

    jax.config.update("jax_num_cpu_devices", os.cpu_count())  # a sweep is sharded over the devices: use all cores
    from jaxdyn.theories.cogo.training import Training

    s = Training()
    assert (s.hidden, s.lr, s.decay) == (HIDDEN, LR, DECAY)
    rows, facts = epochs_table(options.quick)
    whole, total = study(options.quick)
    best = min(rows[0][f"torch, {n} (ms/epoch)"] for n in ("2 threads", "2 x 1 thread")) / 1e3
    whole |= {"torch, extrapolated seconds": best * total}
    whole |= {f"torch / ours, {n}": best * total / whole[f"seconds, {n}"] for n in ("compilation included", "compiled")}
    facts |= {"study": whole, "denormals: seconds of 400 epochs at d=23": denormals(options.quick)}
    publish(
        "cogo_torch",
        "CoGO, q = 512, float32: milliseconds per epoch (targets: study at d=23 3 times, never slower at d=127)",
        rows, save=not options.quick, **facts,
    )  # fmt: skip
    print(json.dumps({k: v for k, v in facts.items() if "samples" not in k} | {"machine": machine()}, indent=1), file=sys.stderr)


if __name__ == "__main__":
    main()
