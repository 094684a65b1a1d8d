"""Laws of the reduced dynamics: given weights, and wrong ones that are refused."""

import jax
import numpy as np
import pytest

from jaxdyn.errors import UsageError
from jaxdyn.theories.snap import random_laws


def test_given_weights_replace_the_random_ones(x64):
    given = random_laws.Laws(distinct=3, weights=(1.0, 2.0, 5.0), common=2.0)
    p, start = jax.jit(lambda key: random_laws.sample_laws(given, key))(jax.random.key(0))
    np.testing.assert_allclose(p[1, random_laws.places(random_laws.Laws(distinct=3))[1]], np.array([1, 2, 5]) / 8 / 3)
    np.testing.assert_allclose(p[:, 0], 2 / 3)
    assert not np.any(start)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"weights": (1.0, 2.0)}, "4 positive numbers"),
        ({"weights": (4.0, 3.0, 2.0, 1.0)}, "they rise"),
    ],
)
def test_wrong_laws_are_refused(fields, message):
    with pytest.raises(UsageError, match=message):
        random_laws.Laws(**fields)
