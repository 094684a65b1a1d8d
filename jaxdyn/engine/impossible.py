"""Programs that a platform's compiler does not compile, or does not survive: there their claims are skipped before it is asked.

They are told by their operations (:func:`lacking`) and, where that is not enough, by what was found when every program was compiled
ahead of time: ``python -m jaxdyn.maintain ahead`` writes the file that is shipped.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from jaxdyn.engine.chunk import Program
from jaxdyn.engine.store import atomic_write
from jaxdyn.engine.timings import program_name

__all__ = ["LACKS", "SHIPPED", "compiler_version", "in_words", "known", "lacking", "obstacle", "write"]

SHIPPED = Path(__file__).with_name("impossible.json")
COMPLEX, END = "complex128", "which this platform lacks"
NEVER = (2**31,)
LACKS: dict[str, dict[tuple[str, ...], tuple[str, tuple[int, ...]]]] = {
    # by platform: operations and dtypes that it lacks, in words, and the version of its compiler that was found to have them
    # (each was compiled by itself, with libtpu 0.0.42.1, 0.0.50.1 and 0.0.52)
    "tpu": {
        ("lu", "float64"): ("LU factorisations in float64", (0, 0, 50, 1)),
        ("nextafter", "float64"): ("neighbours of float64 numbers", (0, 0, 52)),
        ("reduce_precision", "float64"): ("rounding of float64 to fewer bits", NEVER),
        ("svd", "float32"): ("singular values in float32 next to float64", NEVER),
        ("fft", COMPLEX): ("Fourier transforms in complex128", NEVER),
        (COMPLEX,): (COMPLEX, (0, 0, 50, 1)),
    },
}
REASONS = {  # what a compiler says, and what it means
    "X{64|128}": "needs an operation in 64 bits that this platform has in 32 bits only",
    "c128": "needs complex128, which this platform lacks",
    "ended its process": "ends the compiler itself",
}


@functools.cache
def known() -> dict[str, dict[str, str]]:
    """By platform and program: why not; nothing where the file is not ours."""
    try:
        return {platform: dict(programs) for platform, programs in json.loads(SHIPPED.read_text()).items()}
    except (OSError, ValueError, AttributeError, TypeError):
        return {}


@functools.cache
def compiler_version() -> tuple[int, ...]:
    """The version of a TPU's compiler, as numbers; empty where there is none."""
    try:
        return tuple(int(part) for part in version("libtpu").split(".") if part.isdecimal())
    except PackageNotFoundError:
        return ()


def lacking(jaxprs: Iterable[Any], platform: str) -> str | None:
    """What a traced program uses and a platform lacks, to follow the program's name in a sentence.

    Args:
        jaxprs: of the program, at any depth.
        platform: ``cpu``, ``gpu`` or ``tpu``.
    """
    if not (lacks := LACKS.get(platform)):
        return None
    used: set[tuple[str, ...]] = set()
    for eqn in (eqn for jaxpr in jaxprs for eqn in jaxpr.eqns):
        dtypes = {str(np.dtype(v.aval.dtype)) for v in (*eqn.invars, *eqn.outvars) if _is_number(v)}
        used |= {(eqn.primitive.name, dtype) for dtype in dtypes} | {(dtype,) for dtype in dtypes}
    there = compiler_version()
    found = [words for sign, (words, since) in lacks.items() if sign in used and there < since]
    if COMPLEX in found:  # which says it all
        found = [words for words in found if words == COMPLEX or COMPLEX not in words]
    return f"needs {' and '.join(found)}, {END}" if found else None


def _is_number(variable: Any) -> bool:
    """Whether a variable is an array of numbers, not of random keys."""
    try:
        return bool(np.issubdtype(variable.aval.dtype, np.number))
    except (AttributeError, TypeError):
        return False


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
