"""The averages of the published tables: which are the means of their cells, in plain numbers."""

import numpy as np

import jaxdyn as jd
from jaxdyn.theories.assort import published
from jaxdyn.theories.assort.table_means import Tables, judge, trial

MEANS = {name: sum(cells) / len(published.SETS) for name, (cells, _) in published.AVERAGES.items()}


def test_the_corrected_rows_are_those_that_are_off():
    off = {name for name, (_, average) in published.AVERAGES.items() if abs(average - MEANS[name]) > 0.1}
    assert off == published.CORRECTED.keys() and all(len(cells) == 7 for cells, _ in published.AVERAGES.values())
    assert all(abs(value - MEANS[name]) < 0.05 + 1e-9 for name, value in published.CORRECTED.items())


def test_both_forms_and_the_judge():
    ds = jd.sweep(trial, jd.grid(Tables), 1)
    np.testing.assert_allclose(ds.measured_average.squeeze(), list(MEANS.values()), rtol=1e-12)
    printed, derived = (judge(ds.sel(form=form)) for form in ("printed", "derived"))
    assert [c.passed for c in printed] == [False, False] and [c.passed for c in derived] == [True, True]
    np.testing.assert_allclose([c.value for c in printed], [0.6, 2.994286], atol=1e-6)
