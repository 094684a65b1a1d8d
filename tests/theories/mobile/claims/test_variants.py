"""Judges of the variants on made-up losses."""

import numpy as np
import pytest

from jaxdyn.theories.mobile.claims import variants
from jaxdyn.theories.mobile.model import VARIANTS
from tests.theories.mobile.claims.helpers import runs

AS_PUBLISHED = {"base": 2.0, "untied": 2.1, "half": 2.01, "one": 2.02, "twice": 1.9, "again": 1.95, "deep": 1.8}
CLAIMS = {claim.id: claim for claim in variants.CLAIMS}


def made(**change):
    losses = AS_PUBLISHED | change
    held = np.array([8, 6, 4, 2, 16, 16, 16])
    every = np.array([8, 6, 8, 8, 16, 16, 16])
    count = [5, 5, 4, 3, 5, 5, 9]
    more = {"measured_bytes": held, "predicted_bytes": held, "every_head": every, "weights": count}
    return runs("variant", VARIANTS, [losses[v] for v in VARIANTS], **more)


@pytest.mark.parametrize("name", CLAIMS)
def test_what_was_published_passes_and_rivals_do_not(name):
    claim = CLAIMS[name]
    assert all(check.passed for check in claim.judge(made()))
    for rival in claim.rivals.values():
        assert any(check.passed is False for check in claim.judge(rival(made())) if not check.gate)


@pytest.mark.parametrize(
    ("name", "change"),
    [("mobile.tie", {"untied": 1.9}), ("mobile.gqa", {"one": 2.2}), ("mobile.ls", {"twice": 2.1}), ("mobile.ls", {"again": 1.8})]
    + [("mobile.ls", {"deep": 2.0})],
)
def test_other_losses_fail(name, change):
    assert any(check.passed is False for check in CLAIMS[name].judge(made(**change)))


def test_unequal_weights_fail_the_gate():
    ds = made()
    ds["weights"] = ds.weights + (ds.variant == "untied")
    assert any(check.gate and not check.passed for check in variants.judge_tie(ds))
