"""An archive gives tensors of the expected size with finite numbers, and names file and tensor otherwise."""

from pathlib import Path

import numpy as np
import pytest

from jaxdyn.errors import UsageError
from jaxdyn.models.archive import Archive, Entry

VALUES = {"a": np.ones((2, 3)), "b": np.array([1.0, np.nan])}
ARCHIVE = Archive(Path("list"), {n: Entry(Path("file"), x.shape, "F64") for n, x in VALUES.items()}, VALUES.__getitem__, ())


def test_tensors_of_the_expected_size():
    np.testing.assert_array_equal(ARCHIVE.read("a", (2, 3)), VALUES["a"])
    assert ARCHIVE.bytes == 0


@pytest.mark.parametrize(
    ("name", "size", "words"),
    [
        ("c", (1,), "list has no tensor c, which the model's configuration asks for"),
        ("a", (3, 2), "file: tensor a has the size 2x3, the model's configuration says 3x2"),
        ("b", (2,), "file: tensor b has numbers that are not finite"),
    ],
)
def test_others_are_refused(name, size, words):
    with pytest.raises(UsageError, match=words):
        ARCHIVE.read(name, size)
