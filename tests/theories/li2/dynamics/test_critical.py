"""Shares of pairs at which features are expected to be kept."""

import math

import pytest

from jaxdyn.data.groups import parse
from jaxdyn.theories.li2.dynamics.critical import critical_share, order_share


@pytest.mark.parametrize(("name", "order", "factor"), [("23", 23, 1.0), ("D12", 24, 1.0), ("A5", 60, 2.5)])
def test_shares_grow_with_half_the_largest_degree(name, order, factor):
    assert order_share(order) == pytest.approx(2.7482 * math.log(order) / order, rel=1e-12)
    assert critical_share(parse(name)) == pytest.approx(factor * order_share(order), rel=1e-12)
