"""All instruments by name: those of the modules that title pages name; what is wrong is named in a sentence."""

import subprocess
import sys

import pytest

import jaxdyn as jd
from jaxdyn import theories
from jaxdyn.engine.catalogue import library, registry
from jaxdyn.instruments.registry import choose, homes, instruments, laws, watched

NAMES = ["sparsity", "gradients", "heavy", "entropy", "orthogonality", "sinks", "numbers", "streaming"]


def test_they_are_in_the_order_of_the_theories():
    assert list(instruments()) == list(homes()) == NAMES and [one.name for one in choose(None)] == NAMES
    owners = [home.__name__.split(".")[2] for home in homes().values()]
    assert owners == sorted(owners) and set(owners) <= {path.parent.name for path in registry.THEORIES.glob("*/instrument.py")}


def test_laws_and_instruments_are_watched():
    assert not set(map(id, laws().values())) & set(map(id, instruments().values()))
    assert watched("balance") is laws()["balance"] and watched("sinks") is instruments()["sinks"]
    assert watched("entropy") is laws()["entropy"], "of a law and an instrument of one name the law is meant"
    assert watched("jaxdyn.theories.joma.instrument:ENTROPY") is instruments()["entropy"]
    with pytest.raises(jd.UsageError, match="watch=streaming is not allowed: it is about texts far longer than sequences of the"):
        watched("streaming")
    with pytest.raises(jd.UsageError, match="watch=.*:NAVIGATORS.* is not allowed: it looks for numbers in a tokenizer"):
        watched("jaxdyn.theories.sln.instrument:NAVIGATORS")
    with pytest.raises(
        jd.UsageError, match="watch=sinkhole is not allowed: laws are .*, instruments are .*, sinks, or "
    ) as refused:
        watched("sinkhole")
    assert "streaming" not in str(refused.value)
    with pytest.raises(jd.UsageError, match="jaxdyn.train has no law or instrument 'descend'"):
        watched("jaxdyn.train:descend")


def test_they_are_chosen_by_name_in_their_own_order():
    assert [one.name for one in choose("sinks, heavy")] == [one.name for one in choose(["sinks", "heavy"])] == ["heavy", "sinks"]
    with pytest.raises(jd.UsageError, match="only=sink is not allowed: instruments are sparsity, gradients, "):
        choose("sinks,sink")


def test_they_are_imported_only_when_they_are_asked_for():
    code = (
        "import sys\nfrom jaxdyn.instruments import registry\n"
        "assert not [name for name in sys.modules if name.startswith('jaxdyn.theories')]\nassert registry.instruments()\n"
        "assert not [name for name in sys.modules if name.startswith('jaxdyn.models')], 'instruments need no checkpoints'\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr


ONE = "from jaxdyn.theories.sink.instrument import SINKS\n\nINSTRUMENTS = (SINKS,)\n"


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A user's own theory that was loaded, with an instrument; the package's own theories are out of sight."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(library, "_loaded", {})
    place = tmp_path / "metered"
    place.mkdir()
    (place / "__init__.py").write_text(
        "import jaxdyn as jd\n\nTHEORY = jd.Theory(title='Metered', topics=('law',), instruments=('meter',))\n", encoding="utf-8"
    )
    (place / "meter.py").write_text(ONE, encoding="utf-8")
    yield place
    for name in [n for n in sys.modules if n.split(".")[0] == "metered"]:
        del sys.modules[name]


def test_a_theory_of_ones_own_has_instruments_too(own, monkeypatch):
    instruments()  # the package's own must be imported while they can be found
    monkeypatch.setattr(theories, "__path__", [])
    assert instruments() == {}
    library.load(own)
    assert list(instruments()) == ["sinks"] and homes()["sinks"].__file__ == str(own / "meter.py")


def test_two_of_one_name_are_refused(own):
    library.load(own)
    with pytest.raises(jd.UsageError, match=r"two instruments are called sinks; the second is in .*metered\.meter"):
        instruments()


@pytest.mark.parametrize("text", ["", "INSTRUMENTS = [3]", "INSTRUMENTS = (3,)"], ids=str)
def test_a_module_without_instruments_is_named(own, text):
    (own / "meter.py").write_text(text, encoding="utf-8")
    library.load(own)
    with pytest.raises(
        jd.UsageError, match=r"metered\.meter has no INSTRUMENTS tuple: put its Instrument and Law objects into a tuple"
    ):
        instruments()


def test_a_module_that_is_not_there_is_named(own):
    (own / "meter.py").unlink()
    library.load(own)
    with pytest.raises(jd.UsageError, match="instrument 'meter' is not allowed: .*metered has no module of that name"):
        instruments()
