"""Which programs and chunks are planned, by what suits the devices."""

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxdyn as jd
from jaxdyn.engine.base.devices import Devices, elsewhere
from jaxdyn.engine.base.reference import Ref
from jaxdyn.engine.programs.chunk import Chunk, Program
from jaxdyn.engine.runs import planning
from jaxdyn.engine.runs.blocks import Request

CHOICES = [
    ("solved", "Flow", {}, "map"),
    ("net", "Net", {}, "vmap"),
    ("decay", "Toy", {}, "vmap"),
    ("batches", "Batches", {"drawn": 8}, "map"),
    ("batches", "Batches", {"drawn": 1000}, "vmap"),  # cells of a seed share what is drawn
    ("batches", "Batches", {"drawn": 1000, "steps": 3}, "map"),  # three draws are as the weights of three layers
]


@pytest.mark.parametrize(("name", "cls", "fields", "executor"), CHOICES)
def test_auto_chooses_by_what_the_trial_does(toys, name, cls, fields, executor):
    grid = jd.grid(getattr(toys, cls), **fields)
    jobs = planning.plan([Request(getattr(toys, name), grid, (0,))], store=None)
    assert jobs[0].program.executor == executor


@pytest.mark.parametrize(
    ("name", "cls", "fields", "compiler"),
    [
        ("batches", "Batches", {"drawn": 8}, "quick"),
        ("batches", "Batches", {"drawn": 8, "steps": 3}, "light"),  # three products take no time
        ("decay", "Toy", {}, "light"),
    ],
)
def test_quick_runs_are_compiled_by_what_their_loops_do(toys, name, cls, fields, compiler):
    request = Request(getattr(toys, name), jd.grid(getattr(toys, cls), **fields), (0,))
    assert planning.plan([request], store=None, quick=True)[0].program.compiler == compiler
    assert planning.plan([request], store=None)[0].program.compiler == "full"


@settings(deadline=None, max_examples=100)
@given(st.lists(st.integers(), min_size=1, max_size=30, unique=True), st.integers(1, 40))
def test_split_covers_all_in_order_with_one_size_but_the_last(items, most):
    parts = planning.split_items(items, most)
    assert len({len(p) for p in parts[:-1]}) <= 1 and 0 < len(parts[-1]) <= len(parts[0]) <= most
    assert [i for p in parts for i in p] == items
    assert len(parts) == -(-len(items) // len(parts[0]))


def test_a_cell_is_planned_once_with_the_most_of_its_seeds():
    wanted = {
        ("p", (0, 1)): dict.fromkeys("ab"),
        ("p", (0, 1, 2)): dict.fromkeys("bc"),
        ("p", (2, 0, 1, 3)): dict.fromkeys("c"),
        ("p", (7, 8)): dict.fromkeys("bc"),
        ("q", (0, 1)): dict.fromkeys("b"),
    }
    assert planning.each_once(wanted) == {
        ("p", (0, 1)): ["a"],
        ("p", (0, 1, 2)): ["b"],
        ("p", (2, 0, 1, 3)): ["c"],
        ("p", (7, 8)): ["b", "c"],
        ("q", (0, 1)): ["b"],
    }


def test_equal_runs_of_two_requests_are_planned_once(toys):
    grid = jd.grid(toys.Toy, rate=[0.5, 1.0])
    requests = [
        Request(toys.decay, grid, (0, 1)),
        Request(toys.decay, grid.replace(rate=[1.0, 2.0]), (0, 1)),
    ]
    (job,) = planning.plan(requests, store=None)
    assert job.runs == 6


def test_trials_of_one_name_are_not_planned_together(toys, monkeypatch):
    """Their runs would be taken for those of one; alone each is planned. The same holds for settings."""

    def decay(s, key):
        return toys.decay(s, key)

    grid = jd.grid(toys.Toy)
    monkeypatch.setattr(decay, "__qualname__", "decay")
    monkeypatch.setattr(decay, "__module__", toys.decay.__module__)
    one, other = Request(toys.decay, grid, (0,)), Request(decay, grid, (0,))
    with pytest.raises(jd.UsageError, match="two different objects called toys:decay are not allowed"):
        planning.plan([one, other], store=None)
    assert [job.runs for request in (one, other, one) for job in planning.plan([request], store=None)] == [1, 1, 1]
    again = type("Toy", (toys.Toy,), {"hints": toys.Toy.hints, "__module__": toys.Toy.__module__})
    with pytest.raises(jd.UsageError, match="two different objects called toys:Toy are not allowed"):
        planning.plan([one, Request(toys.decay, dataclasses.replace(grid, base=again()), (0,))], store=None)


GPU = Devices("gpu", 8, 80 * 2**30)


def test_an_accelerator_makes_all_runs_at_once(toys):
    """Programs that are looped over on CPU, and those whose runs go in groups there."""
    requests = [Request(toys.solved, jd.grid(toys.Flow), (0, 1)), Request(toys.batches, jd.grid(toys.Batches, drawn=1000), (0, 1))]
    here = planning.plan(requests, store=None, quick=True)
    assert [job.program.executor for job in here] == ["map", "vmap"] and here[1].chunks[0].group > 0
    with elsewhere(GPU):
        there = planning.plan(requests, store=None, quick=True)
    assert [(job.program.executor, job.program.compiler, job.chunks[0].group) for job in there] == 2 * [("flat", "full", 0)]
    assert {job.program.identity() for job in there}.isdisjoint(job.program.identity() for job in here)


def test_chunks_are_as_large_as_the_memory_of_all_devices(toys):
    request = Request(toys.decay, jd.grid(toys.Toy), tuple(range(1000)))
    size = planning.facts_of([program for program, _ in request.cells])
    (each,) = (facts["bytes"] for facts in size.values())
    for devices, runs in ((Devices("gpu", 1, 20 * each), 10), (Devices("gpu", 4, 20 * each), 40), (Devices("cpu"), 1000)):
        with elsewhere(devices):
            (job,) = planning.plan([request], store=None)
        assert len(job.chunks[0].seeds) == runs, devices


def test_lists_that_are_filled_up_for_all_devices_fit_into_the_memory(toys):
    """Nine would be filled up to sixteen on eight devices."""
    request = Request(toys.decay, jd.grid(toys.Toy), tuple(range(18)))
    (facts,) = planning.facts_of([program for program, _ in request.cells]).values()
    for fit, sizes in ((9, [6, 6, 6]), (8, [6, 6, 6]), (7, [6, 6, 6]), (16, [9, 9]), (17, [9, 9])):
        with elsewhere(Devices("gpu", 8)):
            (job,) = planning.plan([request], store=None, memory=fit * facts["bytes"])
        assert [chunk.runs for chunk in job.chunks] == sizes, fit
        filled = [chunk.shape[1] + -chunk.shape[1] % 8 for chunk in job.chunks]
        assert max(filled) <= max(8, fit)


def test_an_accelerator_gets_the_runs_of_all_grids_in_one_list(toys):
    """Each once, compiled once, with nothing filled up."""
    grid = jd.grid(toys.Toy, lr=[0.01, 0.02])
    requests = [
        Request(toys.decay, grid, tuple(range(40))),
        Request(toys.decay, grid.replace(rate=[2.0, 3.0, 4.0]), (0,)),
        Request(toys.decay, grid, tuple(range(20, 60))),
    ]
    with elsewhere(GPU):
        (job,) = planning.plan(requests, store=None)
        (first, last) = planning.plan(requests, store=None, chunk=100)[0].chunks
    asked = {(cell, seed) for request in requests for _, cell in request.cells for seed in request.seeds}
    (whole,) = job.chunks
    assert whole.zipped and whole.runs == len(asked) == 126 and set(whole.pairs) == asked
    assert first.runs == last.runs == 63 and first.shape == last.shape and [*first.pairs, *last.pairs] == whole.pairs


@given(st.integers(1, 9), st.integers(1, 5), st.integers(1, 12))
def test_lists_are_as_few_as_their_limit_allows(cells, seeds, most):
    one = Chunk(Program(Ref("m", "f"), Ref("m", "S"), ()), tuple((i,) for i in range(cells)), tuple(range(seeds)))
    lists = planning.lists([one, one], most)
    assert [pair for each in lists for pair in each.pairs] == one.pairs
    assert len(lists) == -(-cells * seeds // most) and len({each.shape for each in lists}) == 1
    assert all(each.runs <= each.shape[1] <= most for each in lists)


@given(st.integers(1, 30), st.integers(1, 12), st.integers(1, 14))
def test_lists_are_as_long_as_what_is_compiled_unless_half_of_them_were_empty(runs, most, length):
    one = Chunk(Program(Ref("m", "f"), Ref("m", "S"), ()), ((1,),), tuple(range(runs)))
    lists, without = planning.lists([one], most, length), planning.lists([one], most)
    assert [pair for each in lists for pair in each.pairs] == one.pairs
    longest = -(-runs // length) * length
    if length <= most and longest <= 2 * runs:
        assert {each.shape[1] for each in lists} == {length} and len(lists) == longest // length
    else:
        assert lists == without
