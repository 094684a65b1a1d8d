"""Which edits of a module's source count, and what it imports from the package."""

import pytest

from jaxdyn.engine.base.syntax import code_hash, imports_of

SOURCE = '''"""A module."""
from __future__ import annotations
import numpy as np

def law(x: float, kind={"a", "b", "c"}) -> float:
    """A law."""
    # a comment
    return 2 * np.sin(x)

class Law:
    """A class."""
    rate = 1
'''


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        ("A module.", "Another module.", True),
        ('    """A law."""\n', "", True),
        ("# a comment", "# another", True),
        ("def law(x: float, kind", "\n\ndef law(\n    x: float,\n    kind", True),
        ("class Law:", "\n\n\nclass Law:", True),
        ("2 * np.sin(x)", "(2 *\n            np.sin(x))", True),
        ("2 * np", "3 * np", False),
        ("np.sin", "np.cos", False),
        ('"b"', '"d"', False),
        ("rate = 1", "rate = 1.0", False),
        ("rate = 1", "rate = True", False),
        ("import numpy", "import scipy", False),
        ("def law(x: float, kind", "def law(x: float, *, kind", False),
    ],
)
def test_what_counts(before, after, same):
    assert before in SOURCE
    assert (code_hash(SOURCE.encode()) == code_hash(SOURCE.replace(before, after).encode())) is same


IMPORTS = """
import jaxdyn as jd
import numpy as np
import jaxdyn.flow
from jaxdyn import train, nonsense
from jaxdyn.nn import attention
from jaxdyn.nn.norms import rms
from . import model
from .training import run

def late():
    from jaxdyn.optim import muon
    return jd.grid, jd.stats.mean, np.grid
"""


def test_what_is_imported():
    found = set(imports_of(IMPORTS.encode(), "jaxdyn.theories.cal"))
    assert found == {
        *("jaxdyn", "jaxdyn.flow", "jaxdyn.train", "jaxdyn.engine.claims.grid", "jaxdyn.stats"),
        *("jaxdyn.nn", "jaxdyn.nn.attention", "jaxdyn.nn.norms", "jaxdyn.nn.norms.rms"),
        *("jaxdyn.optim", "jaxdyn.optim.muon", "jaxdyn.theories.cal", "jaxdyn.theories.cal.model"),
        *("jaxdyn.theories.cal.training", "jaxdyn.theories.cal.training.run"),
    }
