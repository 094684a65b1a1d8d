"""A new theory touches its own folder alone: an installed one appears in all lists, reports and documents."""

import importlib
import sys

import pytest

from jaxdyn import theories
from jaxdyn.cli.main import main
from jaxdyn.engine.catalogue import library, registry
from jaxdyn.maintain import documents, site
from jaxdyn.report import atlas
from tests.engine.conftest import TOYS

PAGE = """
import jaxdyn as jd

THEORY = jd.Theory(
    title="Fresh decay",
    about="Descent on a parabola decays by a fixed factor per step.",
    papers=(jd.Paper("0000.00001", "On decay", "A. Author", "2026"),),
    topics={"Descent": ("descent.toys",)},
    shown=("freshly.decay",),
)
"""
MAPS = """
import jaxdyn as jd

MAPS = (jd.AtlasMap("freshly-rates", "Decay by rate", "freshly.decay", ("rate=.5:2", "lr=.01:.02"), "It holds everywhere.", 4, 1),)
"""
MARKED = "above\n<!-- table: generated -->\n<!-- end of table -->\nbelow\n"


@pytest.fixture
def freshly(tmp_path, monkeypatch):
    """An installed distribution with one theory, named by an entry point; the package's own theories are out of sight."""
    site = tmp_path / "site"
    folder, info = site / "freshly", site / "freshly-1.0.dist-info"
    (folder / "descent").mkdir(parents=True)
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: freshly\nVersion: 1.0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text("[jaxdyn.claims]\nfreshly = freshly\n", encoding="utf-8")
    (folder / "__init__.py").write_text(PAGE, encoding="utf-8")
    (folder / "maps.py").write_text(MAPS, encoding="utf-8")
    text = TOYS.read_text(encoding="utf-8").replace('"toy.', '"freshly.').replace('"solver.decay"', '"freshly.solved"')
    (folder / "descent" / "toys.py").write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.setattr(theories, "__path__", [])
    monkeypatch.setenv("JAXDYN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("EQX_ON_ERROR", "nan")
    monkeypatch.chdir(tmp_path)
    importlib.invalidate_caches()
    yield folder
    for name in [name for name in sys.modules if name.split(".")[0] == "freshly"]:
        del sys.modules[name]


def store_map() -> None:
    """Judge nothing, but store the map that the theory asks for."""
    axes = [{"field": "rate", "low": 0.5, "high": 2.0, "log": False}, {"field": "lr", "low": 0.01, "high": 0.02, "log": False}]
    cells = [
        {"at": {"rate": rate, "lr": lr}, "verdict": "upheld", "inside": True, "assumed": {}, "checks": []}
        for rate in (0.5, 2.0)
        for lr in (0.01, 0.02)
    ]
    result = {"claim": "freshly.decay", "over": axes, "cells": cells, "edges": [], "border": None, "assumes": []}
    (stored,) = library.maps()
    atlas.write_map(stored, result | {"runs": 4, "programs": 1, "seconds": 1.0, "cpu_seconds": 1.0, "resumed": False})


@pytest.mark.slow
def test_an_installed_theory_appears_everywhere(freshly, tmp_path, capsys):
    store_map()
    assert [file.name for file in freshly.glob("recorded/maps/*")] == ["freshly-rates.json"]

    assert main(["list", "freshly"]) == 0
    listed = capsys.readouterr().out
    assert listed.startswith("freshly: Fresh decay (arXiv 0000.00001)\n") and str(freshly / "descent" / "toys.py") in listed
    assert main(["show", "freshly.decay"]) == 0
    assert "in the atlas: Decay by rate" in capsys.readouterr().out

    assert main(["verify", "freshly.decay", "--workers", "1", "--out", "report"]) == 0
    report = (tmp_path / "report" / "index.html").read_text(encoding="utf-8")
    for text in ("Fresh decay", "decays by a fixed factor", "On decay", 'id="map-freshly-rates"', 'data-figure="'):
        assert text in report, text

    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "findings.md").write_text("", encoding="utf-8")
    for page in (tmp_path / "README.md", docs / "studies.md"):
        page.write_text(MARKED, encoding="utf-8")
    documents.renew(tmp_path)
    (tmp_path / "build").mkdir()
    (tmp_path / "report").rename(tmp_path / site.RESULTS)
    made = site.generated(tmp_path)
    assert "| `freshly` Fresh decay | [0000.00001](https://arxiv.org/abs/0000.00001) |" in (tmp_path / "README.md").read_text(
        encoding="utf-8"
    )
    catalogue = made["catalogue.md"]
    assert (
        "**Fresh decay**" in catalogue
        and "### Descent\n" in catalogue
        and "- [On decay](https://arxiv.org/abs/0000.00001), A. Author, 2026" in catalogue
    )
    assert (
        "## Decay by rate" in (docs / "atlas.md").read_text(encoding="utf-8")
        and (docs / "figures" / "map.freshly-rates.svg").is_file()
    )
    assert "\n`freshly.decay`: " in made["gallery.md"] and made["figures/freshly.decay.svg"].startswith("<svg")
    assert "`freshly.decay`" in (docs / "studies.md").read_text(encoding="utf-8")


def test_topics_of_an_installed_theory_are_in_the_catalogue(freshly):
    assert {(e["theory_title"], e["topic"]) for e in registry.catalogue()} == {("Fresh decay", "descent.toys")}
