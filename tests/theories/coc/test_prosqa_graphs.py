"""Statistics of ProsQA: the judge on numbers made by hand, the printed numbers, and the released files where they are."""

import json

import numpy as np
import pytest
import xarray as xr

from jaxdyn.data import prosqa
from jaxdyn.errors import UsageError
from jaxdyn.theories.coc import published
from jaxdyn.theories.coc.growth import STATISTICS
from jaxdyn.theories.coc.prosqa_graphs import TOLERANCE, Graphs, judge
from tests.data.test_prosqa import RELEASED, needs_files


def data(factors):
    """Means that are these multiples of the printed ones, with a spread of a thousandth over eight seeds."""
    printed = np.array(list(published.GRAPHS.values()))
    spread = 1 + 1e-3 * np.linspace(-1, 1, 8)[:, None]
    coords = {"statistic": list(STATISTICS)}
    return xr.Dataset(
        {
            "predicted_statistic": (("seed", "statistic"), printed * np.array(factors) * spread),
            "measured_statistic": (("seed", "statistic"), np.broadcast_to(printed, (8, 4))),
        },
        coords,
    )


def test_each_statistic_has_its_tolerance():
    assert [c.passed for c in judge(data([1.0] * 4))] == [True] * 4
    for place, off in enumerate(TOLERANCE):
        for factor in (1 - 1.5 * off, 1 + 1.5 * off):
            factors = [1.0] * 4
            factors[place] = factor
            assert [c.passed for c in judge(data(factors))] == [i != place for i in range(4)]


def test_graphs_fit_their_matrix():
    with pytest.raises(UsageError, match="nodes is at most largest"):
        Graphs(nodes=30.0)


@needs_files
def test_released_files_have_the_printed_sizes_and_statistics():
    sizes = [len(json.loads((RELEASED / f"{name}.json").read_text(encoding="utf-8"))) for name in ("valid", "test")]
    assert tuple(sizes) == published.SETS["ProsQA"][1:]
    theirs = prosqa.statistics(prosqa.load(RELEASED / "valid.json") + prosqa.load(RELEASED / "test.json"))
    for (name, printed), off in zip(published.GRAPHS.items(), TOLERANCE, strict=True):
        assert abs(theirs[name].mean() / printed - 1) < off, name
