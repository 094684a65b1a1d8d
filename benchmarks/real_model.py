"""A published model, SmolLM2-135M, in float32: reading whole texts, decoding token by token, and loading, here and in transformers.

Both sides have the same weights, those of `jaxdyn models get smollm2`, written by our own writer for transformers, and two threads;
PyTorch (inference mode, denormals flushed, scaled dot-product attention) has the better of one and two threads, of two runs at once
for whole texts. That both give the same logits is checked first.

Whole texts: logits of all tokens. Decoding: one stream, the likeliest token after each one. Ours has a streaming cache of 256 keys,
4 of them sinks, which is full, and layers written out; it reads given tokens. transformers has `generate` with its default cache
and, with the same weights as a Mistral with a window of 256, its sliding one, from the same number of keys on. Loading: from the
GGUF file to parameters in memory, the file read once before; transformers reads the safetensors that were written from it.

``of peak``: floating-point operations of all products over time, over the machine's matrix-product rate; ``GB/s``: how fast
decoding reads the weights, and in ``of peak`` its share of the rate at which one large matrix is multiplied by a vector.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from common import Children, alternate, matmul_peak, publish

MODEL = "smollm2"
TEXTS, QUICK_TEXTS = ((1, 128), (1, 512), (4, 256)), ((1, 64),)  # how many, of how many tokens
SIZE, SINKS = 256, 4
THEIRS, QUICK_TOKENS = 32, 8  # decoded in a timed piece; ours is four times as long: it begins with a copy of the weights by layer
CACHES = ("dynamic", "sliding")


def tokens(texts: int, length: int, vocabulary: int) -> np.ndarray:
    """Random tokens: the time does not depend on what they say."""
    return np.random.default_rng(0).integers(0, vocabulary, (texts, length))


# PyTorch's side


def torch_model(folder: str) -> Any:
    """The model as transformers reads it."""
    import torch
    import transformers

    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    return transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()


def torch_whole(folder: str, texts: int, length: int) -> Callable[[int], Any]:
    """Logits of whole texts, so many times."""
    import torch

    model = torch_model(folder)
    text = torch.tensor(tokens(texts, length, model.config.vocab_size))

    def run(times: int) -> Any:
        with torch.inference_mode():
            for _ in range(times):
                logits = model(text, use_cache=False).logits
        return logits

    return run


def torch_decode(folder: str) -> Callable[[int], Any]:
    """So many tokens by ``generate`` after as many keys as our cache has; reading those is subtracted."""
    import torch

    model = torch_model(folder)
    text = torch.tensor(tokens(1, SIZE, model.config.vocab_size))
    more = {"do_sample": False, "pad_token_id": 0, "eos_token_id": None, "attention_mask": torch.ones_like(text)}

    def run(count: int) -> float:
        spent = []
        for new in (1, count + 1):
            begin = time.perf_counter()
            with torch.inference_mode():
                model.generate(text, max_new_tokens=new, **more)
            spent.append(time.perf_counter() - begin)
        return (spent[1] - spent[0]) / count

    return run


def child(kind: str, folder: str, first: str, second: int, threads: int) -> None:
    """A PyTorch process: for each line, a number of runs or tokens, the seconds for each."""
    import torch

    torch.set_num_threads(threads)
    torch.set_flush_denormal(True)
    if kind == "whole":
        whole = torch_whole(folder, int(first), second)
        whole(1)
    else:
        decode = torch_decode(folder)
    print("ready", flush=True)
    for line in sys.stdin:
        begin = time.perf_counter()
        if kind == "whole":
            whole(int(line))
            print((time.perf_counter() - begin) / int(line), flush=True)
        else:
            print(decode(int(line)), flush=True)


# ours


def our_whole(model: Any, texts: int, length: int) -> Callable[[int], Any]:
    """Logits of whole texts, so many times."""
    import jax

    from jaxdyn.nn.transformer import apply

    program = jax.jit(apply, static_argnums=0)
    text = tokens(texts, length, model.shape.vocabulary).astype(np.int32)

    def run(times: int) -> Any:
        for _ in range(times):
            logits = program(model.shape, model.params, text).block_until_ready()
        return logits

    return run


def our_decode(model: Any, count: int) -> Callable[[], float]:
    """Seconds for each of so many given tokens with a full streaming cache; of each the likeliest next token is found."""
    import jax
    import jax.numpy as jnp

    from jaxdyn.nn.cache import Policy, decode

    shape = dataclasses.replace(model.shape, scan=False)
    policy = Policy(kind="streaming", size=SIZE, sinks=SINKS)
    text = jnp.asarray(tokens(1, SIZE, shape.vocabulary)[0], jnp.int32)
    state = jax.jit(lambda p, t: decode(model.shape, p, policy, t)[0])(model.params, text)

    @functools.partial(jax.jit, donate_argnums=1)
    def further(params: Any, state: Any, text: Any) -> Any:
        state, logits = decode(shape, params, policy, text, state=state)
        return state, jnp.argmax(logits, -1)

    held = [state]

    def run() -> float:
        begin = time.perf_counter()
        held[0], best = further(model.params, held[0], text[:count])
        best.block_until_ready()
        return (time.perf_counter() - begin) / count

    return run


def read_rate() -> float:
    """Bytes of a matrix that two threads multiply by a vector in a second, the best of some."""
    import jax
    import jax.numpy as jnp

    from jaxdyn.linalg import matrix_vector

    matrix, vector = jnp.ones((1 << 15, 1 << 11), jnp.float32), jnp.ones(1 << 11, jnp.float32)
    program = jax.jit(matrix_vector)
    program(matrix, vector).block_until_ready()
    times = []
    for _ in range(15):
        begin = time.perf_counter()
        program(matrix, vector).block_until_ready()
        times.append(time.perf_counter() - begin)
    return float(matrix.nbytes / min(times))


# the comparison


def agree(model: Any, folder: str) -> float:
    """The largest difference of the logits of a text, which is small."""
    ours, theirs = (np.asarray(run(1)) for run in (our_whole(model, 1, 64), torch_whole(folder, 1, 64)))
    worst = float(np.max(np.abs(ours - theirs)))
    if worst > 1e-3:
        raise SystemExit(f"logits differ by {worst}")
    return worst


def whole_rows(model: Any, folder: str, sizes: Any, rounds: int, peak: float) -> list[dict[str, Any]]:
    """Tokens per second of whole texts."""
    from jaxdyn.instruments.pieces import forward

    rows = []
    for texts, length in sizes:
        with ExitStack() as stack:
            times = alternate(whole_contestants(stack, model, folder, texts, length), rounds)
        rows += table(f"whole texts, {texts} of {length}", times, texts * length, forward(model.shape, length) / peak)
    return rows


def whole_contestants(stack: ExitStack, model: Any, folder: str, texts: int, length: int) -> dict[str, Callable[[], float]]:
    """Seconds of one reading, by both sides."""
    run, words = our_whole(model, texts, length), ("whole", folder, texts, length)
    two, both = Children(stack, __file__, (*words, 2), 1), Children(stack, __file__, (*words, 1), 2)

    def ours() -> float:
        begin = time.perf_counter()
        run(1)
        return time.perf_counter() - begin

    return {"jaxdyn": ours, "PyTorch, 2 threads": lambda: two.seconds(1), "PyTorch, 2 runs": lambda: both.seconds(1)}


def decode_rows(model: Any, folders: dict[str, str], count: int, rounds: int, rate: float) -> list[dict[str, Any]]:
    """Tokens per second of decoding."""
    import jax

    weights = sum(leaf.nbytes for leaf in jax.tree.leaves(model.params))
    with ExitStack() as stack:
        contestants = {"jaxdyn, streaming": our_decode(model, 4 * count)}
        for cache in CACHES:
            for threads in (1, 2):
                pieces = Children(stack, __file__, ("decode", folders[cache], cache, 0, threads), 1)
                contestants[f"PyTorch, {cache}, {threads} threads"] = functools.partial(pieces.seconds, count)
        times = alternate(contestants, rounds)
    rows = table("decoding", times, 1, weights / rate)
    return [row | {"GB/s": weights * row["tokens/s"] / 1e9} for row in rows]


def load_rows(folder: str, rounds: int) -> list[dict[str, Any]]:
    """Seconds until all parameters are in memory."""
    import jax

    from jaxdyn import models

    def ours() -> float:
        begin = time.perf_counter()
        jax.block_until_ready(models.load(MODEL).params)
        return time.perf_counter() - begin

    def theirs() -> float:
        begin = time.perf_counter()
        torch_model(folder)
        return time.perf_counter() - begin

    return table("loading", alternate({"jaxdyn, GGUF": ours, "PyTorch, safetensors": theirs}, rounds), 0, 0.0)


def table(what: str, times: dict[str, list[float]], count: int, work: float) -> list[dict[str, Any]]:
    """One row for each side: the least and the median time, tokens per second, and how much faster we are than the best of them.

    ``work`` is the share of the peak that one token a second has.
    """
    ours, *_ = times.values()
    rows = []
    for name, spent in times.items():
        least, median = min(spent), statistics.median(spent)
        rows.append(
            {
                "what": what,
                "who": name,
                "seconds": least,
                "median": median,
                "tokens/s": count / least if count else "",
                "of peak": work * count / least if count else "",
                "jaxdyn is faster by": least / min(ours),
                "by medians": median / statistics.median(ours),
            }
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, without writing the result")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", choices=("whole", "decoding", "loading"))
    parser.add_argument("--child", nargs=5, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        kind, folder, first, second, threads = args.child
        return child(kind, folder, first, int(second), int(threads))
    from jaxdyn import models

    model, rounds = models.load(MODEL), 1 if args.quick else args.rounds
    peak, rate = matmul_peak(), read_rate()
    with tempfile.TemporaryDirectory() as place:
        llama = str(models.save(Path(place) / "llama", model.shape, model.params, family="llama", context=model.summary.context))
        window = dataclasses.replace(model.shape, window=SIZE)
        mistral = str(models.save(Path(place) / "mistral", window, model.params, family="mistral", context=model.summary.context))
        facts = {"largest difference of logits": agree(model, llama), "peak GFlop/s": peak / 1e9, "read GB/s": rate / 1e9}
        parts: dict[str, Callable[[], list[dict[str, Any]]]] = {
            "whole": lambda: whole_rows(model, llama, QUICK_TEXTS if args.quick else TEXTS, rounds, peak),
            "decoding": lambda: decode_rows(
                model,
                {"dynamic": llama, "sliding": mistral},
                QUICK_TOKENS if args.quick else THEIRS,
                rounds,
                rate,
            ),
            "loading": lambda: load_rows(llama, rounds),
        }
        for name, rows in parts.items():
            if args.only in (None, name):
                question = f"SmolLM2-135M, float32, two threads: {name}"
                publish(f"real_model_{name}", question, rows(), save=not args.quick, **facts)


if __name__ == "__main__":
    main()
