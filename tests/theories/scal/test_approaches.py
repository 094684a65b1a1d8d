"""The three approaches on tables whose exponents are known."""

import numpy as np
import pytest

from jaxdyn.theories.scal import approaches
from jaxdyn.theories.scal.dynamics import laws
from jaxdyn.theories.scal.published import LAWS

LAW = laws.Law(e=1.0, a=40.0, b=60.0, alpha=0.4, beta=0.4)


def made(law, sizes, budgets):
    return laws.loss(law, sizes[:, None], budgets / (laws.COST * sizes[:, None]))


@pytest.mark.slow
def test_a_symmetric_law():
    sizes, budgets = np.geomspace(1e3, 1e6, 31), np.geomspace(6e8, 6e10, 7)
    found = approaches.estimates(sizes, budgets, made(LAW, sizes, budgets))
    assert found.exponents.shape == (3,)
    assert (abs(found.exponents - 0.5) <= (0.02, 0.02, 1e-6)).all()
    np.testing.assert_allclose(np.exp(found.vertices), laws.optimum(LAW, budgets)[0], rtol=0.2)
    assert found.held_out < 1e-6


@pytest.mark.slow
def test_several_tables_at_once_and_one():
    sizes, budgets = np.geomspace(7e7, 1.6e10, 9), np.geomspace(6e18, 3e21, 5)
    one = made(LAWS["Besiroglu"], sizes, budgets)
    many = approaches.estimates(sizes, budgets, np.stack([one, one * 1.5]))
    assert many.exponents.shape == (2, 3) and many.theta.shape == (2, 5)
    np.testing.assert_allclose(many.exponents[0], approaches.estimates(sizes, budgets, one).exponents, rtol=1e-6)
    np.testing.assert_allclose(many.exponents[:, 2], laws.exponent(LAWS["Besiroglu"]), rtol=1e-5)


@pytest.mark.slow
def test_jackknife():
    sizes, budgets = np.geomspace(1e3, 1e6, 7), np.geomspace(6e8, 6e10, 5)
    table = made(LAW, sizes, budgets)
    same, pseudo = approaches.jackknife(sizes, budgets, np.stack([table] * 3))
    np.testing.assert_allclose(pseudo.exponents, np.stack([same.exponents] * 3), atol=1e-6)
    noisy = table * (1 + 0.01 * np.random.default_rng(0).normal(size=(3, 7, 1)))
    whole, pseudo = approaches.jackknife(sizes, budgets, noisy)
    np.testing.assert_allclose(whole.exponents, approaches.estimates(sizes, budgets, noisy.mean(0)).exponents)
    without = approaches.estimates(sizes, budgets, noisy[1:].mean(0)).exponents
    np.testing.assert_allclose(pseudo.exponents[0], 3 * whole.exponents - 2 * without, rtol=1e-5)
    low, high = approaches.interval(whole.exponents, pseudo.exponents)
    assert (low < whole.exponents).all() and (whole.exponents < high).all()


def test_the_jackknife_of_a_mean_is_students():
    runs = np.array([1.0, 2.0, 4.0])
    low, high = approaches.interval(runs.mean(), runs)  # pseudo-values of a mean are the runs
    np.testing.assert_allclose((high - low) / 2, 4.302653 * runs.std(ddof=1) / 3**0.5, rtol=1e-6)
