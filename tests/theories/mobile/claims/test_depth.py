"""The judge of depth on made-up losses."""

import pytest

from jaxdyn.theories.mobile.claims import depth
from tests.theories.mobile.claims.helpers import runs


def made(*losses):
    return runs("shape", depth.SHAPES, losses, layers=[1, 3, 6], count=[100, 100, 100.5])


def test_the_optimum_is_the_depth_with_the_lowest_validation_loss():
    assert depth.optimum(made(2.2, 2.0, 2.1)) == 3
    assert depth.optimum(made(2.0, 2.1, 2.2)) == 1


@pytest.mark.parametrize(("losses", "passed"), [((2.2, 2.0, 2.1), [True] * 3), ((2.0, 2.1, 1.9), [True, False, True])])
def test_deeper_is_better_where_it_is(losses, passed):
    (claim,) = depth.CLAIMS
    assert [c.passed for c in depth.judge(made(*losses)) if not c.gate] == passed
    for rival in claim.rivals.values():
        assert any(c.passed is False for c in depth.judge(rival(made(*losses))) if not c.gate)
