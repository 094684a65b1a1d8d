"""What all runs share: an argument of the program, read once, part of what stored runs depend on; without it a claim is skipped."""

import inspect
import json
import sys
import time
import types
from pathlib import Path

import jax
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn import testing
from jaxdyn.cli.main import main
from jaxdyn.engine.base.devices import Devices, elsewhere
from jaxdyn.engine.base.reference import load_file, ref_to
from jaxdyn.engine.catalogue import registry
from jaxdyn.engine.claims import resource
from jaxdyn.engine.claims.resource import Resource, absence
from jaxdyn.engine.claims.setting import split
from jaxdyn.engine.programs import program
from jaxdyn.engine.programs.chunk import Program
from jaxdyn.engine.runs.blocks import Request
from jaxdyn.engine.runs.planning import plan
from jaxdyn.engine.runs.sweep import execute, load_stored

FILE = Path(__file__).parents[1] / "shared_arrays.py"


@pytest.fixture(scope="module")
def held():
    return load_file(FILE)


@pytest.fixture
def folder(tmp_path, monkeypatch, held):
    monkeypatch.setenv("SHARED_ARRAYS", str(tmp_path))
    for name, value in (("ones", 1.0), ("twos", 2.0)):
        np.save(tmp_path / f"{name}.npy", np.full(held.SIZE, value))
    resource.loaded.cache_clear()
    return tmp_path


@pytest.mark.parametrize("executor", ["map", "vmap", "flat"])
def test_all_runs_get_the_array(held, folder, executor):
    ds = jd.sweep(held.total, jd.grid(held.Held, gain=[1.0, 3.0]), 2, executor=executor)
    np.testing.assert_allclose(ds.measured_sum, [[held.SIZE] * 2, [3 * held.SIZE] * 2])


def test_the_array_is_an_argument_and_no_constant_of_the_program(held, folder):
    described = Program(ref_to(held.total), ref_to(held.Held), split(held.Held())[0], "map")
    with jax.enable_x64(True):
        compiled = program.compiled_map(described, 2)
    assert str(held.SIZE) in compiled.as_text().split("ENTRY")[1].split("\n")[0], "the array is a parameter of the entry"
    arguments = compiled.memory_analysis().argument_size_in_bytes
    assert held.SIZE * 8 <= arguments < held.SIZE * 8 + 10_000


def test_the_array_is_read_once_for_each_static_setting(held, folder):
    held.LOADED.clear()
    jd.sweep(held.total, jd.grid(held.Held, gain=[1.0, 2.0], name=["ones", "twos"]), 3)
    assert sorted(held.LOADED) == ["ones", "twos"]


def test_trials_that_want_the_same_array_hold_it_once(held, folder):
    held.LOADED.clear()
    for trial in (held.total, held.mean):
        jd.sweep(trial, jd.grid(held.Held), 1)
    assert held.LOADED == ["ones"]


USER = """
import jax.numpy as jnp
import jaxdyn as jd
from jaxdyn.engine.claims.resource import resource

@jd.setting
class One:
    gain: jd.Swept = 1.0

def load(s):
    return jnp.full(3, 2.0)

@resource(load, lambda s: "three numbers")
def trial(s, key, shared):
    return jd.observables(measured={"sum": s.gain * shared.sum()})
"""


def test_a_loader_that_reads_otherwise_is_another_resource(tmp_path):
    file, sums = tmp_path / "loads.py", []
    for value in ("2.0", "3.0", "2.0"):
        file.write_text(USER.replace("2.0", value), encoding="utf-8")
        module = load_file(file)
        sums.append(jd.sweep(module.trial, jd.grid(module.One), 1, out=tmp_path / "out").measured_sum.item())
    assert sums == [6.0, 9.0, 6.0]
    sums = [_sum_at_a_prompt(value, tmp_path / "prompt") for value in (2.0, 3.0)]
    assert sums == [6.0, 9.0]


def _sum_at_a_prompt(value, out):
    space = {"__name__": "__main__"}
    exec(USER.replace("2.0", str(value)), space)
    return jd.sweep(space["trial"], jd.grid(space["One"]), 1, out=out).measured_sum.item()


REACHING = """
import ctypes, functools
import jax.numpy as jnp
import numpy as np
import jaxdyn as jd

@jd.setting
class One:
    gain: jd.Swept = 1.0

SCALE = 2.0
LOG, KEPT = [], {}

def clean(x):
    return x * SCALE

def plain(s):
    LOG.append(s.gain)
    return KEPT.setdefault("x", clean(np.ones(3)))

@functools.lru_cache
def cached(s):
    return clean(np.ones(3))

def read(scale, s):
    return scale * np.ones(3)

class Reader:
    def __init__(self, scale):
        self.scale = scale

    def __eq__(self, other):
        return isinstance(other, Reader) and self.scale == other.scale

    def __call__(self, s):
        return clean(np.ones(3))

    def method(self, s):
        return self.scale * np.ones(3)

labs = ctypes.CDLL(None).labs

def foreign(s):
    return np.full(3, float(labs(-2)))

@jd.resource(LOADER, lambda s: "three numbers")
def trial(s, key, shared):
    return jd.observables(measured={"sum": s.gain * shared.sum()})
"""
LOADS = ["plain", "cached", "functools.partial(read, SCALE)", "functools.partial(Reader.method, Reader(SCALE))", "Reader(SCALE)"]


@pytest.mark.parametrize("load", [*LOADS, "Reader(SCALE).method"])
def test_stored_runs_depend_on_all_that_the_loader_reaches(tmp_path, load, monkeypatch):
    def swept(scale, factor=1):
        space = types.ModuleType("reaching_here")
        monkeypatch.setitem(sys.modules, space.__name__, space)
        text = (
            REACHING.replace("LOADER", load)
            .replace("SCALE = 2.0", f"SCALE = {scale}")
            .replace("* np.ones", f"* {factor} * np.ones")
        )
        exec(text.replace("x * SCALE", f"x * {factor} * SCALE"), vars(space))
        found = [jd.sweep(space.trial, jd.grid(space.One), 1, out=tmp_path / "out").measured_sum.item() for _ in range(2)]
        assert found[0] == found[1]
        return found[0], len(list((tmp_path / "out").rglob("*.nc")))

    assert [swept(2.0), swept(3.0), swept(2.0), swept(2.0, factor=2)] == [(6.0, 1), (9.0, 2), (6.0, 2), (12.0, 3)]


def test_a_global_that_a_script_sets_is_read_again(tmp_path, monkeypatch):
    """Arrays in memory are those of the values of now."""
    space = types.ModuleType("reaching_here")
    monkeypatch.setitem(sys.modules, space.__name__, space)
    exec(REACHING.replace("LOADER", "lambda s: clean(np.ones(3))"), vars(space))
    sums = []
    for space.SCALE in (2.0, 3.0, 2.0):
        sums.append(jd.sweep(space.trial, jd.grid(space.One), 1, out=tmp_path / "out").measured_sum.item())
    assert sums == [6.0, 9.0, 6.0]


def test_runs_with_a_loader_that_nobody_can_look_into_are_not_stored(tmp_path, monkeypatch):
    space = types.ModuleType("reaching_here")
    monkeypatch.setitem(sys.modules, space.__name__, space)
    exec(REACHING.replace("LOADER", "foreign"), vars(space))
    with pytest.warns(UserWarning, match="reaching_here:trial shares arrays that are read by code that is not known, the compiled"):
        ds = jd.sweep(space.trial, jd.grid(space.One), 1, out=tmp_path / "out")
    assert ds.measured_sum.item() == 6.0 and not list((tmp_path / "out").rglob("*.nc"))


def test_programs_that_are_compiled_at_the_same_time_hold_it_once(held, folder, monkeypatch):
    """Off CPU a thread compiles the second while the first is compiled and run; planning, remembered, has read nothing."""
    monkeypatch.setattr(held.total, "resource", Resource(lambda s: (time.sleep(0.3), held.load(s))[1], held.identity))
    monkeypatch.setattr(held.mean, "resource", held.total.resource)
    with elsewhere(Devices("gpu")):
        jobs = plan([Request(trial, jd.grid(held.Held), (0,)) for trial in (held.total, held.mean)], store=None)
        resource.loaded.cache_clear()
        held.LOADED.clear()
        costs = execute(jobs, load_stored(jobs), None)
    assert [cost["runs"] for cost in costs.values()] == [1, 1] and held.LOADED == ["ones"]


def test_stored_runs_depend_on_what_was_read(held, folder):
    described = Program(ref_to(held.total), ref_to(held.Held), split(held.Held())[0], "map")
    before = described.identity()
    np.save(folder / "ones.npy", np.full(held.SIZE, 1.5))
    assert described.identity() != before


def test_a_claim_without_its_resource_is_skipped(held, folder):
    (claim,) = held.CLAIMS
    assert jd.verify(claim).verdict == "upheld"
    (folder / "twos.npy").unlink()
    outcome = jd.verify(claim)
    assert (outcome.verdict, outcome.skipped, outcome.as_expected) == ("skipped", True, False)
    assert outcome.message == "twos is not here: make it" and outcome.data is None
    entry = outcome.to_json()
    assert entry["verdict"] == "skipped" and entry["programs"] == 0 and entry["checks"] == []
    with pytest.raises(pytest.skip.Exception, match="make it"):
        testing.assert_claim(claim)


@pytest.mark.slow
def test_a_skipped_claim_is_counted_apart_and_is_no_failure(held, folder, tmp_path, capsys):
    (folder / "twos.npy").unlink()
    command = ["verify", "held.sum", "--load", str(FILE), "--out", str(tmp_path / "out"), "--workers", "1"]
    assert main([*command, "--json"]) == 0
    said = capsys.readouterr()
    (entry,) = json.loads(said.out)["claims"]
    assert entry["verdict"] == "skipped" and entry["message"] == "twos is not here: make it"
    assert "– held.sum" in said.err and "0 of 0 verdicts as expected, 1 claim skipped" in said.err
    page = (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
    assert "v-skipped" in page and "twos is not here: make it" in page and "1 skipped" in page


def test_a_sweep_without_its_resource_is_refused(held, folder, tmp_path):
    (folder / "ones.npy").unlink()
    with pytest.raises(jd.UsageError, match="ones is not here: make it"):
        jd.sweep(held.total, jd.grid(held.Held), 1, out=tmp_path / "out")


def test_only_what_is_asked_for_must_be_there(held, folder):
    (folder / "twos.npy").unlink()
    assert absence(held.total, [jd.grid(held.Held)]) is None
    assert absence(held.total, [jd.grid(held.Held, name="twos")]) == "twos is not here: make it"


LAZY = """
import jaxdyn as jd

@jd.setting
class Asking:
    kind: str = "with"
    gain: jd.Swept = 1.0

def ask():
    try:
        import not_installed
    except ImportError:
        raise jd.Absent("the trial needs the library not_installed: pip install 'mine'") from None

def late(s, key):
    ask()
    return jd.observables(predicted={"x": s.gain}, measured={"x": s.gain})

@jd.imports("not_installed", install="mine", when=lambda s: s.kind == "with")
def said(s, key):
    if s.kind == "with":
        ask()
    return jd.observables(predicted={"x": s.gain}, measured={"x": s.gain})

def judge(ds):
    return [jd.at_most("error", jd.relative_error(ds, "x"), 1e-6)]

CLAIMS = [
    jd.Claim(
        id=f"ask.{trial.__name__}", title="Asked for", statement="Asked for.", source="", trial=trial, quick=jd.grid(Asking),
        judge=judge, evidence="algebra", bounds="derived", controls={"off": jd.scaled(predicted_x=2.0)},
    )
    for trial in (late, said)
]
"""


@pytest.mark.parametrize("name", ["late", "said"])
def test_a_claim_on_a_library_that_is_not_installed_is_skipped(name, tmp_path, monkeypatch, capsys):
    """Whether the trial declares it, and then nothing is planned, or raises when it is traced, and then nothing is compiled."""
    monkeypatch.chdir(tmp_path)
    Path("asking.py").write_text(LAZY, encoding="utf-8")
    assert main(["verify", f"ask.{name}", "--load", "asking.py", "--workers", "1", "--json"]) == 0
    said = capsys.readouterr()
    (entry,) = json.loads(said.out)["claims"]
    assert (entry["verdict"], entry["message"]) == ("skipped", "the trial needs the library not_installed: pip install 'mine'")
    assert f"1 claim: {int(name == 'late')} program" in said.err and "Traceback" not in said.err


def test_only_settings_that_need_a_library_ask_for_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("asking.py").write_text(LAZY, encoding="utf-8")
    asking = load_file("asking.py")
    assert jd.verify(asking.CLAIMS[1], kind="without").verdict == "upheld"
    assert absence(asking.said, [jd.grid(asking.Asking)]) == "the trial needs the library not_installed: pip install 'mine'"


@pytest.mark.parametrize(("module", "claim"), [("networkx", "sln.exact_small"), ("sklearn", "collapse.network")])
def test_a_claim_of_the_suite_without_its_extra_is_skipped(module, claim, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, module, None)
    assert main(["verify", claim, "--out", str(tmp_path / "out"), "--workers", "1"]) == 0
    said = capsys.readouterr().err
    assert f"skipped: the trial needs the library {module}: pip install 'jaxdyn[suite]'" in said and "0 programs" in said


def test_trials_that_use_an_extra_say_so():
    """Those whose modules list graphs or read digits: nothing else in the package needs the extra ``suite``."""
    calls = {"networkx": ("graphs.connected(", "graphs.trees("), "sklearn": ("digits.load(",)}
    for claim in registry.all_claims().values():
        text = inspect.getsource(inspect.getmodule(claim.trial))
        used = {module for module, names in calls.items() if any(name in text for name in names)}
        said = {module for module, *_ in getattr(claim.trial, "imports", ())}
        assert used <= said, f"{claim.id}: {used - said}"
