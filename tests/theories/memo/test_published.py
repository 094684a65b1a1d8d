"""Published sizes of perceptrons follow from their layers."""

from itertools import pairwise

import pytest

from jaxdyn.theories.memo import published


@pytest.mark.parametrize("hidden", published.PARAMETERS)
def test_parameter_counts(hidden):
    sizes = (published.PIXELS, *hidden, 10)
    assert sum(a * b + b for a, b in pairwise(sizes)) == published.PARAMETERS[hidden]


def test_random_labels_are_at_chance():
    assert all(9.5 < rows["random labels"][1] < 11 for rows in published.TABLE.values() if "random labels" in rows)
