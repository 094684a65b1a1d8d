"""Counts of entries against ones made by hand, and a judge that notices one term."""

import pytest

from jaxdyn.theories.galore import memory_formulas as module


@pytest.mark.parametrize(("m", "n", "r"), [(3, 5, 2), (4, 4, 1), (6, 9, 6)])
def test_real_states_hold_what_the_corrected_formulas_say(m, n, r):
    found = module.real(m, n, r, 2)
    assert found == module.formulas(m, n, r)["corrected"]
    assert found["full"] == (2 * m * n, 3 * m * n)
    assert found["adaptor"] == (2 * r * (m + n), m * n + 3 * r * (m + n))
    assert found["galore"] == (2 * n * r, m * n + m * r + 2 * n * r)
    printed = module.formulas(m, n, r)["printed"]
    assert printed["adaptor"][1] - found["adaptor"][1] == m * n and printed["galore"][1] - found["galore"][1] == m * r


def test_one_moment_is_half_of_the_states():
    one, two = (module.real(8, 12, 3, moments) for moments in (1, 2))
    assert all(2 * one[method][0] == two[method][0] for method in module.METHODS)
