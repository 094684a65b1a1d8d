"""Figures as files for the documents."""

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
import xarray as xr

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.engine.catalogue import library
from jaxdyn.report import gallery
from jaxdyn.report.results import read_results, write_results

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture
def folder(tmp_path):
    ds = xr.Dataset({"predicted_x": ("seed", [1.0, 2.0]), "measured_x": ("seed", [1.1, 2.1]), "status": ("seed", [0, 0])})
    svg = plotting.render(None, ds, label="a < b")
    named = re.findall(r"\(figures/([^)]+)\.svg\)", (DOCS / "findings.md").read_text(encoding="utf-8"))
    names = [*library.shown(), *named]
    common = {"title": "A law", "statement": "It holds.", "caption": "Axes.", "made_from": {"code": "of the judge"}}
    claims = [common | {"id": n, "command": f"jaxdyn verify {n}"} for n in names]
    write_results(tmp_path, {"claims": claims}, dict.fromkeys(names, svg))
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "findings.md").write_text((DOCS / "findings.md").read_text(encoding="utf-8"), encoding="utf-8")
    return tmp_path


def test_files_are_drawings_by_themselves(folder):
    gallery.write(folder, folder / "docs")
    files = sorted((folder / "docs" / "figures").glob("*.svg"))
    assert {f.stem for f in files} >= set(library.shown())
    root = ET.fromstring(files[0].read_text(encoding="utf-8"))
    assert root.tag == "{http://www.w3.org/2000/svg}svg" and float(root.get("width")) > 100
    page = (folder / "docs" / "gallery.md").read_text(encoding="utf-8")
    assert all(f"`jaxdyn verify {name}`" in page for name in library.shown())
    origins = gallery.read_origins(folder / "docs")
    assert set(origins) == set(gallery.names(folder / "docs")) == {file.stem for file in files}
    gallery.write_figures(folder / "docs", {}, {files[0].stem: None})
    assert gallery.read_origins(folder / "docs") == origins | {files[0].stem: None}, "those of the others are kept"
    (folder / "docs" / "figures" / "made_from.json").write_text("[1", encoding="utf-8")
    assert gallery.read_origins(folder / "docs") == {}


def test_a_figure_that_is_missing_is_named(folder):
    write_results(folder, read_results(folder)[0], {})
    with pytest.raises(jd.UsageError, match=f"has no figure of {library.shown()[0]}"):
        gallery.write(folder, folder / "docs")


def test_what_is_no_drawing_is_refused():
    with pytest.raises(jd.UsageError, match="could not be drawn"):
        gallery.standalone("<p>The figure could not be drawn</p>")


def test_the_documents_have_their_figures():
    for page in ("findings.md", "gallery.md"):
        for target in re.findall(r"!\[[^]]*\]\(([^)]+)\)", (DOCS / page).read_text(encoding="utf-8")):
            assert (DOCS / target).exists(), target
