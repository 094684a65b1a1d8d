"""What the maintainers' commands write: documents, the site, pictures, the atlas, tables of speed."""

import json
import re
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import markdown
import pytest

import jaxdyn as jd
from jaxdyn.engine.catalogue import library
from jaxdyn.errors import UsageError
from jaxdyn.maintain import __main__ as command
from jaxdyn.maintain import atlas, documents, executed, picture, renew, shipped, site, speeds
from jaxdyn.maintain.__main__ import main
from jaxdyn.maintain.site import on_page_content
from jaxdyn.report import page as report
from jaxdyn.report import studies
from jaxdyn.report.atlas import read_map
from jaxdyn.report.results import write_results
from tests.report.handmade import DRAWING, FIGURES, claim

# The generated documents are those of today's claims, studies and maps.


ROOT = Path(__file__).parents[2]
PAGES = ("docs/accelerators.md", "docs/atlas.md", "docs/studies.md", "README.md")


@pytest.fixture
def checkout(tmp_path):
    """The pages with marks, the experiments, which the README counts, and results in a table; the other pages are missing."""
    (tmp_path / "docs").mkdir()
    shutil.copytree(ROOT / "benchmarks" / "results", tmp_path / "benchmarks" / "results")
    shutil.copytree(ROOT / "experiments", tmp_path / "experiments")
    for page in (
        "README.md",
        "docs/studies.md",
        "docs/accelerators.md",
        "docs/transformer.md",
        "docs/referee.md",
        "docs/concepts.md",
    ):
        shutil.copy(ROOT / page, tmp_path / page)
    return tmp_path


@pytest.mark.slow
def test_what_is_stale_is_named_and_renewed(checkout):
    studies = checkout / "docs" / "studies.md"
    studies.write_text(studies.read_text(encoding="utf-8").replace("| upheld |", "| refuted |"), encoding="utf-8")
    found = documents.stale(checkout)
    assert {"docs/atlas.md", "docs/studies.md"} <= set(found) and "docs/transformer.md" not in found
    assert any(name.startswith("docs/figures/map.") for name in found) and "docs/theories/li2.md" in found
    (checkout / "docs" / "theories").mkdir()
    (checkout / "docs" / "theories" / "gone.md").write_text("a theory that is no more", encoding="utf-8")
    assert "docs/theories/gone.md" in documents.stale(checkout)
    assert "talks, accelerators" in documents.renew(checkout)
    assert documents.stale(checkout) == []
    assert not (checkout / "docs" / "theories" / "gone.md").exists() and (checkout / "docs" / "theories" / "li2.md").is_file()
    assert all((checkout / page).read_text(encoding="utf-8") == (ROOT / page).read_text(encoding="utf-8") for page in PAGES)


# ``python -m jaxdyn.maintain``: its tasks, and the files that they write.


def test_help_lists_the_tasks_without_jax():
    code = "import sys\nfrom jaxdyn.maintain.__main__ import main\ntry: main(['--help'])\nfinally: assert 'jax' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    assert all(f"\n    {task} " in done.stdout for task in command.TASKS)


def test_wrong_use_is_one_sentence(tmp_path, capsys):
    assert command.main(["costs", str(tmp_path)]) == 2
    assert "holds no shards" in capsys.readouterr().err
    assert command.main(["studies", str(tmp_path)]) == 2
    assert "holds no results" in capsys.readouterr().err


def test_stale_documents_make_the_exit_code_1(monkeypatch, capsys, tmp_path):
    for stale, code, text in ((["docs/atlas.md"], 1, "docs/atlas.md is stale\n"), ([], 0, "no document is stale\n")):
        monkeypatch.setattr(documents, "stale", lambda root, stale=stale: stale)
        assert command.main(["docs", "--check", "--root", str(tmp_path)]) == code
        assert capsys.readouterr().out == text


@pytest.mark.parametrize(
    ("words", "module", "name", "result", "text"),
    [
        (["docs"], documents, "renew", "renewed", "renewed\n"),
        (["figures"], site, "draw_figures", 0, ""),
        (["run", "a.md"], executed, "write", None, "a.md is renewed\n"),
        (["shipped", "out"], shipped, "write_shipped", (3, 4), "3 claims and 4 programs written to out\n"),
        (["costs", "out"], shipped, "write_costs", 5, "5 programs written to costs.json\n"),
        (["studies", "a", "b"], studies, "write_studies", ["x.one"], "2 studies stored\n"),
        (["maps", "out", "law"], atlas, "make_maps", None, ""),
        (["renew", "--check", "-v"], renew, "check", ["1 of 2 studies are current"], "1 of 2 studies are current\n"),
        (["renew", "--minutes", "2", "--only", "maps"], renew, "renew", ["law: stored"], "law: stored\n"),
    ],
)
def test_each_task_calls_its_writer(monkeypatch, capsys, words, module, name, result, text):
    monkeypatch.setattr(module, name, lambda *_: result)
    assert command.main(words) == 0 and capsys.readouterr().out == text


def test_renewal_takes_minutes_or_checks(capsys):
    assert tuple(renew.KINDS) == command.KINDS
    for words in (["renew"], ["renew", "--check", "--minutes", "2"], ["renew", "--minutes", "0"], ["renew", "--minutes", "soon"]):
        with pytest.raises(SystemExit):
            command.main(words)
        assert "--minutes" in capsys.readouterr().err


# The maps of the atlas are made by name and stored.


@pytest.mark.parametrize("workers", [1, pytest.param(None, marks=pytest.mark.slow)])
def test_the_atlas_is_made_by_name_and_stored(tmp_path, monkeypatch, workers):
    """In this process, and with the workers that the atlas is made with, which take seconds to start."""
    law = jd.AtlasMap("law", "A law", "cal.uv_eos", ("u=1:3", "v=.1:.3"), "It holds.", 9, 1)
    monkeypatch.setattr(library, "maps", lambda prefix=None: (law,))
    monkeypatch.setattr(library, "recorded_folder", lambda prefix, kind: tmp_path / prefix / kind)
    atlas.make_maps(tmp_path / "out", ["law"], workers)
    assert len(read_map(law)["map"]["cells"]) == 9 and (tmp_path / "cal" / "maps" / "law.json").is_file()
    assert not atlas.changes(law, read_map(law))
    with pytest.raises(UsageError, match="lore is not in the atlas; it has law"):
        atlas.make_maps(tmp_path / "out", ["lore"])


# Formulas of the site are MathML.


PAGE = r"""Inline $a_i < b$ and `$code$`.

$$
\sum_i a_i \quad (1)
$$
"""


def test_formulas_as_markdown_marks_them_become_mathml():
    html = markdown.markdown(PAGE, extensions=["pymdownx.arithmatex"], extension_configs={"pymdownx.arithmatex": {"generic": True}})
    assert html.count("arithmatex") == 2
    page = on_page_content(html, page=None, config=None, files=None)
    assert page.count("<math") == 2 and page.count('display="block"') == 1 and "arithmatex" not in page
    assert "<code>$code$</code>" in page and "&lt;" in page


def test_a_page_without_formulas_is_left_alone():
    assert on_page_content("<p>costs $3 or \\(x\\)</p>") == "<p>costs $3 or \\(x\\)</p>"


def test_what_cannot_be_typeset_stops_the_build():
    with pytest.raises(ValueError, match="cannot typeset"):
        on_page_content(r'<span class="arithmatex">\(\nosuchmacro{\)</span>')


# A picture of a report, taken by a browser.


def test_the_picture_has_its_size_and_more_than_one_colour(tmp_path, capsys):
    if not any(map(shutil.which, picture.BROWSERS)):
        pytest.skip("no Chromium on this machine")
    report.write(tmp_path / "index.html", {"claims": [claim("toy.law")], "environment": {}}, FIGURES)
    assert main(["picture", str(tmp_path), str(tmp_path / "own.png")]) == 0
    drawn = (tmp_path / "own.png").read_bytes()
    assert drawn[:8] == b"\x89PNG\r\n\x1a\n" and struct.unpack(">II", drawn[16:24]) == picture.SIZE
    assert len(drawn) > 20_000, "an empty page takes some 7,000 bytes"
    assert "own.png is renewed" in capsys.readouterr().out


def test_a_figure_of_a_report_is_a_drawing_by_itself(tmp_path, capsys):
    write_results(tmp_path, {"claims": [claim("toy.law")]}, {"toy.law": DRAWING})
    words = ["picture", str(tmp_path), str(tmp_path / "law.svg"), "--figure"]
    assert main([*words, "toy.law"]) == 0 and (tmp_path / "law.svg").read_text(encoding="utf-8").startswith("<svg xmlns")
    assert main([*words, "toy.lore"]) == 2 and "has no figure of toy.lore: verify it first" in capsys.readouterr().err


def test_what_is_missing_is_said(tmp_path, monkeypatch):
    with pytest.raises(UsageError, match="holds no report"):
        picture.write_picture(tmp_path, tmp_path / "own.png")
    (tmp_path / "index.html").write_text("<p>a page</p>", encoding="utf-8")
    monkeypatch.setattr(picture.shutil, "which", lambda name: None)
    with pytest.raises(UsageError, match="a picture needs chromium or"):
        picture.write_picture(tmp_path, tmp_path / "own.png")
    monkeypatch.setattr(picture.shutil, "which", lambda name: "/bin/false")
    with pytest.raises(UsageError, match="does not draw the report"):
        picture.write_picture(tmp_path, tmp_path / "own.png")
    assert not (tmp_path / "own.png").exists()


def test_the_picture_of_the_documents_is_made_by_a_command():
    said = subprocess.run(["make", "-n", "picture"], cwd=ROOT, capture_output=True, encoding="utf-8", check=True).stdout
    assert "build/picture docs/grokking.svg --figure li2.stage2_curves" in said, "README's figure is the first claim's"
    assert "maintain picture build/picture docs/report.png" in said and "make picture" in (ROOT / "docs" / "index.md").read_text(
        encoding="utf-8"
    )


# The page of benchmarks: every number is one of the stored tables, with its machine and day.


RESULTS = ROOT / "benchmarks" / "results"


def test_every_table_is_read_and_its_numbers_are_those_of_the_file():
    lines = speeds.page(ROOT).splitlines()
    for name, table in speeds.TABLES.items():
        stored = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
        shown = [line.split(" | ") for line in lines if line.startswith(f"| {table.what} | ")]
        rows = [stored] if table.ratio in stored else stored["rows"]
        known = [row[table.ratio] for row in rows if isinstance(row.get(table.ratio), float)]
        mine = [
            cells
            for cells in shown
            if cells[6].rstrip(" |") == stored["date"]
            and stored["machine"]["cpu"] == cells[5].replace("Intel Xeon", "Intel(R) Xeon(R)")
        ]
        assert mine, f"{name} has no row"
        for cells in mine:
            value = float(cells[3].replace(",", ""))
            assert any(abs(value / ratio - 1) < 0.06 for ratio in known), (name, cells)


def test_ways_that_are_ours_and_imports_are_left_out(tmp_path):
    (tmp_path / "benchmarks" / "results").mkdir(parents=True)
    names = {
        "jd.sweep, map": 1.1,
        "torch, run by run": 12.34,
        "torch, run by run, import included": 3.0,
        "torch, two processes": "",
    }
    rows = [{"contestant": name, "times ours": ratio} for name, ratio in names.items()]
    stored = {"rows": rows, "machine": {"cpu": "A(R) B"}, "date": "2026-01-01"}
    old = {"rows": [{"contestant": "torch", "times ours": 250.0}], "machine": {"cpu": "C"}}
    (tmp_path / "benchmarks" / "results" / "fig6_torch.json").write_text(
        json.dumps({**stored, "elsewhere": [old]}), encoding="utf-8"
    )
    found = speeds.speeds(tmp_path)
    assert [(one.over, one.ratio, one.processor, one.date) for one in found] == [
        ("torch, run by run", 12.34, "A B", "2026-01-01"),
        ("torch", 250.0, "C", "–"),
    ]
    assert re.findall(r"\| (12|250) \|", speeds.page(tmp_path)) == ["12", "250"]


def test_the_picture_is_that_of_the_documents():
    svg = speeds.figure(ROOT)
    assert svg.startswith("<svg") and svg.count("<use") > len(speeds.TABLES)
    assert (ROOT / "docs" / "figures" / speeds.FIGURE).read_text(encoding="utf-8") == svg, "run `make docs`"
