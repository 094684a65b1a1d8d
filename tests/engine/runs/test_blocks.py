"""Finished runs, looked up and put together: results made by hand, whose numbers say where they belong."""

import json

import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.engine.base.reference import ref_to
from jaxdyn.engine.claims.setting import split
from jaxdyn.engine.programs.chunk import Chunk, Program, versions
from jaxdyn.engine.runs.blocks import Request, Runs
from jaxdyn.engine.storage.arrays import Arrays


@jd.setting
class Words:
    """Fields that are tuples, or missing."""

    words: tuple[str, ...] = ("x",)
    sizes: tuple[int, ...] | None = None


def trial_of_words(s, key):
    return jd.observables(recorded={"sizes_given": np.float64(0 if s.sizes is None else len(s.sizes))})


def program(toys, setting, **changes):
    return Program(ref_to(toys.decay), ref_to(toys.Toy), split(setting)[0], **changes)


def number(cell, seed, entries):
    """A number for each place: the cell's values and the seed are its digits."""
    return 1000 * cell.rate + 100 * cell.lr + 10 * seed + np.arange(entries)


def filled(toys, grid, seeds, entries=lambda cell: 2, coords=lambda cell: {"entry": ("a", "b")}):
    """All runs of a grid, a result for each static setting and seed (the last seed first)."""
    runs = Runs()
    for seed in reversed(seeds):
        groups = {}
        for cell in grid.cells():
            groups.setdefault(split(cell)[0], []).append(cell)
        for cells in groups.values():
            array = np.stack([number(c, seed, entries(c)) for c in cells])[None]
            result = Arrays({"measured_x": array}, {"measured_x": ("entry",)}, coords(cells[0]))
            runs.add(program(toys, cells[0]), [split(c)[1] for c in cells], [seed], result)
    return runs


def test_every_run_lands_at_its_coordinates(toys):
    grid, seeds = jd.grid(toys.Toy, rate=[1.0, 2.0, 3.0], lr=[0.1, 0.2]), (3, 0)
    ds = filled(toys, grid, seeds).dataset(Request(toys.decay, grid, seeds))
    assert ds.measured_x.dims == ("rate", "lr", "seed", "entry") and ds.entry.values.tolist() == ["a", "b"]
    for cell in grid.cells():
        for seed in seeds:
            np.testing.assert_array_equal(ds.measured_x.sel(rate=cell.rate, lr=cell.lr, seed=seed), number(cell, seed, 2))


def test_ragged_runs_are_padded_and_their_coordinates_are_the_longest(toys):
    grid, seeds = jd.grid(toys.Toy, size=[3, 1]), (0,)
    runs = filled(toys, grid, seeds, lambda c: c.size, lambda c: {"entry": tuple(range(2, c.size + 2))})
    ds = runs.dataset(Request(toys.decay, grid, seeds))
    assert ds.measured_x.dtype == float and ds.entry.values.tolist() == [2, 3, 4]
    np.testing.assert_array_equal(np.isnan(ds.measured_x.sel(size=1, seed=0)), [False, True, True])
    np.testing.assert_array_equal(ds.measured_x.sel(size=3, seed=0), number(toys.Toy(), 0, 3))


def recording(toys, *arrays):
    """The Dataset of runs of three sizes, each of which records one of these arrays."""
    grid, runs = jd.grid(toys.Toy, size=list(range(1, len(arrays) + 1))), Runs()
    for cell, array in zip(grid.cells(), arrays, strict=True):
        dims = {"x": ("entry",)} if array.ndim else {"x": ()}
        runs.add(program(toys, cell), [split(cell)[1]], [0], Arrays({"x": array[None, None]}, dims, {}))
    return runs.dataset(Request(toys.decay, grid, (0,)))


@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
def test_whole_numbers_that_padding_would_round_are_refused(toys, dtype):
    big, short = 2**53, np.ones(1, dtype)
    for odd in (big + 1, np.iinfo(dtype).max, *([1 - 2**62] if dtype is np.int64 else [])):
        with pytest.raises(jd.UsageError) as error:
            recording(toys, np.array([1, odd, 2], dtype), short)
        assert f"toys:decay returns x={odd}, which is not allowed: arrays of several lengths" in str(error.value)
        assert recording(toys, np.array([odd], dtype), short).x.values.ravel().tolist() == [odd, 1], "without padding all is held"
    for held in (big, big + 2, 2**62):
        padded = recording(toys, np.array([held, 3], dtype), short).x
        assert padded.dtype == float and padded.values.ravel()[:3].tolist() == [held, 3, 1]


def test_whole_numbers_next_to_other_kinds_are_refused_if_rounded(toys):
    with pytest.raises(jd.UsageError, match=r"x=9007199254740993, which is not allowed: other settings return numbers of another"):
        recording(toys, np.array(2**53 + 1), np.array(0.5))
    assert recording(toys, np.array(2**53), np.array(0.5)).x.values.ravel().tolist() == [2**53, 0.5]


def test_short_whole_numbers_are_padded_whatever_their_size(toys):
    for dtype in (np.int8, np.uint8, np.int16, np.int32, np.uint32, bool):
        ends = [0, 1] if dtype is bool else [np.iinfo(dtype).min, np.iinfo(dtype).max]
        assert recording(toys, np.array(ends, dtype), np.zeros(1, dtype)).x.values[0, 0].tolist() == ends


@pytest.mark.parametrize(
    ("coords", "words"),
    [
        (
            lambda c: {"entry": tuple(range(0, 10 * c.size, c.size))[: c.size]},
            r"\(0, 5, 10, …\) and, for other settings, as \(0, 3, 6\)",
        ),
        (lambda c: {"entry": (0,) * c.size} if c.size == 3 else {}, r"\(0, 0, 0\) and, for other settings, as none"),
    ],
)
def test_coordinates_that_differ_are_refused(toys, coords, words):
    """Without them, places would be taken for values: positions for steps, say."""
    grid, seeds = jd.grid(toys.Toy, size=[3, 5]), (0,)
    runs = filled(toys, grid, seeds, lambda c: c.size, coords)
    with pytest.raises(jd.UsageError, match=f"toys:decay returns the coords of 'entry' as {words}: all cells"):
        runs.dataset(Request(toys.decay, grid, seeds))


def test_tuples_are_coordinates_in_words(toys):
    grid = jd.grid(toys.Toy, weights=[(1, 2), (3,)])
    ds = filled(toys, grid, (0,)).dataset(Request(toys.decay, grid, (0,)))
    assert ds.weights.values.tolist() == ["1:2", "3"]
    with pytest.raises(jd.UsageError, match=r"words: \('a:b',\) and \('a', 'b'\) are not allowed together"):
        jd.sweep(trial_of_words, jd.grid(Words, words=[("a:b",), ("a", "b")]))


@pytest.mark.parametrize("values", [[None, (1, 2)], [(1, 2), None], [None]])
def test_an_axis_may_have_missing_values(values):
    ds = jd.sweep(trial_of_words, jd.grid(Words, sizes=values))
    assert ds.sizes_given.values.ravel().tolist() == [0 if v is None else len(v) for v in values]
    assert ds.sel(sizes="none").sizes_given.item() == 0


def test_a_dataset_says_what_was_run(toys):
    """The trial, every field of the setting, the seeds and the versions: enough to ask for the same runs again."""
    grid, seeds = jd.grid(toys.Toy, rate=[1.0, 2.0], size=2, weights=(3,), optimizer="sign"), (4, 5, 6)
    request = Request(toys.decay, grid, seeds)
    attributes = filled(toys, grid, seeds).dataset(request).attrs
    assert attributes["trial"] == "toys:decay" and attributes["seeds"] == "4:7"
    assert Request(toys.decay, grid, (0, 2)).attributes()["seeds"] == "0, 2"
    fields = json.loads(attributes["settings"])
    fields["weights"] = tuple(fields["weights"])  # JSON knows lists only
    assert jd.grid(toys.Toy, **fields).cells() == grid.cells()
    assert dict(words.split() for words in attributes["versions"].split(", ")) == {"jaxdyn": jd.__version__, **versions()}


@pytest.mark.parametrize(
    ("name", "dims", "words"),
    [
        ("measured_x", ("rate",), "an axis called rate clashes"),
        ("seed", ("entry",), "its own name clashes"),
        ("measured_x", ("entry", "entry"), "one axis twice clashes"),
    ],
)
def test_names_that_clash_with_the_runs_axes_are_refused(toys, name, dims, words):
    grid, runs = jd.grid(toys.Toy, rate=[1.0]), Runs()
    cell = grid.cells()[0]
    result = Arrays({name: np.zeros((1, 1, *[1] * len(dims)))}, {name: dims}, {})
    runs.add(program(toys, cell), [split(cell)[1]], [0], result)
    with pytest.raises(jd.UsageError, match=words):
        runs.dataset(Request(toys.decay, grid, (0,)))


def test_a_chunk_is_there_when_all_its_runs_are_however_they_were_executed(toys):
    grid = jd.grid(toys.Toy, rate=[1.0, 2.0])
    runs, cells = filled(toys, grid, (0, 1)), tuple(split(c)[1] for c in grid.cells())
    mapped = program(toys, toys.Toy(), executor="map", compiler="light")
    assert runs.has(Chunk(mapped, cells, (1, 0)))
    assert not runs.has(Chunk(mapped, cells, (0, 2)))
    assert not runs.has(Chunk(mapped, (*cells, split(toys.Toy(rate=3.0))[1]), (0,)))
    assert not runs.has(Chunk(program(toys, toys.Toy(size=4)), cells, (0,)))


def test_a_run_that_is_there_stays(toys):
    """What was stored first is used; the same run of a later shard does not replace it."""
    grid = jd.grid(toys.Toy)
    runs, cell = filled(toys, grid, (0,)), grid.cells()[0]
    other = Arrays({"measured_x": np.zeros((1, 1, 2))}, {"measured_x": ("entry",)}, {})
    runs.add(program(toys, cell), [split(cell)[1]], [0], other)
    ds = runs.dataset(Request(toys.decay, grid, (0,)))
    np.testing.assert_array_equal(ds.measured_x.sel(seed=0), number(cell, 0, 2))
