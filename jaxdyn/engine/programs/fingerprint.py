"""The fingerprint of a program: a hash of the text that the compiler gets, so that results are stored under what was run.

The text is the StableHLO of one run, for the platform that runs it, without locations, with the constants in it. Names of private
functions are replaced by numbers in order of first appearance: they come from names in the Python source, and JAX numbers them as
it pleases (jax-ml/jax#38828). The names of swept fields and of observables, which the text does not contain, are hashed as well.

A program that calls back into Python, or into compiled code of a user's own (``jax.ffi``), has no fingerprint: its text holds a
name or an address, not the code behind it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from typing import Any

import numpy as np

from jaxdyn.engine.claims.observables import GROUPS, Observables

__all__ = ["PLATFORMS", "CALLS_BACK", "calls_back", "fingerprint", "plain_text"]

PLATFORMS = {"gpu": "cuda"}  # JAX's name of a platform -> its name in lowering, where they differ
CALLS_BACK = "calls-back-"  # in place of the fingerprint of a program that calls code which its text does not contain
DEFINED = re.compile(r'func\.func (?:public |private )?@("[^"]*"|[\w.$-]+)')
SYMBOL = re.compile(r'@("[^"]*"|[\w.$-]+)')
CUSTOM = re.compile(r'custom_call @("[^"]*"|[\w.$-]+)')
# Targets that come with JAX and XLA, and so with their versions, or whose code stands in the text. All others are opaque: Python
# callbacks, custom partitioning, whose text holds an address (jax-ml/jax#21159), and what users register.
OURS = re.compile(
    r"(?:lapack|cusolver|cusparse|cublas|cufft|hipsolver|hipsparse|hipblas)_\w+|(?:cu|hip)_(?:lu_pivots_to_permutation|threefry2x32)\w*"
    r"|tridiagonal_solve_perturbed\w*|(?:mhlo|chlo|stablehlo|xla\.sdy)\.\w+|__(?:cublas|cudnn|cusolver)\$\S+|__gpu\$xla\.gpu\.triton"
    r"|AllocateBuffer|ApproxTopK|TopK|PartialReduce|Eigh|LuDecomposition|ProductOfElementaryHouseholderReflectors|Qr|Sharding"
    r"|SPMDFullToShardShape|SPMDShardToFullShape|annotate_device_placement|shape_assertion|tpu_custom_call|mosaic_gpu\w*"
)


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
    """Whether a program calls code that its text does not contain."""
    return any(OURS.fullmatch(target.strip('"')) is None for target in CUSTOM.findall(text))


def fingerprint(text: str, constants: Iterable[Any], swept: Any, results: Observables) -> str:
    """The fingerprint of a program: twenty hexadecimal digits.

    Args:
        text: of the lowered program.
        constants: arrays of the program that its text may not hold: some versions of JAX pass them as arguments.
        swept: names of its swept fields and of their values, in the order in which they are stored.
        results: shapes and names of its observables.
    """
    digest = hashlib.sha256(plain_text(text).encode())
    for constant in constants:
        array = np.asarray(constant)
        digest.update(repr((array.dtype.str, array.shape)).encode() + array.tobytes())
    named = [[(name, item.dims) for name, item in getattr(results, group).items()] for group in GROUPS]
    digest.update(repr((swept, named, results.coords)).encode())
    return digest.hexdigest()[:20]
