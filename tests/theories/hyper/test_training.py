"""Short training of encoders, and judges on made-up curves."""

import numpy as np
import pytest
import xarray as xr

import jaxdyn as jd
from jaxdyn.errors import UsageError
from jaxdyn.theories.hyper import training
from jaxdyn.theories.hyper.training import Contrastive, trial
from tests.theories.galore.helpers import passed
from tests.theories.joma.helpers import refutes

SMALL = {"inputs": 8, "width": 6, "dim": 6.0, "relevant": 3.0, "hidden": 16, "batch": 16, "examples": 200, "records": 2}


@pytest.mark.slow
def test_short_runs_learn_the_relevant_bits():
    ds = jd.sweep(trial, jd.grid(Contrastive, encoder=["linear", "mlp"], every=100.0, **SMALL), 2)
    assert (ds.measured_loss.isel(step=-1) < ds.measured_loss.isel(step=0)).all()
    assert float(ds.measured_accuracy.isel(step=-1).min()) > 0.9 and (ds.irrelevant <= 1).all()
    np.testing.assert_allclose(ds.measured_final, ds.measured_loss.isel(step=-1), rtol=1e-6)
    assert (ds.predicted_least < ds.predicted_final).all()


@pytest.mark.slow
def test_outputs_that_are_masked_and_an_optimizer_that_decays():
    ds = jd.sweep(trial, jd.grid(Contrastive, dim=[1.0, 6.0], every=50.0, **{k: v for k, v in SMALL.items() if k != "dim"}), 1)
    ends = ds.measured_loss.isel(step=-1, seed=0)
    assert float(ends.sel(dim=1.0)) > float(ends.sel(dim=6.0)) + 0.1
    decay = jd.sweep(trial, jd.grid(Contrastive, optimizer="sgd", decoupled=[0.0, 5.0], every=50.0, encoder="mlp", **SMALL), 1)
    ends = decay.measured_loss.isel(step=-1, seed=0)
    assert float(ends.sel(decoupled=0.0)) != float(ends.sel(decoupled=5.0))


@pytest.mark.parametrize("wrong", [{"relevant": 99.0}, {"dim": 33.0}, {"normalised": 0.5}])
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(UsageError, match="not allowed"):
        Contrastive(**wrong)


CLAIMS = {c.id: c for c in training.CLAIMS}


def rivals_fail(claim, ds):
    """Every rival is rejected by the claim's judge."""
    rivals = CLAIMS[claim].rivals
    assert rivals and all(refutes(CLAIMS[claim].judge, rival, ds) for rival in rivals.values())


ENDS = {"loss": ((2.69, 2.582, 2.581), (3.4, 2.462, 2.448)), "accuracy": ((0.88, 0.999, 0.999), (0.89, 0.99, 0.87))}


def made():
    """Eight runs of both encoders at three records."""
    rng = np.random.default_rng(0)

    def curve(rows):
        return ("encoder", "seed", "step"), np.array(rows)[:, None, :] + 1e-3 * rng.normal(size=(2, 8, 3))

    ds = {f"measured_{name}": curve(rows) for name, rows in ENDS.items()}
    ds["irrelevant"] = curve(((0.5, 0.4, 0.4), (0.5, 0.005, 0.002)))
    ds["error"] = ("encoder", "seed", "step"), np.full((2, 8, 3), 0.004)
    ds["status"] = ("encoder", "seed"), np.zeros((2, 8))
    ds["predicted_least"] = ("encoder", "seed"), np.full((2, 8), 2.417)
    ds = xr.Dataset(ds, coords={"encoder": ["linear", "mlp"]})
    end = ds.measured_loss.isel(step=-1)
    return ds.assign(measured_final=end, measured_least=end, predicted_final=xr.full_like(end, 2.5812))


def test_linear():
    ds = made().sel(encoder="linear")
    assert passed(training.judge_linear(ds)) == [True, True]
    rivals_fail("hyper.table_linear", ds)
    assert passed(training.judge_linear(made().sel(encoder="mlp"))) == [False, False]


def test_mlp_against_linear():
    ds = made()
    assert passed(training.judge_mlp(ds)) == passed(training.judge_share(ds)) == [True, True]
    rivals_fail("hyper.mlp_adam", ds)
    rivals_fail("hyper.mlp_relevant", ds)
    swapped = ds.roll(encoder=1, roll_coords=False)
    assert passed(training.judge_mlp(swapped)) == passed(training.judge_share(swapped)) == [False, False]


def test_late_fall():
    ds = made().sel(encoder="mlp")
    assert passed(training.judge_late(ds)) == [True, True]
    assert passed(training.judge_late(made().sel(encoder="linear")))[0] is False
    rivals_fail("hyper.mlp_late", ds)
    shown = training.early(ds)
    assert passed(training.judge_late(shown)) == [False, False]


def test_bound():
    ds = made().sel(encoder="mlp")
    assert passed(training.judge_bound(ds)) == [True, True]
    assert passed(training.judge_bound(ds.assign(predicted_least=ds.predicted_final))) == [False, False]
    rivals_fail("hyper.sphere_bound", ds)
    noisy = ds.assign(error=10 * ds.error)
    assert passed(training.judge_bound(noisy)) == [None, True]  # batches that do not tell one run from the bound
    spread = ds.measured_least + xr.DataArray(np.linspace(-0.1, 0.1, 8), dims="seed")
    assert passed(training.judge_bound(ds.assign(measured_least=spread))) == [False, None]


def test_weight_decay():
    ds = made().sel(encoder="mlp", drop=True)
    gain = xr.DataArray([0.0, 0.0, 0.12], dims="decoupled", coords={"decoupled": [0.0, 0.1, 1.0]})
    gain = gain * xr.DataArray([0.0, 1.0, 1.0], dims="step")
    ds = ds.assign(measured_accuracy=ds.measured_accuracy + gain, measured_loss=ds.measured_loss + 0.3 * gain)
    end = ds.measured_loss.isel(step=-1)
    ds = ds.assign(measured_final=end, measured_least=end)
    readings = {reading.name: reading.value for reading in training.judge_decay(ds)}
    assert readings == pytest.approx({training.LITTLE: 0.0, training.MUCH: 0.12, training.RISE: 0.036}, abs=1e-9)


def test_threshold():
    runs = made().isel(encoder=[0, 0, 1, 1]).rename(encoder="temperature").assign_coords(temperature=list(training.TEMPERATURES))
    reads = xr.DataArray([1.0, 1.0, 0.0, 0.0], dims="temperature", coords={"temperature": runs.temperature})
    ds = runs.assign(predicted_reads=reads.broadcast_like(runs.status), measured_reads=runs.irrelevant.isel(step=-1))
    assert passed(training.judge_threshold(ds)) == [True] * 4
    rivals_fail("hyper.linear_threshold", ds)
