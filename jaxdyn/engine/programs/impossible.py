"""Programs that a platform's compiler refuses, or that make it crash: their claims are skipped there without compiling.

They are recognised by their operations (:func:`lacking`), or else by a shipped list of failures, which ``python -m
jaxdyn.maintain ahead`` writes after compiling every program ahead of time.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from jaxdyn.engine.programs.chunk import Program, program_name
from jaxdyn.engine.storage.store import atomic_write

__all__ = ["LACKS", "SHIPPED", "compiler_version", "in_words", "known", "lacking", "why_impossible", "write"]

SHIPPED = Path(__file__).parents[1] / "impossible.json"
COMPLEX, END = "complex128", "which this platform lacks"
NEVER = (2**31,)
LACKS: dict[str, dict[tuple[str, ...], tuple[str, tuple[int, ...]]]] = {
    # platform -> operations and dtypes that it lacks -> their name in words, and the first compiler version that has them
    # (each was compiled separately, with libtpu 0.0.42.1, 0.0.50.1 and 0.0.52)
    "tpu": {
        ("lu", "float64"): ("LU factorisations in float64", (0, 0, 50, 1)),
        ("nextafter", "float64"): ("neighbours of float64 numbers", (0, 0, 52)),
        ("reduce_precision", "float64"): ("rounding of float64 to fewer bits", NEVER),
        ("svd", "float32"): ("singular values in float32 next to float64", NEVER),
        ("fft", COMPLEX): ("Fourier transforms in complex128", NEVER),
        (COMPLEX,): (COMPLEX, (0, 0, 50, 1)),
    },
}
REASONS = {  # part of a compiler's message -> its meaning
    "X{64|128}": "needs a 64-bit operation that this platform has only in 32 bits",
    "c128": "needs complex128, which this platform lacks",
    "ended its process": "makes the compiler crash",
}


@functools.cache
def known() -> dict[str, dict[str, str]]:
    """The shipped failures, platform -> program -> reason; empty if the file is missing or damaged."""
    try:
        return {platform: dict(programs) for platform, programs in json.loads(SHIPPED.read_text(encoding="utf-8")).items()}
    except (OSError, ValueError, AttributeError, TypeError):
        return {}


@functools.cache
def compiler_version() -> tuple[int, ...]:
    """The version of the TPU compiler, as numbers; empty if it is not installed."""
    try:
        return tuple(int(part) for part in version("libtpu").split(".") if part.isdecimal())
    except PackageNotFoundError:
        return ()


def lacking(jaxprs: Iterable[Any], platform: str) -> str | None:
    """The end of a sentence that names what a traced program needs and a platform lacks; None if it lacks nothing.

    Args:
        jaxprs: the program's jaxprs, at any depth.
        platform: ``cpu``, ``gpu`` or ``tpu``.
    """
    if not (lacks := LACKS.get(platform)):
        return None
    used: set[tuple[str, ...]] = set()
    for eqn in (eqn for jaxpr in jaxprs for eqn in jaxpr.eqns):
        dtypes = {str(np.dtype(v.aval.dtype)) for v in (*eqn.invars, *eqn.outvars) if _is_number(v)}
        used |= {(eqn.primitive.name, dtype) for dtype in dtypes} | {(dtype,) for dtype in dtypes}
    current = compiler_version()
    missing = [words for sign, (words, since) in lacks.items() if sign in used and current < since]
    if COMPLEX in missing:  # without the dtype, its operations need no mention
        missing = [words for words in missing if words == COMPLEX or COMPLEX not in words]
    return f"needs {' and '.join(missing)}, {END}" if missing else None


def _is_number(variable: Any) -> bool:
    """Whether a variable is an array of numbers, not of random keys."""
    try:
        return bool(np.issubdtype(variable.aval.dtype, np.number))
    except (AttributeError, TypeError):
        return False


def why_impossible(program: Program, platform: str) -> str | None:
    """Why a program is not compiled for a platform, as the end of a sentence; None if no failure is known."""
    return known().get(platform, {}).get(program_name(program))


def in_words(message: str) -> str:
    """A compiler's message in words, as the end of a sentence that begins with the program's name."""
    return next((words for sign, words in REASONS.items() if sign in message), f"does not compile there ({message})")


def write(platform: str, failed: Mapping[str, str]) -> None:
    """Replace a platform's failures: compilers' messages by program (:func:`jaxdyn.engine.programs.chunk.program_name`)."""
    known.cache_clear()
    whole = known() | {platform: {name: in_words(message) for name, message in sorted(failed.items())}}
    atomic_write(SHIPPED, json.dumps(dict(sorted(whole.items())), indent=1) + "\n")
    known.cache_clear()
