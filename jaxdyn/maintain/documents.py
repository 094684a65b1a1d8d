"""The generated documents of the checkout: README's table, theories, talks, studies, atlas, benchmarks, and their figures."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from jaxdyn.engine.catalogue import library, registry
from jaxdyn.engine.catalogue.registry import all_claims
from jaxdyn.engine.programs.chunk import program_name
from jaxdyn.engine.runs.costs import shipped_costs
from jaxdyn.engine.storage.store import atomic_write
from jaxdyn.engine.verification.verify import make_tasks
from jaxdyn.maintain import ahead, speeds
from jaxdyn.maintain import atlas as maps
from jaxdyn.report import atlas, catalogue, concepts, network, platforms, referee, studies, theories
from jaxdyn.report.gallery import standalone
from jaxdyn.report.talks.page import page as page_of_talks
from jaxdyn.report.talks.page import with_counts

__all__ = ["renew", "stale"]


def renew(root: Path) -> str:
    """Write all documents anew; says what was written.

    Args:
        root: the checkout.

    Raises:
        UsageError: a page lacks its marks.
    """
    _write(root, root)
    for file in _left(root):
        file.unlink()
    pages = "concepts, studies, talks, accelerators, atlas, benchmarks, transformer and theories"
    return f"README.md and, in docs, {pages} are renewed"


def _write(target: Path, root: Path) -> None:
    """Write the documents into a folder."""
    claims, docs = list(all_claims().values()), target / "docs"
    for page, text in ((target / "README.md", catalogue), (docs / "studies.md", studies)):
        atomic_write(page, text.with_table(page.read_text(encoding="utf-8"), claims))
    atomic_write(target / "README.md", with_counts((target / "README.md").read_text(encoding="utf-8"), claims, root))
    atomic_write(docs / "talks.md", page_of_talks(claims, root))
    atomic_write(docs / "referee.md", referee.with_table((docs / "referee.md").read_text(encoding="utf-8"), claims, root))
    accelerators = (docs / "accelerators.md").read_text(encoding="utf-8")
    atomic_write(docs / "accelerators.md", _with_programs(accelerators, root))
    atlas.write(docs, _changed_maps())
    page = docs / "concepts.md"
    atomic_write(page, concepts.with_words(page.read_text(encoding="utf-8")))
    page = docs / "transformer.md"
    atomic_write(page, network.with_table(page.read_text(encoding="utf-8")))
    atomic_write(docs / "figures" / network.FIGURE, standalone(network.figure()))
    atomic_write(docs / speeds.NAME, speeds.page(root))
    atomic_write(docs / "figures" / speeds.FIGURE, speeds.figure(root))
    for name, written in theories.pages(claims, root).items():
        atomic_write(docs / "theories" / f"{name}.md", written)


def _changed_maps() -> dict[str, str]:
    """What has changed since each map of the atlas was made, the first thing alone; empty where nothing has."""
    stored = {one.name: (one, content) for one in library.maps() if (content := atlas.read_map(one)) is not None}
    return {name: str(maps.changes(*pair, whole=False)) for name, pair in stored.items()}


def _with_programs(page: str, root: Path) -> str:
    """The page on accelerators with the table of today's programs."""
    # without ``task.requests``, which leaves out claims whose models or data this machine lacks
    requests = [r for task in make_tasks(registry.select([])) for r in (task.main, *task.controls.values())]
    programs = sorted({program_name(program) for request in requests for program, _ in request.cells})
    return platforms.with_programs(page, ahead.read(root / ahead.RESULTS), programs, shipped_costs()[1])


def _left(root: Path) -> list[Path]:
    """Pages of theories that no longer exist."""
    return [f for f in (root / "docs" / "theories").glob("*.md") if f.stem != "index" and not library.is_shipped(f.stem)]


def stale(root: Path) -> list[str]:
    """Documents that :func:`renew` would change.

    Args:
        root: the checkout.
    """
    with tempfile.TemporaryDirectory() as scratch:
        fresh = Path(scratch)
        (fresh / "docs").mkdir()
        names = ("accelerators", "concepts", "referee", "studies", "transformer")
        for page in ("README.md", *(f"docs/{name}.md" for name in names)):
            shutil.copy(root / page, fresh / page)
        _write(fresh, root)
        files = sorted(p.relative_to(fresh) for p in fresh.rglob("*") if p.is_file())
        differing = [f for f in files if not (root / f).is_file() or (root / f).read_bytes() != (fresh / f).read_bytes()]
        return [f.as_posix() for f in (*differing, *(left.relative_to(root) for left in _left(root)))]
