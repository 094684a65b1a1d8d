"""The library: theories are found by their prefix, title pages are read without JAX, and what is wrong is named in a sentence."""

import subprocess
import sys
from pathlib import Path

import pytest

import jaxdyn as jd
from jaxdyn.engine.catalogue import library, registry
from tests.engine.conftest import TOYS

ABOUT_ANOTHER = {"joma.ortho"}  # orth measures an assumption of joma on its own trained networks
THEORIES = sorted(path.parent.name for path in registry.THEORIES.glob("*/__init__.py"))


@pytest.mark.parametrize("name", THEORIES)
def test_a_title_page_says_what_the_theory_is_about(name):
    about = library.theory(name)
    assert about.title and len(about.about) > 60 and about.about.endswith(".") and about.topic_names and about.shown
    assert all(i.startswith(f"{name}.") and i in registry.all_claims(theories={name}) for i in about.shown)
    assert library.papers(name) and all(p.title and p.authors and p.url.endswith(p.arxiv) for p in library.papers(name))


def test_every_paper_is_declared_once():
    numbers = [p.arxiv for name in THEORIES for p in library.theory(name).papers if isinstance(p, jd.Paper)]
    assert len(numbers) == len(set(numbers)) > 40


@pytest.mark.parametrize("name", THEORIES)
def test_every_file_with_claims_is_a_topic(name):
    """And every topic stands in the folder: a topic left out of the title page would be verified by nobody."""
    folder = registry.THEORIES / name
    with_claims = {
        path.relative_to(folder).with_suffix("").as_posix().replace("/", ".").removesuffix(".claims")
        for path in folder.rglob("*.py")
        if "\nCLAIMS" in path.read_text(encoding="utf-8")
    }
    assert with_claims == set(library.theory(name).topic_names)


@pytest.mark.parametrize("name", THEORIES)
def test_every_module_with_instruments_is_named(name):
    """On the title page: one that is left out would measure nothing."""
    folder = registry.THEORIES / name
    found = [path for path in folder.rglob("*.py") if "\nINSTRUMENTS" in path.read_text(encoding="utf-8")]
    assert {".".join(path.relative_to(folder).with_suffix("").parts) for path in found} == set(library.theory(name).instruments)


@pytest.mark.slow
def test_ids_start_with_the_name_of_their_folder():
    homes = {entry["id"]: Path(entry["home"]).parts[2] for entry in registry.catalogue()}
    assert {i for i, folder in homes.items() if i.split(".")[0] != folder} == ABOUT_ANOTHER


def test_title_pages_are_read_without_jax():
    code = (
        "import sys\nfrom jaxdyn.engine.catalogue import library\nassert library.shown()\n"
        "heavy = {'jax', 'numpy', 'xarray'} & set(sys.modules)\nassert not heavy, heavy\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr


def test_claims_without_a_title_page_have_their_prefix_for_a_title():
    assert library.theory("unheard").title == "unheard" and library.papers("unheard") == ()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A place for theories besides those of the package."""
    from jaxdyn import theories

    monkeypatch.setattr(theories, "__path__", [str(tmp_path)])
    (tmp_path / "fresh").mkdir()
    yield tmp_path / "fresh"
    for name in [n for n in sys.modules if n.startswith("jaxdyn.theories.fresh")]:
        del sys.modules[name]
    vars(theories).pop("fresh", None)


def write(folder: Path, fields: str) -> None:
    """A title page."""
    (folder / "__init__.py").write_text(f"import jaxdyn as jd\n\nTHEORY = jd.Theory(title='Fresh', {fields})\n", encoding="utf-8")


def test_a_topic_that_is_not_there_is_named(folder):
    write(folder, "topics=('gone',)")
    with pytest.raises(jd.UsageError, match="topic 'gone' is not allowed: fresh has no module of that name"):
        registry.all_claims()


def test_a_paper_that_nobody_declares_is_named(folder):
    write(folder, "papers=('0000.00000',)")
    with pytest.raises(jd.UsageError, match="papers='0000.00000' of fresh is not allowed"):
        library.papers("fresh")


def test_a_topic_without_claims_is_named(folder):
    write(folder, "topics=('bare',)")
    (folder / "bare.py").write_text("", encoding="utf-8")
    with pytest.raises(jd.UsageError, match=r"fresh\.bare has no CLAIMS list"):
        registry.all_claims()


def test_a_folder_topic_has_its_claims_in_a_module_of_that_name(folder):
    write(folder, "topics=('bare',)")
    (folder / "bare").mkdir()
    with pytest.raises(jd.UsageError, match="topic 'bare' is not allowed: fresh has no module of that name"):
        registry.all_claims()


def test_a_topic_in_a_chapter_that_is_not_there_is_named(folder):
    write(folder, "topics={'One': ('chapter.gone',)}")
    with pytest.raises(jd.UsageError, match="topic 'chapter.gone' is not allowed: fresh has no module of that name"):
        registry.all_claims()


def test_claims_have_the_prefix_of_their_folder(folder):
    write(folder, "topics=('toys',)")
    (folder / "toys.py").write_text(TOYS.read_text(encoding="utf-8"), encoding="utf-8")
    with pytest.raises(jd.UsageError, match=r"id='toy\.decay' is not allowed: ids of claims in fresh\.toys start with fresh\."):
        registry.all_claims()


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A folder with a title page, of a user's own."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(library, "_loaded", {})
    monkeypatch.setenv("JAXDYN_CACHE", str(tmp_path / "cache"))
    (tmp_path / "homemade").mkdir()
    write(tmp_path / "homemade", "papers=(jd.Paper('0000.00001', 'T', 'A', 'V'),), topics=('toys',)")
    text = TOYS.read_text(encoding="utf-8").replace('"toy.', '"homemade.').replace('"solver.decay"', '"homemade.solved"')
    (tmp_path / "homemade" / "toys.py").write_text(text, encoding="utf-8")
    yield tmp_path / "homemade"
    for name in [n for n in sys.modules if n.split(".")[0] == "homemade"]:
        del sys.modules[name]


@pytest.mark.parametrize("name", ["", pytest.param("__init__.py", marks=pytest.mark.slow)])
def test_a_folder_is_loaded_as_a_theory(own, name):
    entries = {e["id"]: e for e in registry.catalogue([own / name])}
    assert {key: entries["homemade.decay"][key] for key in ("theory_title", "papers", "topic", "home")} == {
        "theory_title": "Fresh",
        "papers": ["0000.00001"],
        "topic": "toys",
        "home": str(own / "toys.py"),
    }
    (claim,) = registry.select(["homemade.decay"], [own / name])
    assert registry.topic(claim) == "toys" and library.theory("homemade").title == "Fresh"


def test_a_folder_without_a_title_page_is_refused(tmp_path):
    with pytest.raises(jd.UsageError, match="a folder of claims has an __init__.py with THEORY"):
        library.load(tmp_path)


def test_a_folder_named_as_another_package_is_refused(tmp_path):
    (tmp_path / "jaxdyn").mkdir()
    (tmp_path / "jaxdyn" / "__init__.py").write_text("", encoding="utf-8")
    with pytest.raises(jd.UsageError, match="is not allowed: another package is called jaxdyn"):
        library.load(tmp_path / "jaxdyn")


@pytest.mark.parametrize(("text", "said"), [("1 +", "line 1"), ("import nothing_of_this_name", "toys cannot be imported")])
def test_a_topic_that_fails_is_one_sentence(own, text, said):
    (own / "toys.py").write_text(text, encoding="utf-8")
    with pytest.raises(jd.UsageError, match=said):
        registry.all_claims([own])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "homemade.maps has no MAPS tuple"),
        ("MAPS = (3,)", "homemade.maps has no MAPS tuple"),
        ("import jaxdyn as jd\nMAPS = (jd.AtlasMap('n', 't', 'toy.law', ('rate=1:2',), 'f'),)", "claim='toy.law' is not allowed"),
    ],
)
def test_maps_are_those_of_the_theorys_claims(own, text, said):
    library.load(own)
    assert library.maps("homemade") == () == library.maps("unheard")
    (own / "maps.py").write_text(text, encoding="utf-8")
    with pytest.raises(jd.UsageError, match=said):
        library.maps("homemade")


def test_stored_results_lie_in_the_theorys_folder(own):
    library.load(own)
    assert library.folder("homemade") == own and library.recorded_folder("homemade", "maps") == own / "recorded" / "maps"
    assert library.folder("unheard") is None is library.recorded_folder("unheard", "maps")


def test_names_that_are_no_theory_are_passed_over():
    """A user's own prefix, as workers ask for it."""
    assert [source.name for source in library.shipped({"lyu", "solver"})] == ["lyu"]
