"""Streaming decode: tokens per second with a cache of fixed size, against dense caches and a window that is encoded from scratch.

One network (4 layers, width 128, bytes), one stream, float32, given tokens, of each of which the cross-entropy is found; a cache of
256 keys, 4 of them sinks. Our streams really run to each length T, PyTorch's to 4096. A dense cache of T places holds random
keys but for the last 16; a window with recomputation costs the same for every token. PyTorch (inference mode, denormals
flushed, the better of one and two threads) has the same weights: its streaming loop drops the oldest key by a concatenation, as
the released code does, and turns all keys by their positions in the cache; its dense loop has one array for all keys and turns
each once. That both sides give the same logits is checked first.

``of peak``: floating-point operations of all products over time, over the machine's matrix-product rate, which products of matrices
and vectors cannot reach; ``weights GB/s``: how fast the weights are read.
"""

from __future__ import annotations

import argparse
import functools
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from common import RESULTS, Children, matmul_peak, publish

MODEL, VOCABULARY, SIZE, SINKS = "9M", 256, 256, 4
LENGTHS, QUICK = (1024, 4096, 16_384, 65_536), (512, 1024)
SEGMENT, DENSE, WINDOWS = 128, 16, 8  # tokens of a timed piece
LONGEST = 4096  # text of PyTorch's streaming loop, whose cache is full, and whose time the same, from 256 tokens on
EPSILON, BASE = 1e-6, 10_000.0
NAMES = {"stream": "streaming", "dense": "dense", "recompute": "recomputed window"}


def text(count: int) -> np.ndarray:
    """Random bytes: the time does not depend on what they say."""
    return np.random.default_rng(0).integers(0, VOCABULARY, count).astype(np.int32)


# PyTorch's side


class Torch:
    """The decoder as a plain loop over tokens and layers."""

    def __init__(self, weights: dict[str, np.ndarray], heads: int, length: int) -> None:
        import torch

        w = {name: torch.tensor(value) for name, value in weights.items()}
        self.embed, self.head, self.norm = w.pop("embed"), w.pop("head").T.contiguous(), w.pop("norm")
        self.layers = [{name: value[i].contiguous() for name, value in w.items()} for i in range(len(w["q"]))]
        self.heads, self.entries, self.time = heads, self.embed.shape[1] // heads, 0
        rate = BASE ** (-torch.arange(0, self.entries, 2) / self.entries)
        angle = torch.arange(max(length, SIZE))[:, None] * rate
        self.cos, self.sin = (torch.cat([f, f], -1) for f in (angle.cos(), angle.sin()))
        empty = torch.zeros(heads, 0, self.entries)
        self.keys, self.values = [empty] * len(self.layers), [empty] * len(self.layers)

    def turned(self, x: Any, first: int) -> Any:
        """Vectors of consecutive positions, turned; halves are paired."""
        import torch

        a, b = x.chunk(2, -1)
        end = first + x.shape[-2]
        return x * self.cos[first:end] + torch.cat([-b, a], -1) * self.sin[first:end]

    def block(self, x: Any, w: dict[str, Any], attend: Callable[[Any, Any, Any], Any]) -> Any:
        """One layer for one or more tokens."""
        from torch.nn import functional as f

        z = f.rms_norm(x, x.shape[-1:], w["attention_norm"], EPSILON)
        q, k, v = ((z @ w[name]).view(-1, self.heads, self.entries).transpose(0, 1) for name in ("q", "k", "v"))
        x = x + attend(q, k, v).transpose(0, 1).reshape(x.shape) @ w["o"]
        z = f.rms_norm(x, x.shape[-1:], w["mlp_norm"], EPSILON)
        return x + (f.silu(z @ w["gate"]) * (z @ w["up"])) @ w["down"]

    def logits(self, x: Any) -> Any:
        """Of the last token."""
        from torch.nn import functional as f

        return f.rms_norm(x[-1], x.shape[-1:], self.norm, EPSILON) @ self.head

    def stream(self, token: int) -> Any:
        """A token with the streaming cache."""
        import torch
        from torch.nn import functional as f

        x = self.embed[token : token + 1]
        for i, w in enumerate(self.layers):

            def attend(q: Any, k: Any, v: Any, i: int = i) -> Any:
                for held, new in ((self.keys, k), (self.values, v)):
                    old = held[i]
                    parts = [old, new] if old.shape[1] < SIZE else [old[:, :SINKS], old[:, SINKS + 1 :], new]
                    held[i] = torch.cat(parts, 1)
                n = self.keys[i].shape[1]
                return f.scaled_dot_product_attention(self.turned(q, n - 1), self.turned(self.keys[i], 0), self.values[i])

            x = self.block(x, w, attend)
        return self.logits(x)

    def fill(self, length: int) -> None:
        """A dense cache with room for so many keys, random but for the last ones."""
        import torch

        self.keys, self.values = ([torch.randn(self.heads, length, self.entries) for _ in self.layers] for _ in range(2))
        self.time = self.first = length - DENSE

    def dense(self, token: int) -> Any:
        """A token with the dense cache; after the last place it begins again where the random keys ended."""
        from torch.nn import functional as f

        x, t = self.embed[token : token + 1], self.time
        for i, w in enumerate(self.layers):

            def attend(q: Any, k: Any, v: Any, i: int = i) -> Any:
                self.keys[i][:, t : t + 1], self.values[i][:, t : t + 1] = self.turned(k, t), v
                return f.scaled_dot_product_attention(self.turned(q, t), self.keys[i][:, : t + 1], self.values[i][:, : t + 1])

            x = self.block(x, w, attend)
        self.time = t + 1 if t + 1 < self.keys[0].shape[1] else self.first
        return self.logits(x)

    def recompute(self, window: Any) -> Any:
        """The last token of a window that is encoded from scratch."""
        from torch.nn import functional as f

        x = self.embed[window]
        for w in self.layers:
            x = self.block(
                x,
                w,
                lambda q, k, v: f.scaled_dot_product_attention(self.turned(q, 0), self.turned(k, 0), v, is_causal=True),
            )
        return self.logits(x)


def child(what: str, length: int, threads: int, folder: str) -> None:
    """A PyTorch process: for each line, which is a number of tokens, the seconds per token."""
    import torch

    torch.set_num_threads(threads)
    torch.set_flush_denormal(True)
    weights = dict(np.load(Path(folder) / "weights.npz"))
    heads = int(weights.pop("heads"))
    model, given = Torch(weights, heads, length), text(2 * SIZE + SEGMENT).tolist()
    if what == "dense":
        model.fill(length)
    windows = torch.tensor(given[:SIZE])
    token = {"stream": model.stream, "dense": model.dense, "recompute": lambda _: model.recompute(windows)}[what]
    print("ready", flush=True)
    with torch.inference_mode():
        for line in sys.stdin:
            begin, nats = time.perf_counter(), []
            for i in range(int(line)):
                out = token(given[i % len(given)])
                nats.append(torch.logsumexp(out, 0) - out[given[(i + 1) % len(given)]])
            float(torch.stack(nats).sum())
            print((time.perf_counter() - begin) / int(line), flush=True)


# our side


@functools.cache
def network() -> tuple[Any, Any]:
    """The decoder with its layers written out, and weights."""
    import jax

    from jaxdyn.nn import llama
    from jaxdyn.nn.transformer import init

    shape = llama(MODEL, vocabulary=VOCABULARY, scan=False, std=0.1)
    return shape, jax.jit(init, static_argnums=0)(shape, jax.random.key(0))


def flat(params: Any, heads: int) -> dict[str, np.ndarray]:
    """Weights by name, as PyTorch's side takes them."""
    plain = {name: np.asarray(x) for name, x in params.items() if name != "blocks"}
    return plain | {name: np.asarray(x) for name, x in params["blocks"].items()} | {"heads": np.asarray(heads)}


def decoder(policy: Any) -> Callable[[Any, Any], tuple[Any, Any]]:
    """``run(state, tokens)`` gives the cache, which it changes in place, and the mean cross-entropy."""
    import jax

    from jaxdyn.nn import cache

    shape, params = network()

    def run(params: Any, state: Any, tokens: Any) -> tuple[Any, Any]:
        state, nats = cache.losses(shape, params, policy, tokens, state=state)
        return state, nats.mean()

    compiled = jax.jit(run, donate_argnums=1)
    return lambda state, tokens: compiled(params, state, tokens)


def our_stream() -> Callable[[int], float]:
    """Seconds per token of the next so many tokens of one stream."""
    import jax

    from jaxdyn.nn import cache

    policy = cache.Policy(kind="streaming", size=SIZE, sinks=SINKS)
    run, held = decoder(policy), [cache.start(network()[0], policy)]

    def seconds(count: int) -> float:
        tokens = text(SEGMENT + 1)
        begin = time.perf_counter()
        for _ in range(count // SEGMENT):
            held[0], nats = run(held[0], tokens)
        jax.block_until_ready((held[0], nats))
        return (time.perf_counter() - begin) / count

    return seconds


def our_dense(length: int) -> Callable[[int], float]:
    """Seconds per token of the last tokens of a dense cache of that many places."""
    import jax
    import jax.numpy as jnp

    from jaxdyn.nn import cache

    policy = cache.Policy(kind="dense", size=length)
    empty = cache.start(network()[0], policy)
    born, position = (jnp.tile(jnp.arange(length, dtype=jnp.int32), (*empty.layers.born.shape[:-1], 1)) for _ in range(2))
    key, value = (jax.random.normal(jax.random.key(i), empty.layers.key.shape) for i in range(2))
    layers = empty.layers._replace(key=key, value=value, born=born, position=position)
    run, held = decoder(policy), [empty._replace(layers=layers)]

    def seconds(count: int) -> float:
        state = held[0]._replace(time=jnp.int32(length - count))
        tokens = text(count + 1)
        begin = time.perf_counter()
        held[0], nats = jax.block_until_ready(run(state, tokens))
        return (time.perf_counter() - begin) / count

    return seconds


def our_recompute() -> Callable[[int], float]:
    """Seconds per token of a window that is encoded from scratch."""
    import jax

    from jaxdyn.nn import cache

    shape, params = network()
    run = jax.jit(lambda p, t: cache.recompute(shape, p, SIZE, t).mean())

    def seconds(count: int) -> float:
        tokens = text(SIZE + count)  # with SIZE tokens all windows are one, and XLA encodes it once
        begin = time.perf_counter()
        run(params, tokens).block_until_ready()
        return (time.perf_counter() - begin) / tokens.size

    return seconds


# both


def same_logits(count: int = SIZE + 64) -> dict[str, float]:
    """Largest difference of ours and PyTorch's logits, over the largest logit."""
    import jax

    from jaxdyn.nn import cache

    (shape, params), tokens = network(), text(count)
    ours = {
        "stream": jax.jit(lambda p, t: cache.decode(shape, p, cache.Policy(kind="streaming", size=SIZE, sinks=SINKS), t)[1]),
        "dense": jax.jit(lambda p, t: cache.decode(shape, p, cache.Policy(kind="dense", size=count), t)[1]),
        "recompute": jax.jit(lambda p, t: cache.recompute(shape, p, SIZE, t)),
    }
    found = {}
    for name, run in ours.items():
        at, other = torch_logits(name, tokens)
        mine = np.asarray(run(params, tokens))[at]
        found[name] = float(np.abs(mine - other).max() / np.abs(other).max())
    return found


def torch_logits(name: str, tokens: np.ndarray) -> tuple[list[int], np.ndarray]:
    """PyTorch's logits after some of the tokens, and after which."""
    import torch

    (shape, params), whole = network(), torch.tensor(tokens).long()
    weights = flat(params, shape.heads)
    model = Torch(weights, int(weights.pop("heads")), len(tokens))
    if name == "dense":
        model.fill(len(tokens))
        model.time = 0
    at = list(range(SIZE - 1, len(tokens), 16) if name == "recompute" else range(len(tokens)))
    with torch.inference_mode():
        if name == "recompute":
            return at, np.stack([model.recompute(whole[i - SIZE + 1 : i + 1]).numpy() for i in at])
        token = model.stream if name == "stream" else model.dense
        return at, np.stack([token(int(tokens[i])).numpy() for i in at])


def flops(what: str, keys: int) -> float:
    """Floating-point operations of the products of a token that sees so many keys."""
    shape, _ = network()
    each = shape.layers * sum(m * n for m, n in shape.weights.values())
    if what == "recompute":
        return 2 * (SIZE * (each + shape.layers * SIZE * shape.width) + VOCABULARY * shape.width)
    return 2 * (each + 2 * shape.layers * keys * shape.width + VOCABULARY * shape.width)


def torch_side(stack: ExitStack, folder: str, what: str, length: int) -> dict[str, Callable[[int], float]]:
    """PyTorch with one thread and with two; none where it is not installed."""
    threads = sorted({1, os.cpu_count() or 1})
    return {f"torch, {n} threads": Children(stack, __file__, [what, length, n, folder], 1).seconds for n in threads}


def timed(sides: dict[str, Callable[[int], float]], count: int, rounds: int) -> dict[str, list[float]]:
    """Seconds per token of each side, in turn."""
    samples: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(rounds):
        for name, seconds in sides.items():
            samples[name].append(seconds(count))
    print({name: f"{1e3 * min(values):.3g} ms" for name, values in samples.items()}, file=sys.stderr, flush=True)
    return samples


def measure(lengths: tuple[int, ...], rounds: int, torch: bool, folder: str) -> dict[tuple[str, int], dict[str, list[float]]]:
    """Samples by (what, T) and side."""
    found = {}
    with ExitStack() as stack:
        sides = {"ours": our_stream()} | (torch_side(stack, folder, "stream", lengths[-1]) if torch else {})
        first = {name: seconds(SEGMENT) for name, seconds in sides.items()}
        slower = sorted((name for name in sides if name != "ours"), key=first.__getitem__)[1:]
        sides = {name: seconds for name, seconds in sides.items() if name not in slower}
        now = SEGMENT
        for length in lengths:
            if length > LONGEST:
                sides = {"ours": sides["ours"]}
            for seconds in sides.values():
                seconds(length - now - rounds * SEGMENT)
            found["stream", length] = timed(sides, SEGMENT, rounds)
            now = length
    for what, length in [("recompute", lengths[0]), *(("dense", length) for length in lengths)]:
        with ExitStack() as stack:
            ours, count = (our_dense(length), DENSE) if what == "dense" else (our_recompute(), WINDOWS)
            sides = {"ours": ours} | (torch_side(stack, folder, what, length) if torch else {})
            found[what, length] = timed(sides, count, rounds + 1)
            found[what, length] = {name: values[1:] for name, values in found[what, length].items()}
    return found


def rows_of(found: dict[tuple[str, int], dict[str, list[float]]], peak: float) -> list[dict[str, Any]]:
    """Lines of the table."""
    shape, params = network()
    import jax

    size = sum(x.nbytes for x in jax.tree.leaves(params["blocks"])) + params["head"].nbytes
    again = min(min(v) for v in next(s for (what, _), s in found.items() if what == "recompute").values())
    rows = []
    for (what, length), samples in found.items():
        torch = [v for name, v in samples.items() if name != "ours"]
        best = min(torch, key=statistics.median) if torch else None
        ours = samples["ours"]
        low = min(ours)
        rows.append({
            "decoding": NAMES[what], "T": length if what != "recompute" else "any", "ours (tokens/s)": 1 / low,
            "median": 1 / statistics.median(ours), "torch (tokens/s)": 1 / min(best) if best else None,
            "torch, median": 1 / statistics.median(best) if best else None, "ours / torch": min(best) / low if best else None,
            "ours / best recomputation": again / low,
            "of peak": flops(what, min(length, SIZE) if what == "stream" else length) / low / peak,
            "weights GB/s": size / low / 1e9 if what != "recompute" else None,
        })  # fmt: skip
    return rows


def draw(rows: list[dict[str, Any]]) -> None:
    """Time per token over T, ours solid and PyTorch's dashed."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(6.4, 3.8), layout="constrained")
    ax = fig.subplots()
    lengths = sorted({r["T"] for r in rows if r["T"] != "any"})
    for name, color in zip(NAMES.values(), ("C0", "C1", "C2"), strict=True):
        part = [r for r in rows if r["decoding"] == name]
        for side, style in (("ours", "-"), ("torch", "--")):
            pairs = [(r["T"], r[f"{side} (tokens/s)"]) for r in part if r[f"{side} (tokens/s)"] is not None]
            if name == NAMES["recompute"]:
                pairs = [(t, rate) for _, rate in pairs for t in lengths]
            if pairs:
                at, rates = zip(*pairs, strict=True)
                ax.plot(at, [1e3 / x for x in rates], style, marker="o", ms=3, color=color, label=f"{name}, {side}")
    ax.set(xscale="log", yscale="log", xlabel="tokens read, T", ylabel="milliseconds per token")
    ax.legend(fontsize=8)
    fig.savefig(RESULTS / "streaming.svg", metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="two short lengths, once: does it work?")
    parser.add_argument("--child", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        what, length, threads, folder = options.child
        return child(what, int(length), int(threads), folder)
    try:
        import torch  # noqa: F401

        there = True
    except ImportError:
        there = False
        print("PyTorch is not installed: its side and the comparison of logits are left out", file=sys.stderr)
    differences = same_logits() if there else {}
    assert all(d < 1e-3 for d in differences.values()), f"not the same logits: {differences}"
    shape, params = network()
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        np.savez(Path(folder) / "weights.npz", **flat(params, shape.heads))
        found = measure(QUICK if options.quick else LENGTHS, 1 if options.quick else 5, there, folder)
    peak = matmul_peak()
    rows = rows_of(found, peak)
    samples = {f"{what}, T = {length}": s for (what, length), s in found.items()}
    facts = {"largest difference of logits over the largest": differences, "peak flop/s": peak, "samples (s/token)": samples,
             "load average at the start": load, "note": "other work may have run beside it where that load was not 0",
             "network": f"{shape.layers} layers, width {shape.width}; cache of {SIZE} keys, {SINKS} sinks"}  # fmt: skip
    question = "Decoding one stream, float32: tokens per second after T tokens (target: ours / torch at least 1)"
    publish("streaming", question, rows, save=not options.quick, **facts)
    if not options.quick:
        draw(rows)


if __name__ == "__main__":
    main()
