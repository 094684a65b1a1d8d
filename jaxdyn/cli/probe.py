"""``jaxdyn probe``: applies instruments to your own model, or to a series of checkpoints."""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jaxdyn.engine.base.parsing import from_home
from jaxdyn.models.probe import NUMBERS, Probe, expand
from jaxdyn.report import probe as pages
from jaxdyn.report.plain import plain

__all__ = ["folder_of", "probe_command"]


def probe_command(
    models: Sequence[str],
    *,
    text: str | None,
    tokens: int,
    length: int,
    only: str | None,
    out: Path | None,
    dtype: str,
    steps: str | None,
) -> dict[str, Any]:
    """Probe models, announcing the cost first; returns the numbers as JSON."""
    folder = folder_of(models) if out is None else out
    several = list(models) if len(models) > 1 else models[0]
    if earlier := _other_models(folder, [name for name, *_ in expand(several, steps)]):
        _say(f"{folder} holds the page of {', '.join(earlier)}, which is replaced; --out DIR keeps it")
    result = pages.probe(several, text, tokens, only, folder, length=length, dtype=dtype, steps=steps, say=_say)
    for line in _lines(result):
        _say(line)
    _say(f"page: {folder / pages.PAGE}")
    return result.to_json()


def folder_of(models: Sequence[str]) -> Path:
    """The default folder, named after the model's last folder: ``probe-smollm2``."""
    name = re.sub(r"[^\w.-]+", "-", Path(models[0].rstrip("/")).name.removesuffix(".gguf")).strip("-.")
    return Path(f"probe-{name or 'model'}")


def _other_models(folder: Path, names: Sequence[str]) -> list[str]:
    """The models whose page is in a folder, if one of them is not among these; a series that has grown has them all."""
    try:
        stored = json.loads((from_home(folder) / NUMBERS).read_text(encoding="utf-8"))
        models = [str(checkpoint["model"]) for checkpoint in stored["checkpoints"]]
    except (OSError, ValueError, TypeError, KeyError):
        return []
    return models if set(models) - set(names) else []


def _lines(result: Probe) -> list[str]:
    """The first numbers of every instrument for the last checkpoint that it has data of."""
    lines = []
    for number in range(len(result.checkpoints[-1].outcomes)):
        shown = result.latest(number)
        outcome = shown.outcomes[number]
        where = f" ({shown.label})" if shown is not result.checkpoints[-1] else ""
        lines.append(f"{outcome.instrument.title}{where}{': ' + outcome.skipped if outcome.skipped else ''}")
        for n in outcome.numbers()[:3]:
            interval = f" [{n.low:.3g}, {n.high:.3g}]" if math.isfinite(n.low) else ""
            expected = f"; {n.says}: {n.expected:.3g}" if n.expected is not None else ""
            value = f"{n.value:.3g}" if math.isfinite(n.value) else "–"
            lines.append(f"  {plain(n.name)}: {value}{interval}{plain(expected)}")
    return lines


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
