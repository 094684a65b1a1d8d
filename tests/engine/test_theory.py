"""Title pages of theories: complete, unique, and read without JAX."""

import subprocess
import sys
from pathlib import Path

import pytest

import jaxdyn as jd
from jaxdyn.engine import registry

THEORIES = sorted(path.parent.name for path in (registry.THEORIES).glob("*/__init__.py"))


def page(name):
    return registry.theory(name)


@pytest.mark.parametrize("name", THEORIES)
def test_a_title_page_says_what_the_theory_is_about(name):
    about = page(name)
    assert about.title and len(about.about) > 60 and about.about.endswith(".") and about.topic_names and about.shown
    assert all(i.startswith(f"{name}.") and i in registry.all_claims(theories={name}) for i in about.shown)
    assert registry.papers(name) and all(p.title and p.authors and p.url.endswith(p.arxiv) for p in registry.papers(name))


def test_every_paper_is_declared_once():
    numbers = [p.arxiv for name in THEORIES for p in page(name).papers if isinstance(p, jd.Paper)]
    assert len(numbers) == len(set(numbers)) > 40


@pytest.mark.parametrize("name", THEORIES)
def test_every_file_with_claims_is_a_topic(name):
    """And every topic stands in the folder: a topic left out of the title page would be verified by nobody."""
    folder = registry.THEORIES / name
    with_claims = {
        path.relative_to(folder).with_suffix("").as_posix().replace("/", ".").removesuffix(".claims")
        for path in folder.rglob("*.py")
        if "\nCLAIMS" in path.read_text()
    }
    assert with_claims == set(page(name).topic_names)


def test_title_pages_are_read_without_jax():
    code = (
        "import sys\nfrom jaxdyn.engine import registry\nassert registry.shown()\n"
        "heavy = {'jax', 'numpy', 'xarray'} & set(sys.modules)\nassert not heavy, heavy\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_topic_listed_twice_is_refused():
    with pytest.raises(jd.UsageError, match="topics='b' is not allowed: A theory lists it twice"):
        jd.Theory(title="A theory", topics={"One": ("a", "b"), "Two": ("b",)})


def test_claims_without_a_title_page_have_their_prefix_for_a_title():
    assert registry.theory("unheard").title == "unheard" and registry.papers("unheard") == ()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A place for theories besides those of the package."""
    from jaxdyn import theories

    monkeypatch.setattr(theories, "__path__", [str(tmp_path)])
    monkeypatch.setattr(registry, "_pages", {})
    (tmp_path / "fresh").mkdir()
    yield tmp_path / "fresh"
    for name in [n for n in sys.modules if n.startswith("jaxdyn.theories.fresh")]:
        del sys.modules[name]
    vars(theories).pop("fresh", None)


def write(folder: Path, fields: str) -> None:
    (folder / "__init__.py").write_text(f"import jaxdyn as jd\n\nTHEORY = jd.Theory(title='Fresh', {fields})\n")


def test_a_topic_that_is_not_there_is_named(folder):
    write(folder, "topics=('gone',)")
    with pytest.raises(jd.UsageError, match="topic 'gone' is not allowed: fresh has no module of that name"):
        registry.all_claims()


def test_a_paper_that_nobody_declares_is_named(folder):
    write(folder, "papers=('0000.00000',)")
    with pytest.raises(jd.UsageError, match="papers='0000.00000' of fresh is not allowed"):
        registry.papers("fresh")


def test_a_topic_without_claims_is_named(folder):
    write(folder, "topics=('bare',)")
    (folder / "bare.py").write_text("")
    with pytest.raises(jd.UsageError, match=r"fresh\.bare has no CLAIMS list"):
        registry.all_claims()
