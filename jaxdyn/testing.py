"""Helpers for your own tests: a claim, a trial's contract, settings. ``pytest --jaxdyn 'theory.*'`` is :mod:`jaxdyn_pytest`.

JAX, chex and hypothesis are imported only when they are needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import pytest

from jaxdyn.errors import UsageError, missing, number

if TYPE_CHECKING:
    from jaxdyn.engine.claims.claim import Claim

__all__ = ["assert_claim", "assert_trial", "settings"]

WIDEST = 10.0  # an open range is drawn from up to this many times the default


def assert_claim(claim: str | Claim, **options: Any) -> None:
    """Verify a claim inside a test: ``assert_claim("theory.claim", seeds=4)``.

    Args:
        claim: an id, or a ``Claim``.
        options: as for ``jd.verify``: ``scale``, ``seeds``, ``out``, ``load``, fields of the setting.

    Raises:
        AssertionError: the verdict is not the expected one; the message shows every check and control, or where an error occurred.
    """
    from jaxdyn.engine.verification.verify import verify

    outcome = verify(claim, **options)
    if outcome.skipped:
        pytest.skip(str(outcome.message))
    if not outcome.as_expected:  # no statement assert: python -O leaves those out
        raise AssertionError(repr(outcome))


def assert_trial(
    trial: Callable[..., Any],
    setting: Any,
    *,
    run: bool = True,
    eager: bool = False,
    seeds: Iterable[int] = (0, 1),
    others: Iterable[Any] = (),
    noise: Iterable[str] = (),
    wide: bool = False,
    rtol: float | None = None,
) -> None:
    """Test that a trial keeps its contract: ``assert_trial(trial, MySetting())``.

    Checked without running it: the trial returns ``jd.observables``, whose arrays have named axes; no float64 array arises if the
    setting's dtype is narrower; fields with which the trial only counts are declared whole numbers; random numbers depend on the
    key and not on swept fields. With ``run`` also: the same key gives the same bits, a batch of seeds equals a loop over them, and
    settings that differ only in swept fields share one trace.

    Args:
        trial: ``(setting, key) -> jd.observables(...)``.
        setting: the setting of one run; small ones keep the test fast.
        run: whether to compile and run the trial.
        eager: whether to run it without jit as well, operation by operation.
        seeds: number of seeds in the batch, or the seeds themselves.
        others: settings with the same static fields, which must not be traced again; drawn by :func:`settings`.
        noise: swept fields on which random numbers may depend.
        wide: whether float64 arrays are intended although the setting's dtype is narrower.
        rtol: allowed difference between the ways to run it, relative to an array's largest entry; None: 1e-7 in
            float64, 1e-2 in float32. A difference of 64 rounding errors of 1 is always allowed: a residual is zero up to rounding.

    Raises:
        AssertionError: a part of the contract is broken; the message is one sentence.
        UsageError: an argument is not allowed, or the trial is to be run and chex is not installed.
    """
    import jax

    from jaxdyn.engine.base.devices import check_options
    from jaxdyn.engine.programs import purity
    from jaxdyn.engine.runs.sweep import chosen_seeds

    check_options()
    others, noise = purity.check_request(trial, setting, others, noise)
    seeds = chosen_seeds(seeds)
    if rtol is not None:
        rtol = number("rtol", rtol, least=0)
    if run:
        _library("chex")
    with jax.enable_x64(True), jax.default_matmul_precision("highest"):
        purity.check_program(trial, setting, noise, wide)
        if run:
            compiled = purity.once(trial)
            purity.check_bits(compiled, setting, seeds[0])
            purity.check_loops(trial, compiled, setting, seeds, rtol, eager)
            purity.check_traces(compiled, others)


def settings(cls: type[Any], **fixed: Any) -> Any:
    """A hypothesis strategy for settings: draws swept fields from the ranges that ``jd.field`` declares, switches from their names.

    A range without an upper bound ends at ten times the default (at least at 10), one without a lower bound at minus that number.
    Fields without a range, and all static ones, keep their defaults: each combination of static fields is another program. Settings
    that ``__post_init__`` refuses are not drawn.

    Args:
        cls: a class made by ``jd.setting``.
        **fixed: values of further fields, or strategies for them.

    Raises:
        UsageError: an unknown field, a value that is not allowed, or hypothesis is not installed.
    """
    import dataclasses

    from jaxdyn.engine.claims.fields import coerce

    st = _library("hypothesis.strategies")
    if not isinstance(cls, type) or not hasattr(cls, "swept_fields"):
        raise UsageError(f"{cls!r:.60} is not allowed: it is a class made by jd.setting")
    fields = {field.name: field for field in dataclasses.fields(cls)}
    if unknown := sorted(set(fixed) - set(fields)):
        raise UsageError(f"{unknown[0]} is not allowed: fields of {cls.__name__} are {', '.join(fields)}")
    drawn: dict[str, Any] = {}
    for name in cls.swept_fields:
        if names := cls.code_names.get(name):
            drawn[name] = st.sampled_from(list(names))
        elif "range" in fields[name].metadata:
            drawn[name] = _floats(st, fields[name])
    drawn |= {n: v if isinstance(v, st.SearchStrategy) else st.just(coerce(cls, n, v)) for n, v in fixed.items()}

    def allowed_or_none(**values: Any) -> Any:
        try:
            return cls(**values)
        except ValueError:
            return None

    return st.builds(allowed_or_none, **drawn).filter(lambda one: one is not None)


def _floats(st: Any, field: Any) -> Any:
    """A strategy for numbers in a field's range, rounded to float32, so that every precision can represent them."""
    import math

    import numpy as np

    allowed = field.metadata["range"]
    bounds = allowed.as_dict()
    default = field.default if isinstance(field.default, int | float) else 1.0
    reach = WIDEST * max(1.0, abs(default))
    low, high = bounds.get("above", bounds.get("at_least")), bounds.get("below", bounds.get("at_most"))
    low, high = -reach if low is None else float(low), reach if high is None else float(high)
    first, last = np.float32(low), np.float32(high)
    if "above" in bounds or first < low:
        first = np.nextafter(np.maximum(first, np.float32(low)), np.float32(math.inf))
    if "below" in bounds or last > high:
        last = np.nextafter(np.minimum(last, np.float32(high)), np.float32(-math.inf))
    if allowed.whole:
        return st.integers(math.ceil(first), math.floor(last)).map(float)
    return st.floats(float(first), float(last), width=32, allow_subnormal=False)


def _library(name: str) -> Any:
    """A library that only tests use, imported on first use."""
    import importlib

    try:
        return importlib.import_module(name)
    except ImportError:
        raise missing("jaxdyn.testing", name.partition(".")[0], "testing") from None
