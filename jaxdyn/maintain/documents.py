"""The generated documents: catalogue, table of theories, table of studies, atlas, gallery, and their figures."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from jaxdyn.engine.registry import all_claims
from jaxdyn.engine.store import atomic_write
from jaxdyn.report import atlas, catalogue, gallery, studies

__all__ = ["renew", "stale"]

RESULT = "result.json"


def renew(root: Path, results: Path) -> Iterator[str]:
    """Write all documents anew, and say what was written.

    Args:
        root: of the checkout.
        results: the ``--out`` of a verification of all claims; without it the gallery stays as it is.

    Raises:
        UsageError: a page without its marks, or results without a figure that the documents show.
    """
    _write(root)
    yield "docs/catalogue.md, README.md, docs/studies.md and docs/atlas.md are renewed"
    if (results / RESULT).is_file():
        gallery.write(results, root / "docs")
        yield "docs/gallery.md is renewed"
    else:
        yield f"docs/gallery.md stays as it is: {results} holds no results (`jaxdyn verify --out {results}` makes them)"


def _write(root: Path) -> None:
    """The documents that follow from the package alone."""
    claims, docs = list(all_claims().values()), root / "docs"
    atomic_write(docs / "catalogue.md", catalogue.catalogue(claims))
    for page, text in ((root / "README.md", catalogue), (docs / "studies.md", studies)):
        atomic_write(page, text.with_table(page.read_text(encoding="utf-8"), claims))
    atlas.write(docs)


def stale(root: Path) -> list[str]:
    """Documents that differ from what :func:`renew` would write, without the gallery, which needs results.

    Args:
        root: of the checkout.
    """
    with tempfile.TemporaryDirectory() as scratch:
        fresh = Path(scratch)
        (fresh / "docs").mkdir()
        for page in ("README.md", "docs/studies.md"):
            shutil.copy(root / page, fresh / page)
        _write(fresh)
        files = sorted(p.relative_to(fresh) for p in fresh.rglob("*") if p.is_file())
        return [f.as_posix() for f in files if not (root / f).is_file() or (root / f).read_bytes() != (fresh / f).read_bytes()]
