"""The three approaches on tables whose exponents are known."""

import numpy as np
import pytest

from jaxdyn.theories.scal import approaches
from jaxdyn.theories.scal.dynamics import laws
from jaxdyn.theories.scal.published import LAWS

LAW = laws.Law(e=1.0, a=40.0, b=60.0, alpha=0.4, beta=0.4)


def made(law, sizes, budgets):
    return laws.loss(law, sizes[:, None], budgets / (laws.COST * sizes[:, None]))


def test_a_symmetric_law():
    sizes, budgets = np.geomspace(1e3, 1e6, 31), np.geomspace(6e8, 6e10, 7)
    found = approaches.estimates(sizes, budgets, made(LAW, sizes, budgets))
    assert found.exponents.shape == (3,)
    assert (abs(found.exponents - 0.5) <= (0.02, 0.02, 1e-6)).all()
    np.testing.assert_allclose(np.exp(found.vertices), laws.optimum(LAW, budgets)[0], rtol=0.2)
    assert found.held_out < 1e-6


def test_several_tables_at_once_and_one():
    sizes, budgets = np.geomspace(7e7, 1.6e10, 9), np.geomspace(6e18, 3e21, 5)
    one = made(LAWS["Besiroglu"], sizes, budgets)
    many = approaches.estimates(sizes, budgets, np.stack([one, one * 1.5]))
    assert many.exponents.shape == (2, 3) and many.theta.shape == (2, 5)
    np.testing.assert_allclose(many.exponents[0], approaches.estimates(sizes, budgets, one).exponents, rtol=1e-6)
    np.testing.assert_allclose(many.exponents[:, 2], laws.exponent(LAWS["Besiroglu"]), rtol=1e-5)


def test_resampled_runs():
    sizes, budgets = np.geomspace(1e3, 1e6, 7), np.geomspace(6e8, 6e10, 5)
    table = made(LAW, sizes, budgets)
    same = approaches.resampled(sizes, budgets, np.stack([table] * 3), 4)
    assert same.shape == (4, 3) and np.ptp(same, axis=0) == pytest.approx(0, abs=1e-9)
    noisy = table * (1 + 0.01 * np.random.default_rng(0).normal(size=(3, 7, 1)))
    assert approaches.resampled(sizes, budgets, noisy, 20)[:, 2].std() > 1e-3
