"""All claims of GaLore: complete, under the contract, and with judges that take the right side of made-up data."""

import numpy as np
import pytest
import xarray as xr

import jaxdyn as jd
from jaxdyn.engine.contract import MECHANISM
from jaxdyn.errors import Inconclusive
from jaxdyn.theories.galore import CLAIMS
from jaxdyn.theories.galore.claims import decay, forms, memory, optimizer, projected
from jaxdyn.theories.galore.trials.memory import Table
from jaxdyn.theories.galore.trials.memory import trial as table_trial

BY_ID = {c.id: c for c in CLAIMS}
rng = np.random.default_rng(0)


def passed(checks):
    return [c.passed for c in checks]


@pytest.mark.parametrize("name", BY_ID)
def test_claims_are_complete(name):
    claim = BY_ID[name]
    assert len(BY_ID) == len(CLAIMS) and name.startswith("galore.")
    assert claim.evidence and claim.plot and claim.caption and claim.rivals is not None and claim.bounds
    assert claim.expected == "refuted" or (claim.controls and claim.rivals)
    assert claim.evidence not in MECHANISM or "moves" in next(iter(claim.rivals)) or "weights" in next(iter(claim.rivals))
    assert claim.seeds >= 100 or claim.evidence == "numbers"
    assert claim.expected != "refuted" or (name.endswith("_as_printed") and claim.printed)
    if claim.evidence == "reduced":
        assert claim.statement.startswith("In the reduced dynamics")


def runs(**variables):
    """A Dataset of 200 runs from arrays with the axis of seeds first."""
    return xr.Dataset({name: (("seed", *dims), np.asarray(value, float)) for name, (dims, value) in variables.items()})


def test_bounds_are_judged_while_the_gradient_is_no_rounding_error():
    size = np.tile([1.0, 1e-3, 1e-7], (200, 1))
    rank, delta = np.tile([3.0, 1.5, 2.0], (200, 1)), np.tile([1.0, 1e-4, 1e-8], (200, 1))
    ds = runs(measured_bound=(("time",), rank), predicted_bound=(("time",), rank + np.array([1.0, 0.001, -1.0])),
              size=(("time",), size), delta=(("time",), delta))  # fmt: skip
    assert passed(decay.judge_bound(ds)) == [True, True]
    assert passed(decay.judge_bound(ds.assign(predicted_bound=ds.predicted_bound + 0.1))) == [True, False]
    assert passed(decay.judge_bound(ds.assign(predicted_bound=ds.predicted_bound - 0.01)))[0] is False


def test_rates_are_judged_by_their_order():
    one = np.full(200, -0.5)
    ds = runs(measured_first_order=((), one), predicted_first_order=((), one * 1.01),
              measured_second_order=((), one), predicted_second_order=((), one * 2))  # fmt: skip
    assert passed(decay.judge_rate(ds)) == [True] and passed(decay.judge_rank_one(ds)) == [False]


def test_remainders_need_all_sizes_and_the_right_order():
    sizes = np.array(forms.SIZES)
    linear = rng.normal(size=(50, 1, 1, 3, 3)) * np.ones((1, sizes.size, 1, 1, 1))
    off = rng.normal(size=linear.shape) * sizes[:, None, None, None]
    ds = xr.Dataset(
        {name: (("seed", "size", "place", "row", "col"), value) for name, value in (("predicted_linear", linear),
                                                                                  ("measured_linear", linear + off))},
        coords={"size": sizes},
    )  # fmt: skip
    assert passed(forms.judge_logits(ds)) == [True, True]
    assert passed(forms.judge_logits(ds.assign(measured_linear=ds.predicted_linear + off**2)))[1] is False
    assert passed(forms.judge_logits(ds.assign(measured_linear=0.9 * ds.measured_linear)))[0] is False
    with pytest.raises(Inconclusive):
        forms.judge_logits(ds.isel(size=slice(0, 2)))


def test_noise_is_judged_by_means_over_seeds():
    left = np.stack([np.full((200, 2), 0.97), np.full((200, 2), 0.24)], 1) * np.exp(0.01 * rng.normal(size=(200, 2, 1)))
    ds = xr.Dataset({name: (("seed", "finder", "time"), left) for name in ("measured_left", "predicted_left")},
                    coords={"finder": ["svd", "orthonormal"]})  # fmt: skip
    assert passed(optimizer.judge_noise(ds)) == [True, True, True]
    assert passed(optimizer.judge_noise(ds.assign(measured_left=ds.measured_left * 0.5)))[0] is False
    assert passed(optimizer.judge_noise(ds.assign(measured_left=ds.measured_left * 2)))[1:] == [False, False]
    with pytest.raises(Inconclusive):
        optimizer.judge_noise(ds.isel(finder=[0]))


def test_ranks_of_updates():
    rank = np.tile([4.0, 8.0, 10.0], (200, 1))
    full = np.full(200, 10.0)
    ds = runs(measured_rank=(("time",), rank), predicted_rank=(("time",), rank), measured_end=((), 0 * full),
              predicted_end=((), 0 * full), measured_final_rank=((), full), predicted_final_rank=((), full))  # fmt: skip
    assert passed(projected.judge_switching(ds)) == [True, True, True]
    assert passed(projected.judge_switching(ds.assign(measured_rank=ds.measured_rank + 1)))[1] is False
    assert passed(projected.judge_switching(ds.assign(measured_final_rank=ds.measured_final_rank - 1)))[2] is False


def test_the_memory_table_is_upheld_and_its_rivals_are_not():
    claim = BY_ID["galore.memory_table"]
    ds = jd.sweep(table_trial, jd.grid(Table), seeds=[0])
    assert all(passed(memory.judge(ds)))
    for breach in (*(c.breach for c in claim.controls.values()), *claim.rivals.values()):
        assert not all(passed(memory.judge(breach(ds))))
