"""Judge of the memorising solution, and settings that are refused."""

import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.theories.cogo.solutions import zm_memorisation
from tests.theories.cogo.oracle import distorted


def test_judge_rejects_distortions():
    claim, printed = zm_memorisation.CLAIMS
    ds = jd.sweep(zm_memorisation.trial, jd.grid(zm_memorisation.Memory, groups=("5",)), seeds=2)
    derived = ds.sel(form="derived")
    assert not distorted(claim, derived)
    for name in ("nodes", "energy"):
        assert distorted(claim, derived, **{f"predicted_{name}": lambda v: 1.1 * v})
    assert distorted(claim, derived, loss=lambda v: v + 1e-19)
    assert distorted(printed, ds.sel(form="printed"))
    np.testing.assert_allclose(derived.measured_nodes, 25)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: zm_memorisation.Memory(groups=("5x",)), "group='5x' is not allowed"),
    ],
)
def test_settings_refuse_in_one_sentence(make, message):
    with pytest.raises(jd.UsageError, match=message):
        make()
