"""A share of the stored programs is run afresh, in the chunk shapes as stored, and old shards go."""

import dataclasses
import datetime
import io
import os

import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.engine.base.reference import load_file
from jaxdyn.engine.programs.program import run_chunk
from jaxdyn.engine.storage.shard import stored_shards, write_shard
from jaxdyn.maintain import recheck
from tests.engine.conftest import TOYS


@pytest.fixture(scope="module")
def toys():
    return load_file(TOYS)


MONDAY = datetime.date(2026, 11, 23)
WEEK = [MONDAY + datetime.timedelta(days) for days in range(7)]


def test_every_program_has_one_day_of_each_week():
    names = [f"{i:020x}" for i in range(500)]
    shares = [{name for name in names if recheck.drawn(name, day)} for day in WEEK]
    assert set().union(*shares) == set(names) and sum(map(len, shares)) == len(names)
    assert all(40 < len(share) < 105 for share in shares), "about a seventh"
    later = [{name for name in names if recheck.drawn(name, day + datetime.timedelta(7))} for day in WEEK]
    assert later != shares, "another lot in another week"


@pytest.mark.parametrize("executor", ["vmap", "map", "flat"])
def test_a_stored_chunk_gives_the_same_bits_again(toys, tmp_path, executor):
    """Also one that was compiled for more runs than it has."""
    jd.sweep(toys.decay, jd.grid(toys.Toy, lr=[0.01, 0.02, 0.04]), 5, out=tmp_path, chunk=4, executor=executor)
    shards = sorted(tmp_path.glob("shards/*/*.nc"))
    assert len(shards) > 2
    for shard in shards:
        chunk, stored = recheck.stored_chunk(shard)
        assert recheck.differing(stored, run_chunk(chunk)) == []


def test_other_bits_are_named(toys, tmp_path):
    jd.sweep(toys.decay, jd.grid(toys.Toy), 3, out=tmp_path)
    (shard,) = tmp_path.glob("shards/*/*.nc")
    chunk, stored = recheck.stored_chunk(shard)
    array = stored.arrays["measured_x"]
    array[1, 0, 2] = np.nextafter(array[1, 0, 2], 2)
    del stored.arrays["start"]
    assert recheck.differing(stored, run_chunk(chunk)) == ["measured_x", "start"]


@pytest.mark.slow
def test_what_differs_is_an_error_that_names_the_program(tmp_path):
    """A shard whose numbers were changed, with a checksum that fits: no identity can tell."""
    jd.verify("cal.quadratic_rate", out=tmp_path)
    (folder,) = tmp_path.glob("shards/*")
    day = next(day for day in WEEK if recheck.drawn(folder.name, day))
    said = io.StringIO()
    assert recheck.report(recheck.recheck(tmp_path, float("inf"), day, 1), said) == 0
    assert "1 stored program with" in said.getvalue() and "0 chunks differ" in said.getvalue()
    assert list(recheck.recheck(tmp_path, 0.0, day, 1)) == [], "what has just been run is not run twice"
    shard = stored_shards(tmp_path, folder.name)[0]
    chunk, stored = recheck.stored_chunk(shard)
    first = next(name for name, array in stored.arrays.items() if array.dtype == np.float64)
    stored.arrays[first][0, 0] += 1
    shard.unlink()
    facts = {name: fact for name, fact in stored.facts.items() if name != "seeds"}
    changed = dataclasses.replace(stored, facts=facts)
    write_shard(tmp_path, folder.name, shard.name.partition(".")[0], chunk.cells, chunk.seeds, changed)
    said = io.StringIO()
    assert recheck.report(recheck.recheck(tmp_path, float("inf"), day, 1), said) == 1
    assert f"{chunk.program.trial.title} {chunk.program.label}: {first} differ from what is stored" in said.getvalue()


@pytest.mark.parametrize("part", ["trial", "setting"])
@pytest.mark.parametrize("where", [{"module": "jaxdyn.theories.moved", "path": None}, {"qualname": "renamed"}])
def test_runs_of_a_trial_that_was_moved_or_renamed_since_are_left_alone(toys, tmp_path, part, where):
    jd.sweep(toys.decay, jd.grid(toys.Toy), 3, out=tmp_path)
    (shard,) = tmp_path.glob("shards/*/*.nc")
    chunk, stored = recheck.stored_chunk(shard)
    facts = {name: fact for name, fact in stored.facts.items() if name != "seeds"}
    facts["program"] = facts["program"] | {part: facts["program"][part] | where}
    write_shard(tmp_path, "0" * 20, "0" * 20, chunk.cells, chunk.seeds, dataclasses.replace(stored, facts=facts))
    found = [list(recheck.recheck(tmp_path, float("inf"), day, 1)) for day in WEEK]
    assert sum(map(len, found)) == 1, "the program that is still there"


def test_what_was_not_used_longest_goes_first(toys, tmp_path):
    jd.sweep(toys.decay, jd.grid(toys.Toy, lr=[0.01, 0.02, 0.04]), 2, out=tmp_path, chunk=2)
    shards = sorted(tmp_path.glob("shards/*/*.nc"))
    for age, shard in enumerate(shards):
        os.utime(shard, ns=(10**18 - age * 10**9, shard.stat().st_mtime_ns))
    size = sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file())
    assert recheck.prune(tmp_path, size) == 0
    assert recheck.prune(tmp_path, size - 1) == 1 and [path.exists() for path in shards] == [True, True, False]
    jd.sweep(toys.decay, jd.grid(toys.Toy, lr=[0.01]), 2, out=tmp_path, chunk=2)
    assert all(path.stat().st_atime_ns > 10**18 for path in shards[:2]), "all shards of the program were read"
    left = list(tmp_path.glob("shards/*/*.nc"))
    assert recheck.prune(tmp_path, 0) == len(left) >= 2 and not list(tmp_path.glob("shards/*/*.nc"))
    assert (tmp_path / "jaxdyn.json").exists()


def test_days():
    assert recheck.chosen_day("2026-11-23") == MONDAY and isinstance(recheck.chosen_day(None), datetime.date)
    with pytest.raises(jd.UsageError, match="--day tomorrow is not allowed: it is a date such as 2026-01-31"):
        recheck.chosen_day("tomorrow")
