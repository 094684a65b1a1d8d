"""The catalogue, shipped or cached, and where claims are at home."""

import json
import subprocess
import sys

import pytest

import jaxdyn as jd
from jaxdyn import theories
from jaxdyn.engine.catalogue import library, registry
from tests.engine.conftest import TOYS


@pytest.mark.slow
def test_the_catalogue_is_the_same_when_it_was_cached():
    fresh = json.loads(json.dumps(registry.make_entries(library.shipped())))
    for _ in range(2):
        assert json.loads(json.dumps(registry.catalogue())) == fresh


def test_a_shipped_catalogue_is_used_while_no_source_has_changed(tmp_path, monkeypatch):
    monkeypatch.setattr(registry, "SHIPPED", tmp_path / "catalogue.json")
    registry.SHIPPED.write_text(json.dumps({"sources": registry.theories_key(), "claims": [{"id": "a.b"}]}), encoding="utf-8")
    assert registry.catalogue() == [{"id": "a.b"}]
    registry.SHIPPED.write_text(json.dumps({"sources": "others", "claims": [{"id": "a.b"}]}), encoding="utf-8")
    assert len(registry.catalogue()) > 200


def test_a_list_from_the_cache_imports_no_theory():
    registry.catalogue()
    code = (
        "import sys\nfrom jaxdyn.cli.main import main\nassert main(['list', '--json']) == 0\n"
        "heavy = {'jax', 'numpy', 'xarray', 'matplotlib', 'rich'} & set(sys.modules)\nassert not heavy, heavy\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)["claims"]) > 200


@pytest.fixture
def one_theory(monkeypatch, tmp_path):
    """A theory of two files, in a folder of its own, named as no other is."""
    home = tmp_path / "invented"
    (home / "chapter").mkdir(parents=True)
    text = TOYS.read_text(encoding="utf-8").replace('"toy.', '"invented.').replace('"solver.decay"', '"invented.solved"')
    (home / "chapter" / "deep.py").write_text(text, encoding="utf-8")
    page = "import jaxdyn as jd\n\nTHEORY = jd.Theory(title='Invented', topics={'A chapter': ('chapter.deep',)})\n"
    (home / "__init__.py").write_text(page, encoding="utf-8")
    monkeypatch.setattr(theories, "__path__", [str(tmp_path)])
    monkeypatch.setenv("JAXDYN_CACHE", str(tmp_path / "cache"))
    yield home
    for name in [n for n in sys.modules if n.startswith("jaxdyn.theories.invented")]:
        del sys.modules[name]
    vars(theories).pop("invented", None)


def test_home_is_the_topic(one_theory):
    entries = registry.catalogue()
    assert {e["home"] for e in entries} == {str(one_theory / "chapter" / "deep.py")}
    assert {(e["topic"], e["theory_title"]) for e in entries} == {("chapter.deep", "Invented")}
    (claim,) = registry.select(["invented.decay"])
    assert registry.home(claim) == str(one_theory / "chapter" / "deep.py") and registry.topic(claim) == "chapter.deep"


def test_homes_of_the_package_start_at_its_root():
    homes = {e["home"] for e in registry.catalogue()}
    assert all(home.startswith("jaxdyn/theories/") and (registry.PACKAGE.parent / home).is_file() for home in homes)


@pytest.mark.slow
def test_a_selection_imports_only_its_theories():
    code = (
        "import sys\nfrom jaxdyn.engine.catalogue.registry import select\nassert select(['lyu'])\n"
        "met = {n.split('.')[2] for n in sys.modules if n.startswith('jaxdyn.theories.')}\nassert met == {'lyu'}, met\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr


def test_a_file_is_the_home_of_its_claims(monkeypatch, tmp_path, toys):
    monkeypatch.setattr(theories, "__path__", [])
    monkeypatch.setenv("JAXDYN_CACHE", str(tmp_path))
    assert {e["home"] for e in registry.catalogue([TOYS])} == {str(TOYS)}
    (claim,) = registry.select(["toy.decay"], [TOYS])
    assert registry.home(claim) == str(TOYS)


def test_a_claim_made_in_a_function_is_at_home_where_its_judge_is(claim, toys):
    assert registry.home(claim(judge=toys.close)).endswith("tests/engine/toys.py")


def test_twins_of_a_theory_and_a_file(one_theory, tmp_path):
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "twin.py").write_text((one_theory / "chapter" / "deep.py").read_text(encoding="utf-8"), encoding="utf-8")
    for call in (registry.catalogue, registry.all_claims):
        with pytest.raises(jd.UsageError, match="two claims are called invented.decay; the second is in .*twin.py"):
            call([tmp_path / "own" / "twin.py"])


def test_the_catalogue_follows_files_beside_a_users_file(monkeypatch, tmp_path):
    monkeypatch.setattr(theories, "__path__", [])
    monkeypatch.setenv("JAXDYN_CACHE", str(tmp_path / "cache"))
    (tmp_path / "first_beside.py").write_text("NAME = 'own.one'\n", encoding="utf-8")
    (tmp_path / "own_claims.py").write_text(
        TOYS.read_text(encoding="utf-8").replace('id="toy.decay"', "id=__import__('first_beside').NAME"), encoding="utf-8"
    )
    assert registry.catalogue([tmp_path / "own_claims.py"])[0]["id"] == "own.one"


@pytest.mark.parametrize("load", [5, None, "mine.py", [5], [None], b"mine.py"])
def test_files_to_load_are_a_list_of_paths(load):
    for call in (lambda: registry.catalogue(load), lambda: registry.select(["cal.*"], load), lambda: registry.all_claims(load)):
        with pytest.raises(jd.UsageError, match="load=.* is not allowed: it is a list of the paths"):
            call()


def test_the_files_claims_may_not_be_called_as_a_theorys(tmp_path):
    twin = TOYS.read_text(encoding="utf-8").replace('id="toy.decay"', 'id="power.steep"')
    (tmp_path / "twin.py").write_text(twin, encoding="utf-8")
    with pytest.raises(jd.UsageError, match="two claims are called power.steep"):
        registry.select([], [tmp_path / "twin.py"])
