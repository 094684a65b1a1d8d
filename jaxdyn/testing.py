"""Claims as tests: a pytest plugin (``pytest --jaxdyn 'theory.*'``) and helpers for tests of one's own.

Nothing of JAX is imported until claims are asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from jaxdyn.errors import UsageError

if TYPE_CHECKING:
    from jaxdyn.engine.claim import Claim

__all__ = ["assert_claim"]


def assert_claim(claim: str | Claim, **options: Any) -> None:
    """Verify a claim, for a test of one's own: ``assert_claim("theory.claim", seeds=4)``.

    Args:
        claim: an id, or a ``Claim``.
        options: as for ``jd.verify``: ``scale``, ``seeds``, ``out``, ``load``, fields of the setting.

    Raises:
        AssertionError: the verdict is not the expected one; the message shows every check and control, and for an error its place.
    """
    from jaxdyn.engine.verify import verify

    outcome = verify(claim, **options)
    if outcome.skipped:
        pytest.skip(str(outcome.conclusion.decision.message))
    assert outcome.as_expected, repr(outcome)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--jaxdyn``, ``--jaxdyn-load`` and ``--jaxdyn-scale``."""
    group = parser.getgroup("jaxdyn", "claims of jaxdyn as tests")
    group.addoption("--jaxdyn", action="append", default=[], metavar="PATTERN", help="Run these claims as tests.")
    group.addoption(
        "--jaxdyn-load", action="append", default=[], metavar="FILE", help="Add the claims of a Python file of your own."
    )
    group.addoption("--jaxdyn-scale", default="quick", metavar="SCALE", help="Run at quick or paper scale (default: quick).")


class ClaimItem(pytest.Item):
    """One claim as a test."""

    def __init__(self, *, claim: Claim, scale: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.claim, self.scale = claim, scale

    def runtest(self) -> None:
        """Verify the claim."""
        from jaxdyn.engine.verify import verify

        outcome = verify(self.claim, scale=self.scale)
        if outcome.skipped:
            pytest.skip(str(outcome.conclusion.decision.message))
        if not outcome.as_expected:
            failure = outcome.conclusion.decision.failure
            full = failure is not None and self.config.getoption("tbstyle", "auto") == "long"
            raise AssertionError(f"{outcome!r}\n{failure.traceback}" if failure is not None and full else repr(outcome))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Show the checks, not the engine's traceback; with ``--tb=long`` also the traceback of the claim's own error."""
        return str(excinfo.value) if isinstance(excinfo.value, AssertionError) else super().repr_failure(excinfo)

    def reportinfo(self) -> tuple[Any, int, str]:
        """Where the test comes from, for reports."""
        return self.path, 0, f"claim {self.claim.id}"


def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    """Append the selected claims to the collected tests."""
    patterns = config.getoption("--jaxdyn")
    if not patterns:
        return
    from jaxdyn.engine.registry import select

    try:
        claims = select(patterns, config.getoption("--jaxdyn-load"))
    except UsageError as error:
        raise pytest.UsageError(str(error)) from error
    scale = config.getoption("--jaxdyn-scale")
    items += [ClaimItem.from_parent(session, name=claim.id, claim=claim, scale=scale) for claim in claims]
