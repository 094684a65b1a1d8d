"""Runs made by hand, for judges and verdicts, and the referee's cases on them: nothing is run."""

import numpy as np
import xarray as xr

import jaxdyn as jd
from jaxdyn.attacks.case import Case
from jaxdyn.engine.judging.verdict import decide
from jaxdyn.engine.verification.result import Result
from jaxdyn.engine.verification.verify import make_tasks
from jaxdyn.status import DIVERGED, OK


def data(error=0.0, *, lr=(0.1, 0.2), seeds=4, status=None, prediction=2.0, forms=None, dtype=float):
    """Runs in which the measurement is the prediction times 1 + error."""
    shape = (len(lr), seeds, 3)
    predicted = np.full(shape, prediction, dtype)
    measured = predicted * np.broadcast_to(1 + np.asarray(error), shape)
    dims = ("lr", "seed", "entry")
    ds = xr.Dataset(
        {"predicted_z": (dims, predicted), "measured_z": (dims, measured)}, coords={"lr": list(lr), "seed": range(seeds)}
    )
    if forms is not None:
        ds = ds.assign(predicted_z=ds.predicted_z * xr.DataArray(list(forms.values()), dims="form", coords={"form": list(forms)}))
    return ds.assign(status=(("lr", "seed"), np.full(shape[:2], OK) if status is None else np.asarray(status)))


def judge(ds):
    return [jd.at_most("relative error", jd.relative_error(ds, "z", "entry"), 0.01)]


def reading(ds):
    """What a measured claim reads: the mean over seeds of measured over predicted."""
    return [jd.mean_reading("ratio", (ds.measured_z / ds.predicted_z).mean("entry"), over=["lr", "seed"])]


def doubled(ds):
    return ds.assign(predicted_z=2 * ds.predicted_z)


def failing(share, code=DIVERGED):
    """The status of 2 x 4 runs of which this many are not ok."""
    flat = np.full(8, OK)
    flat[:share] = code
    return flat.reshape(2, 4)


@jd.setting
class Fields:
    """Fields of all kinds."""

    lr: jd.Swept = jd.field(0.1, above=0)
    decay: jd.Swept = 0.0
    width: int = jd.field(16, at_least=1)
    task: str = "addition"


def trial(s, key):
    """Is not run."""
    return jd.observables(predicted={"z": s.lr}, measured={"z": s.lr})


def law(**fields):
    """A claim without a fault, with some fields of its own."""
    usual = {
        "id": "toy.law",
        "title": "Entries follow the law",
        "statement": "The measured entries are the predicted ones, not doubled, to 1%.",
        "source": "nobody's",
        "evidence": "algebra",
        "trial": trial,
        "bounds": "derived: from rounding",
        "quick": jd.grid(Fields, lr=[0.1, 0.2]),
        "seeds": 4,
        "judge": judge,
        "controls": {"doubled": doubled},
    }
    if fields.get("expected") == "measured":
        usual |= {"judge": reading, "bounds": None, "title": "How large the ratio is"}
    return jd.Claim(**(usual | fields))


def case(claim, ds=None, **control_data):
    """The case of a claim on runs, and on the runs of its controls that are settings."""
    runs = data(0.001) if ds is None else ds
    known = {name: control_data.get(name, data(0.5)) for name, c in claim.controls.items() if not callable(c.breach)}
    decision = decide(claim, runs, known)
    assert decision.verdict != "error", decision.message
    result = Result.of(decision, make_tasks([claim])[0], data=runs, control_data=known)
    return Case(claim, result, lambda tasks: [], 0.0, True)


def scattered(mean=0.5, size=0.1):
    """Runs whose errors differ from seed to seed."""
    return data(mean + size * np.random.default_rng(0).normal(size=(1, 4, 1)))


def subjects(answer):
    """What the findings of an answer are about."""
    return [f.subject for f in answer.findings]
