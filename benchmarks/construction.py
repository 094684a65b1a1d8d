r"""The superposition construction on 1000 random digraphs: one compiled program, and NumPy, graph by graph and in blocks.

The same weights (48 names, 40 edges, 8 thoughts, width 175, float64) and prompts (126 tokens): a pass over the prompt, eight
thoughts, each of them the last output fed back, and the answer's token. NumPy reads everything again for every thought, as the
published loop does, or keeps keys and values; one graph after another, or 50 at once. Graph by graph it is timed on some of the
graphs, and the time multiplied. That all thoughts and logits agree, and that all answers are right, is checked first.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from common import interleaved, publish

from jaxdyn.theories.sup import model
from jaxdyn.theories.sup.graph_search import Instance, Search, instance, sizes

GRAPHS, BLOCK, TARGET = 1000, 50, 5.0
NUMPY = {"numpy, a graph, all again": (1, False), "numpy, a graph, cache": (1, True), "numpy, 50 graphs, cache": (BLOCK, True)}
Answers = tuple[np.ndarray, np.ndarray]  # thoughts [g, C, D], logits after the answer's token [g, V]


def ours(s: Search, params: model.Params) -> Callable[[jax.Array], Any]:
    """Thoughts and logits of blocks of prompts, [blocks, g, n]; a block keeps its keys and values in a cache."""
    last, count = sizes(s).prompt - 1, s.thoughts
    answer = params.embed[s.names + 4]

    def block(tokens: jax.Array) -> tuple[jax.Array, jax.Array]:
        contents = params.embed[tokens]
        past = model.forward(params, model.inputs(params, contents[:, :last], jnp.arange(last)))[1]

        def think(carry: tuple, c: jax.Array) -> tuple[tuple, jax.Array]:
            x, recent = carry
            y, recent, _ = model.step(params, past, recent, model.inputs(params, x, last + c + jnp.arange(1)), c)
            return (y, recent), y[:, 0]

        start = (contents[:, last:], model.empty(past, count + 2))
        (x, recent), thoughts = jax.lax.scan(think, start, jnp.arange(count, dtype=jnp.int32))
        pair = jnp.concatenate([x, jnp.broadcast_to(answer, x.shape)], 1)
        pair = model.inputs(params, pair, last + count + jnp.arange(2))
        y = model.step(params, past, recent, pair, jnp.int32(count))[0]
        return jnp.swapaxes(thoughts, 0, 1), y[:, 1] @ params.head

    return lambda tokens: jax.lax.map(block, tokens)


class Loop:
    """The same in NumPy, with the weights as plain arrays."""

    def __init__(self, s: Search, params: model.Params) -> None:
        self.answer, self.thoughts = s.names + 4, s.thoughts
        self.embed, self.position, self.head = (np.asarray(w) for w in (params.embed, params.position, params.head))
        names = ("query", "key", "value", "out", "inner", "outer", "threshold")
        self.layers = [{n: np.asarray(getattr(layer, n)) for n in names} for layer in params.layers]

    def read(self, x: np.ndarray, past: list | None) -> tuple[np.ndarray, list]:
        """Outputs for inputs [g, n, d] after those whose keys and values are in ``past``, and all keys and values."""
        first = 0 if past is None else past[0][0].shape[-2]
        x, kept = x + self.position[first : first + x.shape[1]], []
        later = np.arange(first + x.shape[1]) > first + np.arange(x.shape[1])[:, None]
        for i, w in enumerate(self.layers):
            query, key, value = (x[:, None] @ w[name] for name in ("query", "key", "value"))
            if past is not None:
                key, value = np.concatenate([past[i][0], key], 2), np.concatenate([past[i][1], value], 2)
            kept.append((key, value))
            scores = np.where(later, -np.inf, query @ key.swapaxes(-1, -2))
            b = np.exp(scores - scores.max(-1, keepdims=True))
            b /= b.sum(-1, keepdims=True)
            h = x + ((b @ value) @ w["out"]).sum(1)
            y = (h @ w["inner"] >= w["threshold"]).astype(x.dtype) @ w["outer"]
            size = np.linalg.norm(y, axis=-1, keepdims=True)
            x = y / np.where(size > 0, size, 1)
        return x, kept

    def block(self, tokens: np.ndarray, cached: bool) -> Answers:
        """Thoughts and logits of some prompts."""
        whole, new, past, thoughts = self.embed[tokens], self.embed[tokens], None, []
        for _ in range(self.thoughts):
            y, kept = self.read(new if cached else whole, past)
            thoughts.append(y[:, -1])
            whole, new, past = np.concatenate([whole, y[:, -1:]], 1), y[:, -1:], kept if cached else None
        end = np.broadcast_to(self.embed[self.answer], new.shape)
        y, _ = self.read(np.concatenate([new if cached else whole, end], 1), past)
        return np.stack(thoughts, 1), y[:, -1] @ self.head

    def run(self, tokens: np.ndarray, block: int, cached: bool) -> Answers:
        """All prompts, some at a time."""
        parts = [self.block(tokens[i : i + block], cached) for i in range(0, len(tokens), block)]
        return np.concatenate([t for t, _ in parts]), np.concatenate([a for _, a in parts])


def agreed(results: dict[str, Answers], one: Instance) -> float:
    """The largest difference between contestants; all answers must be right."""
    thoughts, logits = results["ours"]
    assert (logits.argmax(-1) == np.asarray(one.graphs.target)).all(), "not all answers are right"
    difference = max(max(np.abs(t - thoughts[: len(t)]).max(), np.abs(a - logits[: len(a)]).max()) for t, a in results.values())
    assert difference < 1e-12, f"not the same thoughts: {difference}"
    return float(difference)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="100 graphs, once: does it work?")
    quick = parser.parse_args().quick
    graphs, sample, repeats = (2 * BLOCK, 4, 1) if quick else (GRAPHS, 100, 7)
    s = Search(kind="random", nodes=24.0, graphs=graphs)
    with jax.enable_x64(True):
        one = jax.jit(lambda key: instance(s, key))(jax.random.key(0))
        blocks = one.tokens.reshape(-1, BLOCK, one.tokens.shape[1])
        start = time.perf_counter()
        program = jax.jit(ours(s, one.params)).lower(blocks).compile()
        compiled = time.perf_counter() - start
        loop, tokens = Loop(s, one.params), np.asarray(one.tokens)
        counts = {name: sample if block == 1 else graphs for name, (block, _) in NUMPY.items()}
        contestants = {"ours": lambda: jax.block_until_ready(program(blocks))}
        contestants |= {
            name: lambda name=name, block=block, cached=cached: loop.run(tokens[: counts[name]], block, cached)
            for name, (block, cached) in NUMPY.items()
        }
        results = {name: run() for name, run in contestants.items()}
        results["ours"] = tuple(np.asarray(part).reshape(graphs, *part.shape[2:]) for part in results["ours"])
        difference = agreed(results, one)
        samples = interleaved(contestants, repeats)
    factor = {"ours": 1.0} | {name: graphs / count for name, count in counts.items()}
    best = samples["ours"]["median"]
    rows = [
        {
            "contestant": name,
            "timed graphs": round(graphs / factor[name]),
            "min s": factor[name] * seconds["min"],
            "median s": factor[name] * seconds["median"],
            "/ ours": factor[name] * seconds["median"] / best,
            "compile s": round(compiled, 2) if name == "ours" else "",
        }
        for name, seconds in samples.items()
    ]
    question = f"Superposition construction, float64: warm seconds for {graphs} digraphs (target: at most {TARGET:.0f})"
    facts = {"difference": difference, "cores_used": len(os.sched_getaffinity(0)), "samples": samples}
    publish("construction", question, rows, save=not quick, **facts)


if __name__ == "__main__":
    main()
