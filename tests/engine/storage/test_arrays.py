"""Arrays of some runs: their form is known before they are read."""

import numpy as np

from jaxdyn.engine.storage.arrays import Arrays


def test_the_form_of_an_array_is_without_the_leading_axes():
    whole = Arrays({"x": np.zeros((3, 2, 5), np.float32), "n": np.zeros((3, 2), np.int8)}, {"x": ("entry",), "n": ()}, {})
    assert whole.form("x") == (np.float32, (5,)) and whole.form("n") == (np.int8, ())


def test_arrays_that_are_not_read_have_the_form_that_was_written():
    later = Arrays({}, {"x": ("entry",)}, {}, forms={"x": (np.dtype("float64"), (7,))})
    assert later.form("x") == (np.float64, (7,))
