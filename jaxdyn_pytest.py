"""Claims as tests: the pytest plugin behind ``pytest --jaxdyn 'theory.*'``.

It lies outside the package, which it imports where claims are asked for and no sooner: so hooks on the package's import, such as
jaxtyping's in ``tests/conftest.py``, come first, and a project that has jaxdyn installed pays nothing for it.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from jaxdyn.engine.claims.claim import Claim


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
    from jaxdyn.errors import UsageError

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
