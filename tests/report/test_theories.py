"""The pages of theories: every theory has one, with all of its claims, and every link leads somewhere."""

import re
from pathlib import Path

import pytest

import jaxdyn as jd
from jaxdyn.engine.catalogue import library
from jaxdyn.engine.catalogue.registry import all_claims
from jaxdyn.report import theories

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "theories"
NAMES = sorted(source.prefix for source in library.shipped() if source.prefix)


def test_every_theory_has_a_page_and_the_contents_link_to_it():
    assert sorted(file.stem for file in PAGES.glob("*.md") if file.stem != "index") == NAMES
    linked = re.findall(r"^\| \[`(\w+)`\]\(\1\.md\)", (PAGES / "index.md").read_text(encoding="utf-8"), re.M)
    assert linked == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_title_page_says_what_it_is_about_and_how_it_is_tested(name):
    """Two sentences or more of each, as text: no list, no command."""
    page = library.theory(name)
    for text in (page.about, page.setup):
        assert len(re.findall(r"[.?](?= |$)", text)) >= 2 and 100 < len(text) < 800 and "`jaxdyn" not in text


@pytest.mark.slow
def test_a_page_has_its_sections_and_all_claims():
    claims = list(all_claims(theories={"galore"}).values())
    text = theories.page("galore", claims, ROOT)
    heads = re.findall(r"^## (.*)", text, re.M)
    first, last = ["Networks and data", "Papers", "Equations", "Claims"], ["Figures", "Run it"]
    assert heads == [*first, "What does not hold as printed", "Open questions", "At paper scale", "Where it holds", *last]
    assert all(f"`{c.id}` | {c.counted} | {c.evidence} |" in text for c in claims)
    assert text.count("In print: ") == 3 and "Upheld on the same runs: [" in text
    assert r"\mathrm{vec}\, G_t" in text and "`theories/galore/dynamics.py`" in text
    assert "    - perplexity, T = 10 / T = 50: 1.001 [0.9878, 1.014]" in text
    assert "jaxdyn verify galore\n" in text and "`python experiments/galore_table1.py`: " in text


def test_a_study_that_differs_says_how(monkeypatch):
    claims = list(all_claims(theories={"gromov"}).values())
    failed = {"name": "share", "value": 0.5, "passed": False}
    entry = {"verdict": "refuted", "expected": "upheld", "checks": [failed], "message": None}
    monkeypatch.setattr(theories.studies, "read_study", lambda i: {"claim": entry} if i == claims[0].id else None)
    text = theories.page("gromov", claims, ROOT)
    assert f"1 of {len(claims)} claims run at their paper's scale ([studies](../studies.md)), 1 with another verdict" in text
    assert "refuted instead of upheld. share: 0.5." in text


def test_a_theory_without_figures_and_experiments_has_fewer_sections(tmp_path, monkeypatch):
    claims = list(all_claims(theories={"lyu"}).values())
    assert "## Figures\n\n`jaxdyn verify CLAIM` draws" in theories.page("lyu", claims, ROOT)
    monkeypatch.setattr(theories.gallery, "names", lambda docs: [])
    text = theories.page("lyu", claims, tmp_path)
    assert (
        "## Figures" not in text and "<!--" not in text and "![" not in text and "experiments/" not in text and "## Run it" in text
    )


def test_equations_come_from_docstrings():
    lines = theories.equations("lyu")
    assert len(lines) == 2 and r"w = 2\varepsilon^2\sinh(X^\top q)." in lines[0] and ":math:" not in "".join(lines)
    assert theories.equations("nowhere") == []


def test_links_lead_somewhere():
    """Figures and pages are there; a claim's link leads to the file that names it."""
    for file in PAGES.glob("*.md"):
        for target in re.findall(r"\]\((?!https:)([^)]+)\)", file.read_text(encoding="utf-8")):
            path, _, claim = target.partition(" ")
            assert (PAGES / path).is_file() and (not claim or f"id={claim}" in (PAGES / path).read_text(encoding="utf-8")), target


def test_claims_of_ones_own_get_no_page():
    claim = next(iter(all_claims(theories={"lyu"}).values()))
    own = jd.Claim(**{**vars(claim), "id": "mine.own"})
    assert sorted(theories.pages([claim, own], ROOT)) == ["index", "lyu"]
