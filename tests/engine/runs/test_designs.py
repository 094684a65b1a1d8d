"""Designs of sweeps: values along ranges, points drawn within them, and lists of points as sweeps label them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kstest, qmc

import jaxdyn as jd
from jaxdyn.engine.base.parsing import Span
from jaxdyn.engine.runs.designs import values_along

DRAWN = {"rate": (0.1, 10.0, "log"), "lr": (0.0, 0.05), "size": (2, 5), "optimizer": ["gd", "sign"]}


def shares(points):
    """Where the points lie in their ranges, from 0 to 1."""
    rate, lr = (np.array(points.columns[name]) for name in ("rate", "lr"))
    return np.stack([np.log(rate / 0.1) / np.log(100), lr / 0.05], 1)


@settings(deadline=None, max_examples=25)
@given(
    low=st.floats(1e-3, 1e3),
    factor=st.floats(1.01, 1e6),
    log=st.booleans(),
    n=st.integers(1, 40),
    seed=st.integers(0, 2**32 - 1),
    method=st.sampled_from(["random", "sobol"]),
)
def test_points_lie_in_their_ranges(toys, low, factor, log, n, seed, method):
    span = (low, low * factor, *(["log"] if log else []))
    found = jd.random_grid(toys.Toy, n, rate=span, size=(3, 5), seed=seed, method=method, noisy=True)
    assert len(found.cells()) == n and all(low <= cell.rate <= low * factor and cell.noisy for cell in found.cells())
    assert set(found.columns["size"]) <= {3, 4, 5} and all(isinstance(size, int) for size in found.columns["size"])
    assert found == jd.random_grid(toys.Toy, n, noisy=True, size=(3, 5), rate=span, seed=seed, method=method)


@pytest.mark.parametrize("method", ["random", "sobol"])
def test_more_points_begin_with_the_fewer_and_other_seeds_are_others(toys, method):
    few, many, other = (
        jd.random_grid(toys.Toy, n, seed=seed, method=method, **DRAWN).cells() for n, seed in ((8, 1), (32, 1), (32, 2))
    )
    assert many[:8] == few and not {cell.rate for cell in many} & {cell.rate for cell in other}


def test_sobol_points_are_spread_more_evenly(toys):
    for seed in range(5):
        random, sobol = (
            qmc.discrepancy(shares(jd.random_grid(toys.Toy, 64, seed=seed, method=method, **DRAWN)))
            for method in ("random", "sobol")
        )
        assert sobol < random / 3
        found = jd.random_grid(toys.Toy, 64, seed=seed, method="sobol", **DRAWN)
        assert [found.columns["size"].count(size) for size in (2, 3, 4, 5)] == [16] * 4  # 64 is a power of two
        assert found.columns["optimizer"].count("gd") == 32


def test_draws_are_uniform_and_those_of_a_field_do_not_depend_on_others(toys):
    found = jd.random_grid(toys.Toy, 4000, **DRAWN)
    for column in shares(found).T:  # the share below a half: 4 standard errors
        assert abs((column < 0.5).mean() - 0.5) < 4 * 0.5 / 4000**0.5
    assert jd.random_grid(toys.Toy, 4000, rate=DRAWN["rate"]).columns["rate"] == found.columns["rate"]
    counts = np.bincount(found.columns["size"])[2:]
    assert len(counts) == 4 and abs(counts / 4000 - 0.25).max() < 4 * (0.25 * 0.75 / 4000) ** 0.5


@pytest.mark.parametrize("method", ["random", "sobol"])
def test_counts_are_drawn_as_whole_numbers(toys, method):
    drawn = jd.random_grid(toys.Counted, 4096, every=(1, 4), method=method).columns["every"]
    numbers, counts = np.unique(drawn, return_counts=True)
    assert numbers.tolist() == [1, 2, 3, 4] and abs(counts / 4096 - 0.25).max() < 4 * (0.25 * 0.75 / 4096) ** 0.5
    assert set(jd.random_grid(toys.Counted, 256, every=(1, 100, "log"), method=method).columns["every"]) <= set(range(1, 101))


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"rte": (1, 2)}, "Toy has no field 'rte'; it has: rate, lr"),
        ({"rate": (2.0, 1.0)}, "rate=2:1 is not allowed: a range goes from a number to a larger one"),
        ({"lr": (0.0, 1.0, "log")}, "lr=0:1:log is not allowed: a logarithmic range starts above 0"),
        ({"rate": (1.0, 2.0, "cube")}, r"rate=\(1.0, 2.0, 'cube'\) is not allowed: give \(low, high\)"),
        ({"size": (1.5, 3)}, "size=1.5 is not allowed: size is a whole number"),
        ({"size": (0, 3)}, "size=0 is not allowed: size is at least 1"),
        ({"rate": []}, r"rate=\[\] is not allowed: it is drawn from at least one value"),
        ({"rate": 1.0}, "nothing is drawn: give a field a range"),
        ({"rate": [1.0], "lr": "fast"}, "lr='fast' is not allowed: lr is a finite number"),
        ({"rate": [1.0], "method": "grid"}, "method='grid' is not allowed: method is random or sobol"),
        ({"rate": [1.0], "seed": -1}, "seed=-1 is not allowed: seed is at least 0"),
    ],
)
def test_bad_draws_are_one_sentence(toys, fields, sentence):
    with pytest.raises(jd.UsageError, match=sentence):
        jd.random_grid(toys.Toy, 64, **fields).cells()


def test_values_along_a_range(toys):
    assert values_along(toys.Toy, "rate", Span(0.01, 100.0, True), 5) == pytest.approx([0.01, 0.1, 1.0, 10.0, 100.0])
    assert values_along(toys.Toy, "rate", Span(0.1, 0.3), 3)[::2] == [0.1, 0.3]
    assert values_along(toys.Toy, "size", Span(1, 64, True), 7) == [1, 2, 4, 8, 16, 32, 64]
    assert values_along(toys.Toy, "depth", Span(1, 3), 10) == [1, 2, 3]
    assert values_along(toys.Toy, "rate", Span(1.0, 2.0), 1) == [1.0]
    assert values_along(toys.Counted, "every", Span(1, 64, True), 4) == [1, 4, 16, 64]
    assert values_along(toys.Counted, "every", Span(1, 3), 10) == [1, 2, 3]
    with pytest.raises(jd.UsageError, match="kind takes no range"):
        values_along(toys.Toy, "kind", Span(1, 2), 3)


@settings(deadline=None, max_examples=40)
@given(
    low=st.floats(-300, 250),
    decades=st.floats(0.5, 550),
    method=st.sampled_from(["random", "sobol"]),
    seed=st.integers(0, 2**32 - 1),
)
def test_logarithmic_ranges_of_any_width(toys, low, decades, method, seed):
    """Also those whose ends have no finite ratio: within the range, uniform in the logarithm, and equal factors along it."""
    high = min(low + decades, 300.0)
    span = (10.0**low, 10.0**high, "log")
    found = jd.random_grid(toys.Toy, 256, rate=span, seed=seed, method=method).columns["rate"]
    assert all(span[0] <= value <= span[1] for value in found)
    shares = (np.log10(found) - low) / (high - low)
    assert kstest(shares, "uniform").statistic < 2.5 / 256**0.5  # less likely than 1e-5
    along = values_along(toys.Toy, "rate", Span(span[0], span[1], True), 9)
    assert along[0] == span[0] and along[-1] == span[1]
    np.testing.assert_allclose(np.log10(along), np.linspace(low, high, 9), rtol=1e-12, atol=1e-9)


@settings(deadline=None, max_examples=40)
@given(
    low=st.one_of(st.integers(1, 2**61), st.integers(2**60, 2**60 + 9)).map(lambda n: 2**20 * n >> 20),
    width=st.integers(1, 6),
    log=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_large_whole_numbers_are_not_rounded(toys, low, width, log, seed):
    """All of a few neighbours are drawn, also where floats are hundreds apart."""
    low = int(float(low))  # ends of ranges are floats
    spaced = max(1, int(np.spacing(float(low))))
    high = low + spaced * width
    for method in ("random", "sobol"):
        found = jd.random_grid(toys.Toy, 512, size=(low, high, *["log"] * log), seed=seed, method=method).columns["size"]
        assert all(low <= value <= high and isinstance(value, int) for value in found)
        if spaced == 1:
            assert set(found) == set(range(low, high + 1))
        elif not log:
            assert len(set(found)) > min(width * spaced, 512) / 3
        assert min(found) - low <= max(1, (high - low) / 20) and high - max(found) <= max(1, (high - low) / 20)


def test_neighbours_of_a_large_whole_number(toys):
    first = 2**60
    assert len(set(jd.random_grid(toys.Toy, 64, size=(first, first + 1024)).columns["size"])) > 48
    found = values_along(toys.Toy, "size", Span(first, first + 1024), 5)
    assert found == [first, first + 256, first + 512, first + 768, first + 1024]
    small = 2**52
    assert values_along(toys.Toy, "size", Span(small, small + 4), 5) == list(range(small, small + 5))
    assert values_along(toys.Toy, "size", Span(small, small + 4, True), 5) == list(range(small, small + 5))


ROWS = [{"rate": 2.0, "lr": 0.02}, {"rate": 0.5, "size": 2}, {"rate": 2.0, "lr": 0.02}]


def test_a_list_of_points_is_run_like_the_cells_of_a_grid(toys):
    """To rounding, since chunks of other sizes are other programs."""
    ds = jd.sweep(toys.decay, jd.points(toys.Toy, ROWS, optimizer="sign"), [3, 5])
    assert ds.status.dims == ("point", "seed") and ds.measured_x.dims == ("point", "seed", "entry")
    assert {name: ds[name].values.tolist() for name in ("point", "rate", "lr", "size")} == {
        "point": [0, 1, 2],
        "rate": [2.0, 0.5, 2.0],
        "lr": [0.02, 0.01, 0.02],
        "size": [3, 2, 3],
    }
    for i, row in enumerate(ROWS):
        alone = jd.sweep(toys.decay, jd.grid(toys.Toy, optimizer="sign", **row), [3, 5])
        np.testing.assert_allclose(ds.measured_x.isel(point=i, entry=slice(ds.size.values[i])), alone.measured_x, rtol=1e-14)
    assert np.isnan(ds.measured_x.isel(point=1, entry=2)).all()
    assert ds.where(ds.rate > 1, drop=True).sizes["point"] == 2
    assert '"rate": [2.0, 0.5, 2.0]' in ds.attrs["settings"]


def test_points_are_stored_and_grids_use_them(toys, chunks_run, tmp_path):
    first = jd.sweep(toys.decay, jd.random_grid(toys.Toy, 6, rate=(1.0, 2.0)), 2, out=tmp_path / "out")
    runs = sum(chunk.runs for chunk in chunks_run)
    again = jd.sweep(toys.decay, jd.random_grid(toys.Toy, 4, rate=(1.0, 2.0)), 2, out=tmp_path / "out")
    one = jd.sweep(toys.decay, jd.grid(toys.Toy, rate=[first.rate.values[1]]), 2, out=tmp_path / "out")
    assert sum(chunk.runs for chunk in chunks_run) == runs == 12
    assert again.equals(first.isel(point=slice(4)))
    np.testing.assert_array_equal(one.measured_x.isel(rate=0), first.measured_x.isel(point=1))


def test_other_values_for_all_points(toys):
    found = jd.points(toys.Toy, ROWS, optimizer="sign").replace(lr=0.5, noisy=True)
    assert [(cell.rate, cell.lr, cell.size, str(cell.optimizer), cell.noisy) for cell in found.cells()] == [
        (2.0, 0.5, 3, "sign", True),
        (0.5, 0.5, 2, "sign", True),
        (2.0, 0.5, 3, "sign", True),
    ]
    with pytest.raises(jd.UsageError, match=r"lr=\[1, 2\] is not allowed: a list of points has no axes"):
        found.replace(lr=[1, 2])


@jd.setting
class Pointed:
    """A field with the name of the axis."""

    point: jd.Swept = 1.0


def test_bad_lists_of_points_are_one_sentence(toys):
    for rows, sentence in (
        ([], r"rows=\[\] is not allowed: a list of points has at least one"),
        ([{}], "rows without fields are not allowed"),
        ({"rate": 1}, "rows=.* is not allowed: it is a list of dicts"),
        ([{"rat": 1}], "Toy has no field 'rat'"),
        ([{"rate": 1}, {"rate": -1}], "rate=-1.0 is not allowed: rate is positive"),
    ):
        with pytest.raises(jd.UsageError, match=sentence):
            jd.points(toys.Toy, rows).cells()
    with pytest.raises(jd.UsageError, match="Pointed.point is not allowed in a list of points"):
        jd.points(Pointed, [{"point": 1.0}])


def test_a_claim_is_judged_over_a_product(toys):
    with pytest.raises(jd.UsageError, match=r"quick=.* is not allowed: .*a grid, jd.grid\(...\)"):
        jd.Study(trial=toys.decay, quick=jd.points(toys.Toy, ROWS), source="", evidence="algebra").claim(
            id="toy.x", title="x", statement="x", judge=lambda ds: [], bounds="derived"
        )
