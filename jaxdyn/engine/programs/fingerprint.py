"""The fingerprint of a program: a hash of its text as it is handed to the compiler, so that what ran is what is stored.

The text is the StableHLO of one run, for the platform that runs it, without locations, with the constants in it. Names of private
functions are replaced by numbers in order of first appearance: they come from names in the Python source, and JAX numbers them as
it pleases (jax-ml/jax#38828). What the text cannot tell is hashed next to it: the names of what goes in and of what comes out.

A program that calls back into Python has no fingerprint: what the text holds is an address, and what Python does is not in it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from typing import Any

import numpy as np

from jaxdyn.engine.claims.observables import GROUPS, Observables

__all__ = ["PLATFORMS", "UNKEPT", "calls_back", "fingerprint", "plain_text"]

PLATFORMS = {"gpu": "cuda"}  # what lowering calls the platforms that JAX names otherwise
UNKEPT = "unkept-"  # in place of the fingerprint of a program that calls back into Python
DEFINED = re.compile(r'func\.func (?:public |private )?@("[^"]*"|[\w.$-]+)')
SYMBOL = re.compile(r'@("[^"]*"|[\w.$-]+)')
# Python callbacks, and custom partitioning, whose text holds an address (jax-ml/jax#21159)
OPAQUE = re.compile(r"custom_call @\S*(?:callback|CustomSPMDPartitioning)")


def plain_text(text: str) -> str:
    """A program's text with its own functions numbered in order of first appearance, and without the name of the module."""
    own = set(DEFINED.findall(text))
    numbers: dict[str, str] = {}

    def numbered(match: re.Match[str]) -> str:
        name = match[1]
        return f"@{numbers.setdefault(name, str(len(numbers)))}" if name in own else match[0]

    head, brace, body = text.partition("{")
    return SYMBOL.sub(numbered, re.sub(r"module @\S+", "module", head) + brace + body)


def calls_back(text: str) -> bool:
    """Whether a program's text leads to code that is not in it."""
    return OPAQUE.search(text) is not None


def fingerprint(text: str, constants: Iterable[Any], swept: Any, results: Observables) -> str:
    """Twenty hexadecimal digits.

    Args:
        text: of the lowered program.
        constants: arrays of the program that its text may not hold: some versions of JAX pass them as arguments.
        swept: what the values of its swept fields are called, in the order in which they are stored.
        results: the shapes of what it returns.
    """
    digest = hashlib.sha256(plain_text(text).encode())
    for constant in constants:
        array = np.asarray(constant)
        digest.update(repr((array.dtype.str, array.shape)).encode() + array.tobytes())
    named = [[(name, item.dims) for name, item in getattr(results, group).items()] for group in GROUPS]
    digest.update(repr((swept, named, results.coords)).encode())
    return digest.hexdigest()[:20]
