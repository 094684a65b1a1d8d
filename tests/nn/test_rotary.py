"""Rescaled rotary rates: fast pairs stay, slow ones are slower, and what is no scaling is refused."""

import numpy as np
import pytest

from jaxdyn.errors import UsageError
from jaxdyn.nn import attention
from jaxdyn.nn.rotary import Scaling, slowed

RATES = 500_000.0 ** (-np.arange(0, 64, 2) / 64)


def test_llama3_keeps_fast_pairs_and_slows_slow_ones(x64):
    scaling = Scaling(kind="llama3", factor=8.0, low=1.0, high=4.0, length=8192)
    slow, wave = np.asarray(slowed(RATES, scaling)), 2 * np.pi / RATES
    ratio = RATES / slow
    np.testing.assert_allclose(ratio[wave < 8192 / 4], 1, rtol=1e-12)
    np.testing.assert_allclose(ratio[wave > 8192], 8, rtol=1e-12)
    between = ratio[(wave > 8192 / 4) & (wave < 8192)]
    assert between.size and np.all((between > 1) & (between < 8)) and np.all(np.diff(ratio) >= -1e-12)


def test_linear_scaling_stretches_positions(x64):
    a = attention.angles(np.arange(5) * 3, 8, scaling=Scaling(kind="linear", factor=3.0), dtype="float64")
    b = attention.angles(np.arange(5), 8, dtype="float64")
    np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)
    assert slowed(RATES, None) is RATES


def test_a_table_has_a_divisor_for_every_pair(x64):
    np.testing.assert_allclose(slowed(np.ones(2), Scaling(kind="table", table=(2, 4))), [0.5, 0.25])
    with pytest.raises(UsageError, match="it has 2 divisors for 32 pairs"):
        slowed(RATES, Scaling(kind="table", table=(2, 4)))


@pytest.mark.parametrize(
    "wrong",
    [
        *({"kind": "yarn"}, {"kind": "linear", "factor": 0.0}, {"kind": "llama3", "low": 4.0}, {"kind": "llama3", "length": 0}),
        *({"kind": "table"}, {"kind": "linear", "table": (1.0,)}, {"kind": "table", "table": (0.0,)}),
    ],
)
def test_wrong_scalings_are_refused(wrong):
    with pytest.raises(UsageError, match="not allowed"):
        Scaling(**wrong)
