"""Judging an order of convergence: what it needs, and in which units the Richardson limit is measured."""

import numpy as np
import pytest
import xarray as xr

import jaxdyn as jd
from jaxdyn.stats import loglog_slope
from jaxdyn.theories.cal import orders
from tests.theories.cal.helpers import steps_data


def test_order_judge_needs_halvings():
    ds = steps_data()
    for etas in ([0.1, 0.05], [0.1, 0.05, 0.03]):
        with pytest.raises(jd.Inconclusive):
            orders.order_checks(ds.isel(eta=range(len(etas))).assign_coords(eta=etas), "flow", 1, 0.1)
    with pytest.raises(jd.Inconclusive):
        orders.order_checks(ds.isel(eta=0), "flow", 1, 0.1)


def test_richardson_limit_is_measured_in_its_own_error():
    eta = xr.DataArray(np.array([0.4, 0.2, 0.1]), dims="eta")
    law = (eta + 0.3 * eta**2) * xr.DataArray([1.0, -2.0], dims="entry")
    assert float(orders.limit_ratio(law, 1)) == pytest.approx(1.0)
    assert float(orders.limit_ratio(law + 0.5, 1)) > 3


def test_the_order_in_the_limit_is_free_of_the_part_of_first_order():
    eta = xr.DataArray(0.1 / 2 ** np.arange(5.0), dims="eta", coords={"eta": 0.1 / 2 ** np.arange(5.0)})
    error = eta**2 * (1 + 6 * eta)
    assert float(loglog_slope(eta, error, "eta")) > 2.1
    second = 3 * (6 * float(eta[-1])) ** 2 / np.log(2)
    assert 0 < float(orders.limit_order(error)) - 2 < second, "a series of falling terms with alternating signs"


def test_errors_of_zero_have_no_order():
    assert np.isnan(orders.limit_order(xr.DataArray(np.zeros(3), dims="eta")))


@pytest.mark.slow
def test_orders_hold_where_a_slope_through_all_step_sizes_is_above_its_bound():
    """At seed 262 that slope is 2.101."""
    verified = jd.verify("cal.lead_error", seeds=[262, 519])
    assert verified.verdict == "upheld"
    assert verified.checks[0].value == pytest.approx(2, abs=0.01)
