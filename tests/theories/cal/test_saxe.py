"""Starts of linear networks and their predictions against SciPy, with the solver replaced; the judge of the exact solutions."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.status import OK
from jaxdyn.theories.cal import saxe
from tests.theories.cal.helpers import distorted, passed, solve


class Start(NamedTuple):
    """A solution that stays at its start."""

    ys: Any
    steps: Any
    status: Any


@pytest.fixture
def starting(monkeypatch, x64):
    """Run a trial with a flow that stays at its start; returns start, target, rates and observables."""

    def run(trial, s):
        seen = []

        def stay(loss, start, ts, m, *args, rate=None, **options):
            seen.append((start, m, rate))
            ys = jax.tree.map(lambda w: jnp.broadcast_to(w, (len(ts), *w.shape)), start)
            return Start(ys, jnp.int32(0), jnp.int32(OK))

        monkeypatch.setattr(saxe.flow, "gradient_flow", stay)

        def both(key):
            seen.clear()
            out = trial(s, key)
            return out.predicted, out.measured, seen[0]

        predicted, measured, (start, m, rate) = jax.device_get(jax.jit(both)(jax.random.key(5)))
        return start, m, rate, predicted["product"].value, measured["product"].value

    return run


@pytest.mark.thinned
@pytest.mark.parametrize("gram", [False, True])
@pytest.mark.parametrize(
    ("start", "imbalance"), [("aligned", 0.0), ("unbalanced", 0.3), ("frames", 0.0), *[("unbalanced", c) for c in (0.0, -0.3)]]
)
def test_the_prediction_is_the_flow_of_the_two_layer_start(starting, start, imbalance, gram):
    """Of the network's map, and of the Gram matrix of all weights."""
    s = saxe.TwoLayer(start=start, imbalance=imbalance, gram=gram, inputs=3, hidden=4, outputs=2, horizon=2.0, samples=4)
    (w1, w2), m, _, predicted, measured = starting(saxe.two_layer_trial, s)
    balance = w1 @ w1.T - w2.T @ w2
    np.testing.assert_allclose(np.linalg.eigvalsh(balance), sorted([0, 0, *[imbalance] * 2]), atol=1e-12)

    def compared(w1, w2):
        q = np.concatenate([w1.T, w2])
        return q @ q.T if gram else w2 @ w1

    np.testing.assert_allclose(measured[3], compared(w1, w2), rtol=1e-12, atol=1e-15)

    def field(y):
        w1, w2 = y[:12].reshape(4, 3), y[12:].reshape(2, 4)
        return np.concatenate([(w2.T @ (m - w2 @ w1)).ravel(), ((m - w2 @ w1) @ w1.T).ravel()])

    ends = solve(field, np.concatenate([w1.ravel(), w2.ravel()]), np.linspace(0, 2, 5))
    exact = [compared(y[:12].reshape(4, 3), y[12:].reshape(2, 4)) for y in ends]
    np.testing.assert_allclose(predicted, exact, atol=1e-9)


@pytest.mark.parametrize("depth", [1, 3])
def test_the_prediction_is_the_flow_of_the_deep_start(starting, depth):
    """Matrices beyond the depth are the identity and stay; the others are balanced."""
    s = saxe.Deep(depth=depth, width=2, max_depth=4, horizon=2.0, samples=4)
    weights, m, rate, predicted, measured = starting(saxe.deep_trial, s)
    assert [float(r) for r in rate] == [1.0] * depth + [0.0] * (4 - depth)
    for w in weights[depth:]:
        np.testing.assert_array_equal(w, np.eye(2))
    for first, second in zip(weights[: depth - 1], weights[1:depth], strict=True):
        np.testing.assert_allclose(first @ first.T, second.T @ second, atol=1e-12)

    def field(y):
        ws = [*y.reshape(depth, 2, 2)]
        product = np.linalg.multi_dot([*ws[::-1], np.eye(2)])
        slopes = []
        for i in range(depth):
            after = np.linalg.multi_dot([*ws[:i:-1], np.eye(2), np.eye(2)])
            before = np.linalg.multi_dot([np.eye(2), np.eye(2), *ws[:i][::-1]])
            slopes.append(after.T @ (m - product) @ before.T)
        return np.ravel(slopes)

    ends = solve(field, np.ravel(weights[:depth]), np.linspace(0, 2, 5)).reshape(5, depth, 2, 2)
    exact = [np.linalg.multi_dot([*ws[::-1], np.eye(2)]) for ws in ends]
    np.testing.assert_allclose(predicted, exact, atol=1e-9)
    np.testing.assert_allclose(measured[0], exact[0], atol=1e-12)


def test_what_the_theory_does_not_know_of_a_deep_start_leaves_its_product(starting):
    """``unknown`` is added to the first matrix's squared singular values, the product stays; ``miscount`` is the theory's alone."""
    plain, odd = (
        starting(saxe.deep_trial, saxe.Deep(unknown=u, miscount=c, width=2, samples=4)) for u, c in ((0.0, 0.0), (0.2, 1.0))
    )
    squares = [np.linalg.svd(run[0][0], compute_uv=False) ** 2 for run in (plain, odd)]
    np.testing.assert_allclose(squares[1] - squares[0], 0.2, rtol=1e-10)
    np.testing.assert_allclose(odd[4], plain[4], rtol=1e-10)
    np.testing.assert_allclose(odd[3][0], plain[3][0], rtol=1e-10)
    assert np.abs(odd[3] - plain[3]).max() > 1e-3


@pytest.mark.parametrize(
    ("cls", "fields"),
    [
        (saxe.TwoLayer, {"values": (1.0, 2.0)}),
        (saxe.Deep, {"depth": 2.5}),
        (saxe.Deep, {"depth": 5.0}),
        (saxe.Deep, {"values": (1.0, 0.5)}),
    ],
)
def test_settings_are_checked(cls, fields):
    with pytest.raises(jd.UsageError, match=next(iter(fields))):
        cls(**fields)


@pytest.mark.slow
def test_symmetric_factors_follow_their_closed_form():
    ds = jd.sweep(saxe.symmetric_trial, jd.grid(saxe.Symmetric, split=[0.0, 0.1], size=3, rank=2, samples=4), 2)
    assert passed(saxe.judge(ds.sel(split=0.0)))
    assert not passed(saxe.judge(distorted(ds.sel(split=0.0), "product", 1 + 1e-6)))
    miss = jd.relative_error(ds.sel(split=0.1), "product", "time row col")
    assert float(miss.min()) > 1e-3, "factors apart by 0.1 show"
