"""What a checkpoint is, and what reading it costs, before any weight is read."""

from __future__ import annotations

import dataclasses
from collections import Counter
from pathlib import Path

import jax.numpy as jnp
import numpy as np

from jaxdyn.models.checkpoint import Checkpoint, open_checkpoint
from jaxdyn.models.tensor_slice import sizes
from jaxdyn.nn import Transformer
from jaxdyn.wording import plural

__all__ = ["Summary", "describe", "summary_of"]

RATE = 60_000_000  # weights a second, read, checked and cast on one core of a laptop


@dataclasses.dataclass(frozen=True)
class Summary:
    """A checkpoint in numbers.

    Args:
        path: where it is.
        family: its ``model_type``.
        shape: the decoder.
        weights: how many numbers its tensors have, also those that no text reads.
        kinds: how many of its tensors have which kind of numbers, in the file's words.
        disk: bytes on disk.
        memory: bytes of the parameters in memory.
        peak: bytes in memory while they are read.
        seconds: how long reading them takes, roughly.
        tokens: token numbers of its tokenizer; None: it has none.
        context: tokens of the longest text in training; None: not known.
        note: why there is no tokenizer.
    """

    path: Path
    family: str
    shape: Transformer
    weights: int
    kinds: dict[str, int]
    disk: int
    memory: int
    peak: int
    seconds: float
    tokens: int | None
    context: int | None
    note: str = ""

    def lines(self) -> list[str]:
        """The summary for a terminal."""
        s = self.shape
        heads = f"{plural(s.heads, 'head')} of {s.entries} ({s.key_heads} of keys)"
        sizes = f"{plural(s.layers, 'layer')}, width {s.width}, {heads}, {plural(s.hidden or 0, 'unit')}"
        kinds = ", ".join(f"{count} {kind}" for kind, count in self.kinds.items())
        tokenizer = plural(self.tokens, "token") if self.tokens is not None else f"none: {self.note}"
        traits = [*_traits(s), f"texts of up to {plural(self.context, 'token')}" if self.context else ""]
        rows = {
            "model": str(self.path),
            "family": self.family,
            "network": f"{sizes}, {plural(s.vocabulary, 'token')}",
            "traits": ", ".join(filter(None, traits)),
            "weights": f"{self.weights:,}",
            "on disk": f"{_size(self.disk)} ({kinds})",
            "in memory": f"{_size(self.memory)} in {s.dtype}; {_size(self.peak)} while it is read",
            "time": f"about {max(1, round(self.seconds))} s to read",
            "tokenizer": tokenizer,
        }
        return [f"{name:<10} {text}" for name, text in rows.items()]


def describe(model: str | Path, *, dtype: str = "float32") -> Summary:
    """What a model is and what reading it costs; only names and sizes of its tensors are read.

    Raises:
        UsageError: as of :func:`jaxdyn.models.load`.
    """
    return summary_of(open_checkpoint(model, dtype))


def summary_of(checkpoint: Checkpoint) -> Summary:
    """The summary of an open checkpoint."""
    shape, slices, width = checkpoint.shape, checkpoint.slices, jnp.dtype(checkpoint.shape.dtype).itemsize
    counts = {path: int(np.prod(size)) * (shape.layers if path.startswith("blocks/") else 1) for path, size in sizes(shape).items()}
    numbers, tokenizer = sum(counts.values()), checkpoint.tokenizer
    tensors = {at.name: int(np.prod(at.size)) * (shape.layers if path.startswith("blocks/") else 1) for path, at in slices.items()}
    weights = sum(tensors.values())
    return Summary(
        path=checkpoint.path,
        family=checkpoint.family.name,
        shape=shape,
        weights=weights,
        kinds=dict(Counter(entry.kind for entry in checkpoint.archive.entries.values()).most_common()),
        disk=checkpoint.archive.bytes,
        memory=numbers * width,
        peak=(numbers + max(counts.values())) * width,
        seconds=weights / RATE,
        tokens=None if tokenizer is None else tokenizer.size,
        context=checkpoint.context,
        note=checkpoint.note,
    )


def _traits(s: Transformer) -> list[str]:
    """What tells the network from a plain LLaMA, in words."""
    scaling = "" if s.scaling is None else f", rates rescaled ({s.scaling.kind})"
    rotary = f"rotary positions in {s.rotated} of {s.entries} entries, base {s.base:g}{scaling}"
    return [
        {"rms": "RMS norm", "layer": "LayerNorm"}[s.norm],
        f"{s.mlp} MLP with {s.activation}",
        rotary if s.position == "rotary" else f"{s.position} positions",
        f"biases of {' '.join(s.biases)}" if s.biases else "",
        "parallel blocks" if s.parallel else "",
        f"window of {s.window}" if s.window else "",
        f"each block used {s.repeats} times" if s.repeats > 1 else "",
        "read-out tied to the embedding" if s.tied else "",
    ]


def _size(count: int) -> str:
    """Bytes in words."""
    return f"{count / 1e9:.2f} GB" if count >= 1e9 else f"{count / 1e6:.1f} MB" if count >= 1e5 else f"{count:,} bytes"
