"""The trial of variants: its records, and what is refused; judges on made-up losses."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.engine.judging.check import Check
from jaxdyn.errors import UsageError
from jaxdyn.theories.mobile import variants
from jaxdyn.theories.mobile.model import VARIANTS
from jaxdyn.theories.mobile.variants import Variants, trial
from tests.theories.mobile.helpers import runs

SMALL = {"batch": 2, "length": 8, "steps": 20, "records": 2, "windows": 2, "width": 8, "hidden": 6, "layers": 2, "heads": 2}


@pytest.mark.slow
def test_a_trial_learns_and_counts():
    traced = []

    @jax.jit
    def run(s):
        traced.append(s)
        return trial(s, jax.random.key(0))

    cells = jd.grid(Variants, variant=["base", "one", "deep"], lr=2e-2, **SMALL).cells()
    with jax.enable_x64(True):
        base, one, deep = (jax.device_get(run(s)) for s in cells)
    assert len(traced) == 1
    for out in (base, one, deep):
        curve = out.recorded["curve"].value
        assert curve.shape == (3, 2) and np.all(curve[-1] < curve[0] - 0.2)
        np.testing.assert_array_equal(out.measured["loss"].value, curve[-1, 1])
        np.testing.assert_array_equal(out.measured["bytes"].value, out.predicted["bytes"].value)
    assert one.measured["bytes"].value == base.measured["bytes"].value / 2
    assert deep.measured["bytes"].value == 2 * base.measured["bytes"].value
    assert deep.recorded["weights"].value > base.recorded["weights"].value > one.recorded["weights"].value
    assert base.measured["loss"].value.dtype == jnp.float32


def test_an_odd_number_of_heads_is_refused():
    with pytest.raises(UsageError, match="heads is even"):
        jd.grid(Variants, **SMALL | {"heads": 1})


AS_PUBLISHED = {"base": 2.0, "untied": 2.1, "half": 2.01, "one": 2.02, "twice": 1.9, "again": 1.95, "deep": 1.8}
CLAIMS = {claim.id: claim for claim in variants.CLAIMS}


def made(**change):
    losses = AS_PUBLISHED | change
    held = np.array([8, 6, 4, 2, 16, 16, 16])
    every = np.array([8, 6, 8, 8, 16, 16, 16])
    count = [5, 5, 4, 3, 5, 5, 9]
    more = {"measured_bytes": held, "predicted_bytes": held, "every_head": every, "weights": count}
    return runs("variant", VARIANTS, [losses[v] for v in VARIANTS], **more)


@pytest.mark.parametrize(
    ("name", "values"), [("mobile.tie", [-0.1]), ("mobile.gqa", [0, 0.01, 0.02]), ("mobile.ls", [-0.1, -0.05, 0.1])]
)
def test_differences_are_read(name, values):
    claim = CLAIMS[name]
    found = claim.judge(made())
    assert all(c.passed for c in found if isinstance(c, Check))
    readings = {r.name: r.value for r in found if not isinstance(r, Check)}
    assert list(readings.values()) == pytest.approx(values, abs=1e-9) and readings.keys() == claim.recorded.keys()


def test_keys_for_every_head_take_more():
    rival = CLAIMS["mobile.gqa"].rivals["keys and values for every head"].rival
    assert [r.value for r in variants.judge_gqa(rival(made())) if "bytes" in r.name] == [6]


def test_unequal_weights_fail_the_gate():
    ds = made()
    ds["weights"] = ds.weights + (ds.variant == "untied")
    assert any(isinstance(c, Check) and not c.passed for c in variants.judge_tie(ds))
