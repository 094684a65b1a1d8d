"""Handwritten digits that ship with scikit-learn: 1797 images of 8 x 8 pixels in ten classes.

Source: the test part of UCI's optical recognition of handwritten digits (E. Alpaydin, C. Kaynak 1998),
``sklearn.datasets.load_digits``. Letters: n images.
"""

from __future__ import annotations

import functools

import numpy as np

from jaxdyn.errors import missing

__all__ = ["CLASSES", "PIXELS", "load"]

CLASSES, PIXELS = 10, 64


@functools.cache
def load() -> tuple[np.ndarray, np.ndarray]:
    """Images (n, 64), minus their common mean, divided by their common standard deviation, and labels (n,).

    Raises:
        UsageError: if scikit-learn is not installed.
    """
    try:
        from sklearn.datasets import load_digits  # takes a second
    except ImportError:
        raise missing("the set of handwritten digits", "scikit-learn", "suite") from None
    x, y = load_digits(return_X_y=True)
    x = ((x - x.mean()) / x.std()).astype(np.float32)
    y = y.astype(np.int32)
    for array in (x, y):
        array.flags.writeable = False  # one copy for all
    return x, y
