"""Continuous thoughts: prompts answered per second, with a cache in one compiled program, and by the published loop in PyTorch.

The same decoder (4 layers, 256 wide, 4 heads, rotary positions, weights N(0, 0.02)), prompts (107 tokens) and thoughts (6),
float32, no gradients. The published loop feeds the last hidden state back in Python: with everything computed again for every
thought, or with PyTorch's keys and values kept in growing tensors. That all hidden states agree is checked first.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable
from typing import Any

import numpy as np
from common import interleaved, publish

SHAPE = {"vocabulary": 40, "width": 256, "layers": 4, "heads": 4, "hidden": 1024}
LENGTH, THOUGHTS = 107, 6
BATCHES = (1, 32)


def torch_loop(params: Any, tokens: np.ndarray, cached: bool) -> Callable[[], Any]:
    """The published loop: hidden states [c1, b, d] after the prompt and after each thought."""
    import torch

    blocks = [{k: torch.tensor(np.asarray(w[i])) for k, w in params["blocks"].items()} for i in range(SHAPE["layers"])]
    embed, gain = torch.tensor(np.asarray(params["embed"])), torch.tensor(np.asarray(params["norm"]))
    entries = SHAPE["width"] // SHAPE["heads"]
    angle = torch.arange(LENGTH + THOUGHTS)[:, None] * 10_000.0 ** (-torch.arange(0, entries, 2) / entries)
    cos, sin = angle.cos(), angle.sin()
    prompt = embed[torch.tensor(tokens).long()]

    def norm(x: Any, g: Any) -> Any:
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * g

    def turned(x: Any, first: int) -> Any:
        c, s = cos[first : first + x.shape[-2]], sin[first : first + x.shape[-2]]
        a, b = x.chunk(2, -1)
        return torch.cat([a * c - b * s, a * s + b * c], -1)

    def forward(x: Any, past: list | None) -> tuple[Any, list]:
        first, new = 0 if past is None else past[0][0].shape[-2], []
        for i, w in enumerate(blocks):
            z = norm(x, w["attention_norm"])
            q, k, v = ((z @ w[n]).unflatten(-1, (SHAPE["heads"], entries)).transpose(1, 2) for n in "qkv")
            q, k = turned(q, first), turned(k, first)
            if past is not None:
                k, v = torch.cat([past[i][0], k], 2), torch.cat([past[i][1], v], 2)
            new.append((k, v))
            out = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=past is None)
            x = x + out.transpose(1, 2).flatten(-2) @ w["o"]
            z = norm(x, w["mlp_norm"])
            x = x + (torch.nn.functional.silu(z @ w["gate"]) * (z @ w["up"])) @ w["down"]
        return norm(x, gain), new

    def run() -> Any:
        with torch.inference_mode():
            hidden, x, past = [], prompt, None
            for _ in range(THOUGHTS + 1):
                out, kept = forward(x, past)
                hidden.append(out[:, -1])
                past = kept if cached else None
                x = out[:, -1:] if cached else torch.cat([x, out[:, -1:]], 1)
            return torch.stack(hidden).numpy()

    return run


def row(batch: int, repeats: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """A row of the table, and its samples."""
    import jax

    from jaxdyn.nn import Transformer, thoughts
    from jaxdyn.nn.transformer import init

    shape = Transformer(**SHAPE, scan=False)
    params = init(shape, jax.random.key(0))
    tokens = np.random.default_rng(0).integers(0, SHAPE["vocabulary"], (batch, LENGTH)).astype(np.int32)
    ours = jax.jit(lambda p, t: thoughts.think(shape, p, t, THOUGHTS))
    again = jax.jit(lambda p, t: thoughts.whole(shape, p, t, THOUGHTS))
    contestants = {
        "ours, cache": lambda: ours(params, tokens).block_until_ready(),
        "ours, all again": lambda: again(params, tokens).block_until_ready(),
        "torch, cache": torch_loop(params, tokens, True),
        "torch, all again": torch_loop(params, tokens, False),
    }
    results = {name: np.asarray(run()) for name, run in contestants.items()}
    first = results["ours, cache"]
    difference = max(float(np.abs(r - first).max() / np.abs(first).max()) for r in results.values())
    assert difference < 1e-4, f"not the same thoughts: {difference}"
    samples = interleaved(contestants, repeats)
    rate = {name: batch / statistics.median(s["samples"]) for name, s in samples.items()}
    line = {"prompts at once": batch} | {f"{name} (prompts/s)": value for name, value in rate.items()}
    best = max(rate["torch, cache"], rate["torch, all again"])
    return line | {"ours / torch": rate["ours, cache"] / best}, {"difference": difference, "samples": samples}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one prompt, once: does it work?")
    options = parser.parse_args()
    rows, facts = [], {}
    for batch in BATCHES[:1] if options.quick else BATCHES:
        line, found = row(batch, 1 if options.quick else 7)
        rows.append(line)
        facts[f"{batch} at once"] = found
    publish("thoughts", "Continuous thoughts, float32: prompts per second", rows, save=not options.quick, **facts)


if __name__ == "__main__":
    main()
