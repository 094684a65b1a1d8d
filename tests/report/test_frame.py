"""Tables of checks and of runs, against numbers by hand."""

import csv
import dataclasses
import io
import json
import math

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
import xarray as xr

import jaxdyn as jd
from jaxdyn.report.columns import CsvText
from jaxdyn.report.frame import write_csv
from jaxdyn.report.sweep_table import table

from ..engine.conftest import TOYS
from .handmade import check, claim, reading

COLUMNS = "claim kind name value low high bound bound_low bound_high passed verdict expected seeds runs".split()


@pytest.mark.parametrize("ending", ["\r", "\n", "\r\n", '"', ","])
def test_texts_with_the_end_of_a_line_are_one_value(ending):
    """As two readers read them: before Python 3.13 the writer leaves a carriage return bare, where readers end the row."""
    texts = [f"a{ending}b", f"{ending}b", f"a{ending}"]
    frame = pd.DataFrame({f"x{ending}": texts, "y": [1.5, 2.0, math.nan]})
    text = CsvText()
    frame.to_csv(text, index=False, lineterminator=CsvText.ENDS)
    pd.testing.assert_frame_equal(pd.read_csv(io.StringIO(text.getvalue(), newline="")), frame)
    rows = CsvText()
    csv.writer(rows, lineterminator=CsvText.ENDS).writerows([one] for one in texts)
    assert [row[0] for row in csv.reader(io.StringIO(rows.getvalue(), newline=""))] == texts


def test_a_folder(tmp_path):
    undecided = check("share", 0.9, (0.95, None), None) | {"interval": [0.8, None]}
    gate = check("trained", None, (0.9, 1.1), False)
    two = claim("toy.two", "measured", "measured", checks=[], readings=[reading("slope", 1.02, (0.97, 1.08))], runs=16, seeds=4)
    whole = {"claims": [claim("toy.one", checks=[undecided], gates=[gate]), two, claim("toy.three", "error", checks=[])]}
    (tmp_path / "result.json").write_text(json.dumps(whole), encoding="utf-8")
    frame = jd.to_frame(tmp_path)
    assert list(frame.columns) == COLUMNS and frame.equals(jd.to_frame(str(tmp_path / "result.json")))
    na, nan = pd.NA, math.nan
    expected = [
        ("toy.one", "check", "share", 0.9, 0.8, nan, "at least 0.95", 0.95, nan, na, "upheld", "upheld", 8, 64),
        ("toy.one", "gate", "trained", nan, nan, nan, "0.9 to 1.1", 0.9, 1.1, False, "upheld", "upheld", 8, 64),
        ("toy.two", "reading", "slope", 1.02, 0.97, 1.08, na, nan, nan, na, "measured", "measured", 4, 16),
    ]
    pd.testing.assert_frame_equal(frame, pd.DataFrame(expected, columns=COLUMNS).astype(frame.dtypes))
    empty = {"claims": []}
    (tmp_path / "result.json").write_text(json.dumps(empty), encoding="utf-8")
    assert jd.to_frame(tmp_path).empty and (jd.to_frame(tmp_path).dtypes == frame.dtypes).all()


def test_integers_and_truth_values_stay_what_they_are_beside_gaps():
    """Variables along different axes leave gaps in each other's rows; NaN there would make floats, which end at 2^53."""
    big, wide = 2**53 + 1 + np.arange(3), np.array([2**64 - 1, 2**63 + 1], np.uint64)
    data = {
        "status": (("lr", "seed"), np.zeros((1, 1), int)),
        "big": (("lr", "seed", "step"), big[None, None]),
        "wide": (("lr", "seed", "layer"), wide[None, None]),
        "flag": (("lr", "seed", "layer"), np.array([[[True, False]]])),
        "x": (("lr", "seed", "layer"), np.array([[[0.5, np.nan]]])),
    }
    frame = jd.to_frame(xr.Dataset(data, {"lr": [0.1], "seed": [3], "step": [10, 20, 30]}), long=True)
    assert frame.big.dropna().tolist() == big.tolist() and frame.wide.dropna().tolist() == wide.tolist()
    assert frame.flag.dropna().tolist() == [True, False] and frame.step.dropna().tolist() == [10, 20, 30]
    assert frame.x.dtype == float and len(frame) == 5 and frame.seed.dtype == int


@pytest.fixture(scope="module")
def result():
    return jd.verify("toy.decay", load=[TOYS])


def test_results(result):
    frame = jd.to_frame(result)
    assert frame.name.tolist() == ["relative error"] and frame.value[0] == result.checks[0].value
    assert (frame.bound[0], frame.passed[0], frame.seeds[0], frame.runs[0]) == ("at most 1e-09", True, 4, 16)
    assert jd.to_frame([result]).equals(frame)


def test_runs(result):
    data = result.data
    frame = jd.to_frame(data)
    assert frame.shape == (16, 6) and list(frame.columns) == ["rate", "lr", "seed", "status", "ended", "steps"]
    assert set(frame.ended) == {"ok"} and (frame.steps == 20).all() and frame.seed.tolist() == [0, 1, 2, 3] * 4
    assert frame.rate.tolist() == [0.5] * 8 + [1.0] * 8 and "ended" not in data


def test_everything_that_a_run_saves(result):
    data = result.data
    frame = jd.to_frame(data, long=True)
    forms, entries = frame[frame.form.notna()], frame[frame.form.isna()]
    assert len(forms) == 16 * 2 * 3 and len(entries) == 16 * 3 and (frame.steps == 20).all()
    one = forms.query("rate == 1 and lr == 0.02 and seed == 3 and form == 'derived' and entry == 1")
    assert one.predicted_x.item() == data.predicted_x.sel(rate=1, lr=0.02, seed=3, form="derived")[1].item()
    assert one.measured_x.isna().all()
    one = entries.query("rate == 0.5 and lr == 0.01 and seed == 2 and entry == 0")
    assert one.measured_x.item() == data.measured_x.sel(rate=0.5, lr=0.01, seed=2)[0].item()


def test_runs_that_failed():
    status = xr.DataArray([[0, 1], [3, 9]], dims=("lr", "seed"), coords={"lr": [0.1, 0.2], "seed": [5, 7]})
    data = xr.Dataset({"loss": (("lr", "seed", "step"), np.arange(12.0).reshape(2, 2, 3)), "status": status})
    frame = jd.to_frame(data.assign_coords(step=[0, 10, 20]))
    assert frame.ended.tolist() == ["ok", "diverged", "step limit reached", "unconverged"] and "loss" not in frame
    frame = jd.to_frame(data.assign_coords(step=[0, 10, 20]), long=True)
    assert frame.shape == (12, 6) and frame.query("seed == 7 and lr == 0.2 and step == 20").loss.tolist() == [11.0]
    assert frame.loss.tolist() == list(range(12))


@jd.setting
class Clashing:
    """Fields whose names are those of observables, too."""

    lr: jd.Swept = 0.5
    steps: int = 100
    rate: jd.Swept = 1.0


def clashing(s: Clashing, key):
    x = jd.named(s.lr * s.rate * jnp.ones(2), "entry")
    return jd.observables(predicted={"x": x}, measured={"x": x}, recorded={"lr": s.lr * 100, "steps": 37, "ended": 5})


def test_a_field_keeps_its_name_and_an_observable_gets_another():
    data = jd.sweep(clashing, jd.grid(Clashing, rate=[1.0, 2.0]), 2)
    frame = jd.to_frame(data)
    assert list(frame.columns[:4]) == ["rate", "seed", "status", "ended"]
    assert set(frame.columns[4:]) == {"recorded lr", "recorded steps", "recorded ended"}
    assert (frame["recorded lr"] == 50).all() and (frame["recorded steps"] == 37).all() and set(frame.ended) == {"ok"}
    assert "recorded lr" in jd.to_frame(data, long=True) and "lr" in data
    rows = list(csv.DictReader(io.StringIO(table(data).to_csv({"lr": 0.5, "steps": 100}))))
    assert [(row["lr"], row["steps"], row["recorded lr"], row["recorded steps"]) for row in rows] == [
        ("0.5", "100", "50.0", "37")
    ] * 4


def test_a_field_of_one_claim_is_no_observable_of_another(tmp_path, result):
    """The toy's runs return ``steps``; the other claim's have a field of this name."""
    data = jd.sweep(clashing, jd.grid(Clashing, rate=[1.0, 2.0]), 2)
    other = dataclasses.replace(result, claim=dataclasses.replace(result.claim, id="toy.other"), data=data)
    write_csv(tmp_path, [result, other])
    runs = pd.read_csv(tmp_path / "runs.csv")
    own, others = runs[runs.claim == "toy.decay"], runs[runs.claim == "toy.other"]
    assert own["steps"].isna().all() and (own["recorded steps"] == 20).all()
    assert (others["steps"] == 100).all() and (others["recorded steps"] == 37).all() and (others["lr"] == 0.5).all()


def test_what_is_no_result_is_refused(tmp_path, result):
    for given in (3, None, [], {}, [result.data]):
        with pytest.raises(jd.UsageError, match="result=.* is not allowed"):
            jd.to_frame(given)
    with pytest.raises(jd.UsageError, match="no status along seed"):
        jd.to_frame(xr.Dataset({"x": 1}))
    with pytest.raises(jd.UsageError, match="long=True is not allowed"):
        jd.to_frame(result, long=True)
    with pytest.raises(jd.UsageError, match="does not exist"):
        jd.to_frame(tmp_path / "missing")
