"""Judging an order of convergence: what it needs, and in which units the Richardson limit is measured."""

import numpy as np
import pytest
import xarray as xr

import jaxdyn as jd
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
