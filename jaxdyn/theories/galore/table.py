"""Our column of GaLore's memory table: bytes of the training states of its LLaMA models, in bfloat16."""

from __future__ import annotations

import functools

from jaxdyn.nn import llama
from jaxdyn.optim import footprint
from jaxdyn.optim.memory import Bytes, MemoryLayout, estimate
from jaxdyn.theories.galore.published import RANKS

GB, GIB = 1e9, 2.0**30
EIGHT_BIT = "8bit"


@functools.cache
def shapes(model: str) -> dict:
    """The shapes of a model's weights, bfloat16; nothing is allocated."""
    return footprint.shapes(llama(model, dtype="bfloat16"))


def memory(model: str, method: str, *, side: str = "long", moments: str | None = None) -> Bytes:
    """Bytes of a method at the published rank."""
    return estimate(shapes(model), MemoryLayout(method=method, rank=RANKS[model], side=side, moments=moments))


def lora_as_published(model: str) -> Bytes:
    """LoRA counted as in the paper: the full model, and once more all that is trained, embeddings and read-out included."""
    tree = shapes(model)
    trained = sum(2 * tree[name].size for name in ("embed", "head", "norm")) + sum(
        2 * x.size for name, x in tree["blocks"].items() if name.endswith("norm")
    )
    once = memory(model, "lora")
    return once._replace(weights=once.weights + trained)
