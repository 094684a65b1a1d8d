"""The word language model of JoMA's text experiments: tokens per second in training, here and in plain PyTorch.

The same network (1 or 5 layers, 200 wide, 28 782 words), batch (20 texts, windows of 35), loss, dropout, clipping and Adam
(PyTorch's fused one), float32, random words, no statistics within a run, denormals flushed on both sides. Both have the better of
one run on two threads and two runs at once (PyTorch: two processes of one thread; ours: two devices of one process). That both
sides make the same steps from the same weights without dropout is checked first.

``of peak``: share of this machine's matrix-product rate, by the products of the read-out and of the blocks, forwards and back.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import numpy as np
from common import Children, alternate, matmul_peak, publish, serve

WORDS, WIDTH, TEXTS, LENGTH, LR, CLIP, DROPOUT = 28_782, 200, 20, 35, 1e-4, 0.5, 0.2
DEPTHS = (1, 5)


def words(windows: int, vocabulary: int = WORDS) -> np.ndarray:
    """Columns of random words."""
    return np.random.default_rng(0).integers(0, vocabulary, (TEXTS, windows * LENGTH + 1)).astype(np.int32)


def torch_model(layers: int, dropout: float, weights: Any = None) -> Any:
    """The published encoder in PyTorch's own layers; with weights it starts as our network."""
    import torch
    from torch import nn

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Embedding(WORDS, WIDTH)
            layer = nn.TransformerEncoderLayer(WIDTH, 1, WIDTH, dropout, batch_first=True)
            self.blocks = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
            self.head = nn.Linear(WIDTH, WORDS)
            self.drop = nn.Dropout(dropout)
            rate = 10_000.0 ** (-torch.arange(0, WIDTH, 2) / WIDTH)
            angle = torch.arange(LENGTH)[:, None] * rate
            self.register_buffer("place", torch.stack([angle.sin(), angle.cos()], -1).reshape(LENGTH, WIDTH))
            self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(LENGTH))

        def forward(self, tokens: Any) -> Any:
            x = self.drop(self.embed(tokens) * math.sqrt(WIDTH) + self.place)
            return self.head(self.blocks(x, mask=self.mask, is_causal=True))

    model = Model()
    if weights is not None:
        given = {k: torch.tensor(np.asarray(v)) for k, v in {**weights, **weights["blocks"]}.items() if not isinstance(v, dict)}
        with torch.no_grad():
            model.embed.weight.copy_(given["embed"])
            model.head.weight.copy_(given["head"])
            model.head.bias.copy_(given["head_bias"])
            for i, block in enumerate(model.blocks.layers):
                block.self_attn.in_proj_weight.copy_(torch.cat([given[name][i].T for name in "qkv"]))
                block.self_attn.in_proj_bias.copy_(torch.cat([given[f"{name}_bias"][i] for name in "qkv"]))
                for ours, theirs in (("o", block.self_attn.out_proj), ("up", block.linear1), ("down", block.linear2)):
                    theirs.weight.copy_(given[ours][i].T)
                    theirs.bias.copy_(given[f"{ours}_bias"][i])
    return model


def torch_steps(layers: int, dropout: float, columns: np.ndarray, weights: Any = None) -> tuple[Callable[[int], None], Any]:
    """One training step of PyTorch as a function of the window's number, and the module."""
    import torch

    model = torch_model(layers, dropout, weights)
    model.train()
    adam = torch.optim.Adam(model.parameters(), lr=LR, fused=True)
    text = torch.tensor(columns).long()
    windows = (text.shape[1] - 1) // LENGTH

    def step(i: int) -> None:
        at = LENGTH * (i % windows)
        adam.zero_grad()
        out = model(text[:, at : at + LENGTH])
        torch.nn.functional.cross_entropy(out.reshape(-1, WORDS), text[:, at + 1 : at + LENGTH + 1].reshape(-1)).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        adam.step()

    return step, model


def child(layers: int, threads: int) -> None:
    """A PyTorch process: for each line, which is a number of steps, the seconds per step."""
    import torch

    torch.set_num_threads(threads)
    torch.set_flush_denormal(True)
    step, _ = torch_steps(layers, DROPOUT, words(20))
    step(0)
    serve(step)


def our_steps(
    layers: int, dropout: float, columns: np.ndarray, vocabulary: int = WORDS
) -> tuple[Callable[..., Any], Callable[[int], Any]]:
    """``run(state, columns, key, steps)``, compiled, and the start of a seed on its device."""
    import jax
    import optax

    from jaxdyn import nn, train
    from jaxdyn.text import language

    net = nn.network(nn.encoder_lm(vocabulary, layers=layers, dropout=dropout))
    tx = optax.chain(optax.clip_by_global_norm(CLIP), optax.adam(LR))
    step = language.make_step(net, tx, LENGTH)
    run = jax.jit(lambda state, *data: jax.lax.fori_loop(0, data[-1], lambda _, s: step(s, *data[:-1]), state), donate_argnums=0)

    def start(seed: int) -> tuple[Any, ...]:
        key = jax.random.key(seed)
        return jax.device_put((train.init(tx, net.init(key)), columns, key), jax.devices()[seed % len(jax.devices())])

    return run, start


def same_steps(layers: int, steps: int = 5) -> float:
    """Largest difference of read-out and embedding after some steps from one start without dropout, in units of their movement."""
    columns = words(4)
    run, start = our_steps(layers, 0.0, columns)
    state, *data = start(0)
    import jax

    first = jax.tree.map(np.array, state.params)
    step, model = torch_steps(layers, 0.0, columns, first)
    ours = run(state, *data, steps).params
    for i in range(steps):
        step(i)
    theirs = {"embed": model.embed.weight, "head": model.head.weight}
    return max(
        float(np.abs(np.asarray(ours[k]) - w.detach().numpy()).mean() / np.abs(np.asarray(ours[k]) - first[k]).mean())
        for k, w in theirs.items()
    )


def products(layers: int, vocabulary: int = WORDS) -> int:
    """Floating-point operations of the matrix products of one step, forwards and back."""
    blocks = layers * (6 * WIDTH**2 + 2 * LENGTH * WIDTH)
    return 6 * TEXTS * LENGTH * (vocabulary * WIDTH + blocks)


def measure(layers: int, rounds: int, steps: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """A row of the table, and its samples."""
    import jax

    columns = words(20)
    run, start = our_steps(layers, DROPOUT, columns)
    states = [start(seed) for seed in range(min(2, len(jax.devices())))]
    begin = time.perf_counter()
    run.lower(*states[0], steps).compile()
    compiled = time.perf_counter() - begin

    def ours(count: int) -> float:
        begin = time.perf_counter()
        for i in range(count):
            states[i] = (run(*states[i], steps), *states[i][1:])
        jax.block_until_ready(states)
        return (time.perf_counter() - begin) / (steps * count)

    with ExitStack() as stack:
        wide, narrow = (Children(stack, __file__, [layers, threads], n) for threads, n in ((2, 1), (1, 2)))
        contestants = {
            "ours": lambda: ours(1),
            "ours, 2 at once": lambda: ours(len(states)),
            "torch, 2 threads": lambda: wide.seconds(steps),
            "torch, 2 x 1 thread": lambda: narrow.seconds(steps),
            "peak": matmul_peak,
        }
        samples = alternate(contestants, rounds)
    peak, tokens = max(samples.pop("peak")), TEXTS * LENGTH
    rate = {name: tokens / statistics.median(values) for name, values in samples.items()}
    best = {who: max(v for n, v in rate.items() if n.startswith(who)) for who in ("ours", "torch")}
    row = {"layers": layers, **{f"{n} (tokens/s)": v for n, v in rate.items()}}
    row |= {"ours / torch": best["ours"] / best["torch"], "of peak": best["ours"] / tokens * products(layers) / peak}
    return row, {"peak flop/s": peak, "compile seconds": compiled, "samples (s/step and run)": samples}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one layer, once: does it work?")
    parser.add_argument("--child", nargs=2, type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        return child(*options.child)
    import jax

    jax.config.update("jax_num_cpu_devices", os.cpu_count())
    rows, facts = [], {}
    for layers in DEPTHS[:1] if options.quick else DEPTHS:
        difference = same_steps(layers)
        assert difference < 0.02, f"not the same steps: {difference}"
        row, found = measure(layers, 1 if options.quick else 5, 3 if options.quick else 10)
        rows.append(row)
        facts[f"{layers} layers"] = {"difference after 5 steps": difference, **found}
    question = "Word language model, float32, training: tokens per second (target: ours / torch at least 1)"
    publish("lm_torch", question, rows, save=not options.quick, **facts)


if __name__ == "__main__":
    main()
