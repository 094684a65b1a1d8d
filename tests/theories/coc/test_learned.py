"""The gate on networks that learned the task, at its threshold."""

import numpy as np
import xarray as xr

from jaxdyn.theories.coc import learned


def made(*last):
    data = np.stack([np.zeros(len(last)), np.array(last)], 1)
    return xr.Dataset({"measured_answered": (("seed", "inputs"), data)}, {"seed": range(len(last)), "inputs": range(2)})


def test_networks_at_the_threshold_count():
    gate, flags = learned.able(made(0.79, 0.8, 1.0))
    assert gate.passed is True and flags.values.tolist() == [False, True, True]
    np.testing.assert_array_equal(learned.learners(made(0.79, 0.8, 1.0)), flags)


def test_one_network_is_not_enough():
    assert learned.able(made(0.79, 0.95))[0].passed is False


def test_where_fewer_than_two_learned_all_count():
    two, one = made(0.79, 0.8, 1.0), made(0.79, 0.5, 1.0)
    assert learned.among_learners(two.seed, learned.learners(two)).notnull().values.tolist() == [False, True, True]
    assert learned.among_learners(one.seed, learned.learners(one)).notnull().values.tolist() == [True, True, True]


def test_figures_show_networks_that_learned_or_all():
    assert learned.shown(made(0.79, 0.8, 1.0)).seed.values.tolist() == [1, 2]
    assert learned.shown(made(0.1, 0.2)).sizes["seed"] == 2
