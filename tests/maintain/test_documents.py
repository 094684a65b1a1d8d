"""The generated documents are those of today's claims, studies and maps."""

import shutil
from pathlib import Path

import pytest

from jaxdyn.maintain import documents
from jaxdyn.report import gallery

ROOT = Path(__file__).parents[2]
PAGES = ("docs/accelerators.md", "docs/atlas.md", "docs/catalogue.md", "docs/studies.md", "README.md")


@pytest.fixture
def checkout(tmp_path):
    """The pages with marks, the experiments, which the README counts, and results in a table; the other pages are missing."""
    (tmp_path / "docs").mkdir()
    shutil.copytree(ROOT / "benchmarks" / "results", tmp_path / "benchmarks" / "results")
    shutil.copytree(ROOT / "experiments", tmp_path / "experiments")
    for page in ("README.md", "docs/studies.md", "docs/accelerators.md", "docs/transformer.md", "docs/referee.md"):
        shutil.copy(ROOT / page, tmp_path / page)
    return tmp_path


def test_no_document_is_stale():
    assert documents.stale(ROOT) == [], "run `make docs`"


@pytest.mark.slow
def test_what_is_stale_is_named_and_renewed(checkout):
    studies = checkout / "docs" / "studies.md"
    studies.write_text(studies.read_text(encoding="utf-8").replace("| upheld |", "| refuted |"), encoding="utf-8")
    stale = documents.stale(checkout)
    assert {"docs/atlas.md", "docs/catalogue.md", "docs/studies.md"} <= set(stale) and "README.md" not in stale
    assert any(name.startswith("docs/figures/map.") for name in stale) and "docs/theories/li2.md" in stale
    (checkout / "docs" / "theories").mkdir()
    (checkout / "docs" / "theories" / "gone.md").write_text("a theory that is no more", encoding="utf-8")
    assert "docs/theories/gone.md" in documents.stale(checkout)
    done = list(documents.renew(checkout, checkout / "report"))
    assert documents.stale(checkout) == []
    assert not (checkout / "docs" / "theories" / "gone.md").exists() and (checkout / "docs" / "theories" / "li2.md").is_file()
    assert "docs/gallery.md stays as it is" in done[-1] and not (checkout / "docs" / "gallery.md").exists()
    assert all((checkout / page).read_text(encoding="utf-8") == (ROOT / page).read_text(encoding="utf-8") for page in PAGES)


@pytest.mark.slow
def test_the_gallery_is_renewed_from_results(checkout, monkeypatch):
    calls = []
    monkeypatch.setattr(gallery, "write", lambda *folders: calls.append(folders))
    (checkout / "report").mkdir()
    (checkout / "report" / "result.json").write_text("{}", encoding="utf-8")
    assert list(documents.renew(checkout, checkout / "report"))[-1] == "docs/gallery.md is renewed"
    assert calls == [(checkout / "report", checkout / "docs")]
