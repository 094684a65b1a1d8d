"""Claims as tests: a pytest plugin (``pytest --jaxdyn 'theory.*'``), and helpers for your own tests.

JAX, chex and hypothesis are imported only when they are needed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path
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
    setting's dtype is narrower; random numbers depend on the key and not on swept fields. With ``run`` also: the same key gives the
    same bits, a batch of seeds equals a loop over them, and settings that differ only in swept fields share one trace.

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

    bounds = field.metadata["range"].as_dict()
    default = field.default if isinstance(field.default, int | float) else 1.0
    reach = WIDEST * max(1.0, abs(default))
    low, high = bounds.get("above", bounds.get("at_least")), bounds.get("below", bounds.get("at_most"))
    low, high = -reach if low is None else float(low), reach if high is None else float(high)
    first, last = np.float32(low), np.float32(high)
    if "above" in bounds or first < low:
        first = np.nextafter(np.maximum(first, np.float32(low)), np.float32(math.inf))
    if "below" in bounds or last > high:
        last = np.nextafter(np.minimum(last, np.float32(high)), np.float32(-math.inf))
    return st.floats(float(first), float(last), width=32, allow_subnormal=False)


def _library(name: str) -> Any:
    """A library that only tests use, imported on first use."""
    import importlib

    try:
        return importlib.import_module(name)
    except ImportError:
        raise missing("jaxdyn.testing", name.partition(".")[0], "testing") from None


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--jaxdyn``, ``--jaxdyn-load`` and ``--jaxdyn-scale``."""
    group = parser.getgroup("jaxdyn", "claims of jaxdyn as tests")
    group.addoption("--jaxdyn", action="append", default=[], metavar="PATTERN", help="Run these claims as tests.")
    group.addoption(
        "--jaxdyn-load", action="append", default=[], metavar="FILE", help="Add the claims of a Python file of your own."
    )
    group.addoption("--jaxdyn-scale", metavar="SCALE", help="Run at quick or paper scale (default: quick).")


class ClaimItem(pytest.Item):
    """One claim as a test."""

    def __init__(self, *, claim: Claim, scale: str, file: Path, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.claim, self.scale, self.path = claim, scale, file

    def runtest(self) -> None:
        """Verify the claim."""
        from jaxdyn.engine.verification.verify import verify

        outcome = verify(self.claim, scale=self.scale)
        if outcome.skipped:
            pytest.skip(str(outcome.message))
        if not outcome.as_expected:
            failure = outcome.failure
            full = failure is not None and self.config.getoption("tbstyle", "auto") == "long"
            raise AssertionError(f"{outcome!r}\n{failure.traceback}" if failure is not None and full else repr(outcome))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Show the checks, not the engine's traceback; with ``--tb=long`` also the traceback of the claim's own error."""
        return str(excinfo.value) if isinstance(excinfo.value, AssertionError) else super().repr_failure(excinfo)

    def reportinfo(self) -> tuple[Any, int, str]:
        """Where the test comes from, for reports."""
        return self.path, 0, f"claim {self.claim.id}"


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Take the arguments that name a claim, ``FILE::theory.claim``, as this plugin prints them, for patterns and files to load."""
    config = session.config
    for argument in list(config.args):
        path, _, name = argument.partition("::")
        file = (config.invocation_params.dir / path).resolve()
        if re.fullmatch(r"[\w-]+\.[\w-]+", name) and file.is_file():
            config.args.remove(argument)
            config.option.jaxdyn.append(name)
            config.option.jaxdyn_load += _to_load(file)
    _refuse_options(config)


def _refuse_options(config: pytest.Config) -> None:
    """Refuse an unknown scale, and options of claims where no claim is selected."""
    scale = config.getoption("--jaxdyn-scale")
    if scale not in (None, "quick", "paper"):
        raise pytest.UsageError(f"--jaxdyn-scale {scale} is not allowed: it is quick or paper")
    for option in ("--jaxdyn-load", "--jaxdyn-scale"):
        if config.getoption(option) and not config.getoption("--jaxdyn"):
            raise pytest.UsageError(f"{option} is not allowed without --jaxdyn PATTERN, which selects the claims to run")


def _to_load(file: Path) -> list[str]:
    """The file, or the folder of a theory around it, that has to be loaded for its claims; none for those of a package."""
    from jaxdyn.engine.base.failure import PACKAGE, installed

    if file.is_relative_to(PACKAGE) or installed(file):
        return []
    pages = (folder / "__init__.py" for folder in file.parents)
    theory = next((page.parent for page in pages if page.is_file() and "THEORY" in page.read_text(encoding="utf-8")), file)
    return [str(theory)]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    """Append the selected claims to the collected tests, before ``-k`` and the like choose among all of them."""
    patterns = config.getoption("--jaxdyn")
    if not patterns:
        return
    from jaxdyn.engine.base.parsing import from_home
    from jaxdyn.engine.catalogue.registry import select

    try:
        places = [(config.invocation_params.dir / from_home(path)).resolve() for path in config.getoption("--jaxdyn-load")]
        claims = select(patterns, list(dict.fromkeys(places)))
    except UsageError as error:
        raise pytest.UsageError(str(error)) from error
    chosen = [_item(session, claim) for claim in claims]
    items += chosen
    report = pytest.CollectReport("jaxdyn", "passed", None, list[pytest.Item | pytest.Collector](chosen))
    config.hook.pytest_collectreport(report=report)  # so that pytest counts them


def _item(session: pytest.Session, claim: Claim) -> ClaimItem:
    """A claim as a test whose id names its file and the claim."""
    from jaxdyn.engine.base.failure import PACKAGE
    from jaxdyn.engine.catalogue.registry import home

    file = PACKAGE.parent / (home(claim) or "")
    nodeid = f"{Path(os.path.relpath(file, session.config.rootpath)).as_posix()}::{claim.id}"
    scale = session.config.getoption("--jaxdyn-scale") or "quick"
    item: ClaimItem = ClaimItem.from_parent(session, name=claim.id, nodeid=nodeid, claim=claim, scale=scale, file=file)
    return item
