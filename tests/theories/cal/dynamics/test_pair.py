"""The scalar problem against plain gradient descent."""

import pytest

from jaxdyn.theories.cal.dynamics import pair

pytestmark = pytest.mark.usefixtures("x64")


@pytest.mark.parametrize(("u", "v"), [(3.0, 0.2), (2.6, 0.1)])
def test_final_sharpness_of_the_scalar_problem(u, v):
    """Plain gradient descent at three small steps: its extrapolated end and the slope of its end in the step size."""
    ends = {}
    for eta in (0.004, 0.002, 0.001):
        a, b = u, v
        for _ in range(round(6 / eta)):
            r = a * b - 1
            a, b = a - eta * r * b, b - eta * r * a
        ends[eta] = a * a + b * b
    limit, slope = 2 * ends[0.001] - ends[0.002], (ends[0.002] - ends[0.001]) / 0.001
    coarse = (ends[0.004] - ends[0.002]) / 0.002
    assert float(pair.flow_sharpness(u, v)) == pytest.approx(limit, abs=5e-6)
    assert float(pair.flattening(u, v)) == pytest.approx(2 * slope - coarse, rel=1e-3)
    assert float(pair.flow_sharpness(3.0, 0.2)) == pytest.approx(9.1805, abs=5e-5)
