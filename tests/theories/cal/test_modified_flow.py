"""Training with finite steps against loops in NumPy, reference numbers, and judges that reject distorted predictions."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn.theories.cal import modified_flow, orders
from tests.theories.cal.helpers import distorted, passed, steps_data

S = modified_flow.Steps(eta=0.07, inputs=3, hidden=4, outputs=2, samples=2)
TRAIN = jax.jit(modified_flow.train_steps)


def moved(s, weights, m, count):
    """Weights after so many steps of the setting's optimizer, its textbook form."""
    velocity, square = [[np.zeros_like(w) for w in weights] for _ in range(2)]
    for n in range(1, count + 1):
        w1, w2 = weights
        gap = w2 @ w1 - m
        slopes = [w2.T @ gap + s.decay * w1, gap @ w1.T + s.decay * w2]
        if s.optimizer == "adam":
            velocity = [0.9 * v + 0.1 * g for v, g in zip(velocity, slopes, strict=True)]
            square = [0.999 * q + 0.001 * g**2 for q, g in zip(square, slopes, strict=True)]
            ways = [v / (1 - 0.9**n) / (np.sqrt(q / (1 - 0.999**n)) + 1e-8) for v, q in zip(velocity, square, strict=True)]
        else:
            beta = s.beta if s.optimizer == "heavy_ball" else 0.0
            velocity = ways = [beta * v + g for v, g in zip(velocity, slopes, strict=True)]
        weights = [w - s.eta * d for w, d in zip(weights, ways, strict=True)]
    return weights


@pytest.mark.parametrize(("optimizer", "decay"), [("gd", 0.0), ("gd", 0.3), ("heavy_ball", 0.0), ("adam", 0.0)])
def test_training_is_the_textbooks(x64, optimizer, decay):
    s = dataclasses.replace(S, optimizer=optimizer, decay=decay)
    start, m = modified_flow.problem(s, jax.random.key(1))
    weights, drift = TRAIN(s, start, m, jnp.int32(3))
    for record in range(3):
        for found, want in zip(weights, moved(s, [np.asarray(w) for w in start], np.asarray(m), 3 * record), strict=True):
            np.testing.assert_allclose(found[record], want, rtol=1e-9, atol=1e-12)
    if optimizer == "gd" and decay == 0:
        w1, w2 = (np.asarray(w) for w in weights)
        balance = w1 @ w1.swapaxes(1, 2) - w2.swapaxes(1, 2) @ w2
        np.testing.assert_allclose(drift, balance - balance[0], atol=1e-12)
        assert np.abs(drift[-1]).max() > 1e-3


def test_the_scalar_problem_sits_in_the_first_entries(x64):
    (w1, w2), m = modified_flow.problem(dataclasses.replace(S, start="uv"), jax.random.key(0))
    assert (w1[0, 0], w2[0, 0], m[0, 0]) == (1.5, 0.2, 1.0)
    assert [int(jnp.count_nonzero(x)) for x in (w1, w2, m)] == [1, 1, 1]


@pytest.mark.slow
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
    assert passed(modified_flow.judge_invariant(ds))
    for name in ("balance", "drift", "lead_drift"):
        assert not passed(modified_flow.judge_invariant(distorted(ds, name))), name


def test_a_leading_error_twice_as_large_is_rejected():
    claim = next(c for c in modified_flow.CLAIMS if c.id == "cal.lead_error")
    ds = steps_data()
    assert not passed(claim.judge(ds.assign(predicted_lead=2 * ds.predicted_lead - ds.predicted_flow)))
