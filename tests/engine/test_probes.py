"""What tracing tells of a program is remembered between processes."""

from concurrent.futures import ThreadPoolExecutor

import pytest

import jaxdyn as jd
from jaxdyn.engine import probes
from jaxdyn.engine.cache import read_cached, write_cached
from jaxdyn.engine.chunk import Program
from jaxdyn.engine.devices import Devices, elsewhere
from jaxdyn.engine.probes import facts_of
from jaxdyn.engine.reference import ref_to
from jaxdyn.engine.tracing import probe
from jaxdyn.maintain.shipped import theory_programs, write_probes


@pytest.fixture
def programs(toys, tmp_path, monkeypatch):
    """Two programs, nothing remembered of them on disk or in memory."""
    monkeypatch.setenv("JAXDYN_CACHE", str(tmp_path))
    probe.cache_clear()
    toys.TRACES.clear()

    def program(trial, setting):
        return Program(ref_to(trial), ref_to(type(setting)), tuple((n, getattr(setting, n)) for n in type(setting).static_fields))

    yield [program(toys.decay, toys.Toy()), program(toys.decay, toys.Toy(size=5)), program(toys.solved, toys.Flow())]
    probe.cache_clear()


def test_known_programs_are_not_traced_again(toys, programs):
    first = facts_of(programs)
    assert len(toys.TRACES) == 2 and [f["executor"] for f in first.values()] == ["vmap", "vmap", "map"]
    assert first[programs[0]]["bytes"] < first[programs[1]]["bytes"]
    probe.cache_clear()  # as a new process
    toys.TRACES.clear()
    assert facts_of(programs) == first and toys.TRACES == []


def test_programs_are_traced_once_for_all_devices(toys, programs):
    assert probes.untraced(programs) == 3
    first = facts_of(programs)
    toys.TRACES.clear()
    probe.cache_clear()
    with elsewhere(Devices("gpu", 8)):
        assert probes.untraced(programs) == 0 and facts_of(programs) == first and toys.TRACES == []


@pytest.mark.parametrize("content", [[], None, 3, {"a": 1}, {"a": {"bytes": 1, "executor": "map"}}])
def test_the_memory_of_another_version_costs_tracing_only(programs, content):
    first = facts_of(programs)
    write_cached(probes.CACHED, content)
    assert facts_of(programs) == first
    assert read_cached(probes.CACHED).keys() >= {probes.cached_key(p) for p in programs}


def test_a_memory_that_cannot_be_written_costs_tracing_only(programs, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("JAXDYN_CACHE", str(tmp_path / "file"))
    assert len(facts_of(programs)) == 3


def test_a_trial_that_raises_is_not_remembered(toys, programs):
    bad = Program(ref_to(toys.broken), ref_to(toys.Toy), programs[0].static)
    assert facts_of([bad, programs[0]])[bad]["executor"] == "vmap"
    assert read_cached(probes.CACHED).keys() == {probes.cached_key(programs[0])}
    with pytest.raises(ValueError, match="this trial is broken"):
        jd.sweep(toys.broken, jd.grid(toys.Toy))


@pytest.mark.slow
def test_a_pool_traces_what_belongs_to_the_package(toys, programs, shipped, monkeypatch):
    own = theory_programs(["collapse.flow"])
    here = facts_of(own)
    (shipped.parent / probes.CACHED).unlink()
    probe.cache_clear()
    sent = []
    with ThreadPoolExecutor(1) as pool:
        monkeypatch.setattr(pool, "map", lambda f, some: sent.extend(some) or ThreadPoolExecutor.map(pool, f, some))
        found = facts_of([*programs, *own], pool)
    assert sent == own and {p: found[p] for p in own} == here and len(toys.TRACES) == 2
    assert len(read_cached(probes.CACHED)) == len(programs) + len(own)


@pytest.fixture
def shipped(tmp_path, monkeypatch):
    """An empty shipped file."""
    monkeypatch.setattr(probes, "SHIPPED", tmp_path / "shipped.json")
    probes.shipped_probes.cache_clear()
    yield tmp_path / "shipped.json"
    probes.shipped_probes.cache_clear()


def test_shipped_programs_are_not_traced(toys, programs, shipped):
    first = facts_of(programs)
    assert write_probes(programs[:2], shipped) == 2
    (shipped.parent / probes.CACHED).unlink()  # a new machine
    probe.cache_clear()
    probes.shipped_probes.cache_clear()
    toys.TRACES.clear()
    assert facts_of(programs[:2]) == {p: first[p] for p in programs[:2]} and toys.TRACES == []
    assert facts_of(programs)[programs[2]] == first[programs[2]]


def test_programs_whose_sources_changed_are_traced(toys, programs, shipped, monkeypatch):
    write_probes(programs, shipped)
    (shipped.parent / probes.CACHED).unlink(missing_ok=True)
    probe.cache_clear()
    toys.TRACES.clear()
    monkeypatch.setattr(probes, "source_hash", lambda ref: "other sources")
    facts_of(programs)
    assert len(toys.TRACES) == 2
