"""Programs that a platform's compiler does not compile, or does not survive: there their claims are skipped before it is asked.

Found by compiling every program ahead of time; ``python -m jaxdyn.maintain ahead`` writes the file that is shipped.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from pathlib import Path

from jaxdyn.engine.chunk import Program
from jaxdyn.engine.store import atomic_write
from jaxdyn.engine.timings import program_name

__all__ = ["SHIPPED", "in_words", "known", "obstacle", "write"]

SHIPPED = Path(__file__).with_name("impossible.json")
REASONS = {  # what a compiler says, and what it means
    "X{64|128}": "needs an operation in 64 bits that this platform has in 32 alone",
    "c128": "needs complex128, which this platform has not",
    "ended its process": "ends the compiler itself",
}


@functools.cache
def known() -> dict[str, dict[str, str]]:
    """By platform and program: why not; nothing where the file is not ours."""
    try:
        return {platform: dict(programs) for platform, programs in json.loads(SHIPPED.read_text()).items()}
    except (OSError, ValueError, AttributeError, TypeError):
        return {}


def obstacle(program: Program, platform: str) -> str | None:
    """Why a program is not compiled for a platform, to follow its name in a sentence; None where nothing is known against it."""
    return known().get(platform, {}).get(program_name(program))


def in_words(said: str) -> str:
    """What a compiler said, to follow the name of a program."""
    return next((words for sign, words in REASONS.items() if sign in said), f"does not compile there ({said})")


def write(platform: str, failed: Mapping[str, str]) -> None:
    """Replace what is known of a platform: names of programs (:func:`jaxdyn.engine.timings.program_name`) and what was said."""
    known.cache_clear()
    whole = known() | {platform: {name: in_words(said) for name, said in sorted(failed.items())}}
    atomic_write(SHIPPED, json.dumps(dict(sorted(whole.items())), indent=1) + "\n")
    known.cache_clear()
