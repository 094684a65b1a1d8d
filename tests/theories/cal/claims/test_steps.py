"""Finite steps: reference numbers, and judges that reject what is wrong."""

import numpy as np
import pytest

from jaxdyn.theories.cal import orders
from jaxdyn.theories.cal.claims import steps as claims
from tests.theories.cal.helpers import distorted, passed, steps_data


def test_reference_numbers_of_finite_steps():
    end = steps_data().sel(start="uv").isel(seed=0, time=-1)
    np.testing.assert_allclose(end.predicted_flow[0, [0, 20]], [1.6011336, 0.5946670], atol=1e-7)
    lead = (end.predicted_lead - end.predicted_flow)[0, [0, 20]] / 0.1
    np.testing.assert_allclose(lead, [-0.0251584, 0.1164147], atol=1e-7)
    reference = {
        "flow": [0.01238, 0.00607, 0.00301],
        "lead": [9.3e-4, 2.2e-4, 5.3e-5],
        "modified": [2.2e-3, 5.5e-4, 1.4e-4],
    }
    for name, far in reference.items():
        error = orders.distance(end[f"measured_{name}"] - end[f"predicted_{name}"])
        np.testing.assert_allclose(error, far, rtol=0.03)


@pytest.mark.parametrize(("name", "order"), [("flow", 1), ("lead", 2), ("modified", 2)])
def test_order_judge_upholds_the_law_and_nothing_near_it(name, order):
    ds = steps_data()
    assert passed(orders.order_checks(ds, name, order, 0.15))
    assert not passed(orders.order_checks(distorted(ds, name, 1.001), name, order, 0.15))
    assert not passed(orders.order_checks(ds, name, 3 - order, 0.15))


def test_invariant_judge():
    ds = steps_data()
    assert passed(claims.judge_invariant(ds))
    for name in ("balance", "drift", "lead_drift"):
        assert not passed(claims.judge_invariant(distorted(ds, name))), name


def test_a_leading_error_twice_as_large_is_rejected():
    claim = next(c for c in claims.CLAIMS if c.id == "cal.lead_error")
    ds = steps_data()
    assert not passed(claim.judge(ds.assign(predicted_lead=2 * ds.predicted_lead - ds.predicted_flow)))


def test_rivals_are_rejected():
    for claim in claims.CLAIMS:
        for rival in claim.rivals.values():
            assert not passed(claim.judge(rival(steps_data()))), claim.id
