"""Numbers to compare with are ordered as the theory has them."""

from jaxdyn.theories.emer import published


def test_ratios_rise_towards_the_root_of_k():
    values = list(published.RATIOS.values())
    assert values == sorted(values) and values[-1] < published.RATIO_SIZE["inside"] ** 0.5
    assert 0 < published.ACCURACY < 1 and published.SATURATED[0] > 0
