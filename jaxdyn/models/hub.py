"""Names such as ``org/model``, by the library huggingface_hub: its cache, its offline switch, weights as safetensors only."""

from __future__ import annotations

import re
from pathlib import Path

from jaxdyn.errors import UsageError, shown
from jaxdyn.models.extras import library
from jaxdyn.models.tokenizer import BESIDE

__all__ = ["download", "is_name"]

PATTERNS = ["*.safetensors", "*.safetensors.index.json", "config.json", "adapter_config.json", "tokenizer.json", *BESIDE]


def is_name(text: str) -> bool:
    """Whether a text has the form of a name on the hub."""
    return re.fullmatch(r"[\w-][\w.-]*/[\w-][\w.-]*", text) is not None


def download(name: str) -> Path:
    """The folder of a model in the hub's cache; what is not there yet is downloaded.

    Raises:
        UsageError: for a name that the hub does not know, and without a network for what is not in the cache.
    """
    hub = library("huggingface_hub")
    try:
        return Path(hub.snapshot_download(name, allow_patterns=PATTERNS))
    except Exception as error:  # of the library, and of what it sends requests with
        reason = shown(str(error).strip().partition("\n")[0] or type(error).__name__)
        raise UsageError(f"the model {name} cannot be had from the hub: {reason}") from None
