"""What ``jd.verify`` and ``jd.verify_many`` give back, for scripts and notebooks."""

import dataclasses
import json
from pathlib import Path

import IPython.core.formatters
import pytest
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import theories
from jaxdyn.engine.verification.payload import payload
from tests.engine.conftest import TOYS


@pytest.fixture(autouse=True)
def only_toys(monkeypatch):
    monkeypatch.setattr(theories, "__path__", [])


@pytest.fixture(scope="module")
def several(toys):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(theories, "__path__", [])
        return jd.verify_many(["toy.decay*", "solver.decay", toys.CLAIMS[2]], load=[TOYS])


def test_many_claims_in_one_plan(several):
    assert [v.claim.id for v in several] == ["toy.decay", "toy.decay_as_printed", "solver.decay", "toy.wrong"]
    assert [v.verdict for v in several] == ["upheld", "refuted", "upheld", "refuted"]
    costs = {c.program: c for v in several for c in v.costs}
    assert len(costs) == 2, "three claims share a program"


def test_one_pattern_and_options():
    (result,) = jd.verify_many("toy.decay", seeds=2, load=[TOYS], rate=0.5)
    assert result.data.sizes["seed"] == 2 and result.data.rate.values.tolist() == [0.5]


@pytest.mark.parametrize(
    ("claims", "options", "words"),
    [
        ([], {}, "at least one pattern or claim"),
        (["toy.nothing"], {}, "no claim matches"),
        (["toy", "solver"], {"size": 3}, "not every selected claim has the fields size"),
    ],
)
def test_wrong_use(claims, options, words):
    with pytest.raises(jd.UsageError, match=words):
        jd.verify_many(claims, load=[TOYS], **options)


def test_one_claim_is_asked_for_by_verify():
    with pytest.raises(jd.UsageError, match="'toy' matches 8 claims; jd.verify takes one, jd.verify_many takes patterns"):
        jd.verify("toy", load=[TOYS])


def test_the_entry_is_that_of_the_command_line(several):
    whole = payload(several, 1.0)
    assert [v.to_json() for v in several] == whole["claims"]
    json.dumps(several[0].to_json(), allow_nan=False)


def test_a_notebook_shows_a_table(several):
    page = several[3]._repr_html_()
    assert "<b>toy.wrong</b>: refuted (expected upheld)" in page and page.count("<tr>") == 3
    assert "relative error" in page and "failed" in page and "control: 10% off" in page


def test_a_statement_cannot_break_the_notebook(claim):
    assert "<script>" not in jd.verify(claim(statement="<script>alert(1)</script>"))._repr_html_()


def test_plot(several, claim):
    figure = several[0].plot()
    shown = IPython.core.formatters.DisplayFormatter().format(figure)[0]
    assert shown["image/png"].startswith(b"\x89PNG")
    assert isinstance(figure, Figure) and figure.axes

    def own(ds, fig):
        fig.subplots().set_title("mine")

    assert jd.verify(claim(plot=own)).plot().axes[0].get_title() == "mine"


def test_a_plot_changes_no_numbers(claim):
    """Those of the result would be other ones than were judged."""

    def scaled(ds, fig):
        ds["measured_x"] = ds.measured_x / ds.measured_x.max()
        ds.predicted_x.values[:] = 0

    result = jd.verify(claim(plot=scaled))
    before = result.data.copy(deep=True)
    with pytest.raises(ValueError, match="read-only"):
        result.plot()
    assert result.data.identical(before)


def test_without_data_there_is_no_plot(claim, toys):
    result = jd.verify(claim(trial=toys.broken))
    with pytest.raises(jd.UsageError, match="has no data to plot: ValueError: this trial is broken"):
        result.plot()
    assert "this trial is broken" in result._repr_html_() and "in broken" in repr(result)


def test_data_say_where_they_come_from(several, tmp_path):
    data, control = several[0].data, several[0].control_data["sign descent"]
    assert data.attrs["claim"] == "toy.decay" and data.attrs["seeds"] == "0:4" and data.attrs["scale"] == "quick"
    assert f"jaxdyn {jd.__version__}" in data.attrs["versions"] and "jax " in data.attrs["versions"]
    data.drop_vars("form").to_netcdf(tmp_path / "data.nc", engine="h5netcdf")
    assert xr.load_dataset(tmp_path / "data.nc", engine="h5netcdf").attrs == data.attrs
    others = {"control": "sign descent", "settings": control.attrs["settings"]}
    assert control.attrs == data.attrs | others
    assert [json.loads(ds.attrs["settings"])["optimizer"] for ds in (data, control)] == ["gd", "sign"]


def test_a_control_that_passes_says_with_which_values(toys):
    toothless = next(c for c in toys.CLAIMS if c.id == "toy.toothless")
    assert "control 10% off: NOT rejected: also passes with relative error: 0.1, bound at most 1000" in repr(jd.verify(toothless))


def test_conclusions_that_cannot_travel_are_the_claims_own_error(claim):
    """A future whose result cannot be had does not end the others."""
    import concurrent.futures as cf

    from jaxdyn.engine.verification.verify import Elsewhere, make_plan, run_plan

    def conclude(task, data, controls):
        future = cf.Future()
        future.set_exception(TypeError("cannot pickle a lock"))
        return Elsewhere(future, lambda: pytest.fail("judged here"))

    (result,) = run_plan(make_plan([claim()]), None, conclude=conclude)
    assert result.verdict == "error" and "cannot pickle a lock" in result.message


def test_outcomes_are_told_in_the_order_in_which_they_fall_and_returned_in_the_plans(toys):
    from jaxdyn.engine.verification.verify import make_plan, run_plan

    told = []
    results = run_plan(make_plan([toys.CLAIMS[0], toys.CLAIMS[-1]]), None, concluded=lambda v: told.append(v.claim.id))
    assert {v.claim.id for v in results} == set(told) and [v.claim.id for v in results] == ["toy.decay", "solver.decay"]


def test_types_are_shipped():
    assert (Path(jd.__file__).parent / "py.typed").is_file()


def test_runs_that_are_not_judged_are_counted_with_the_verdict(several):
    """In a notebook and at a prompt as in the report."""
    some = dataclasses.replace(several[0], diverged=2, outside=1)
    line = f"3 of {some.task.main.runs} runs not judged: 2 diverged, 1 outside"
    assert line in repr(some) and line in some._repr_html_()
    assert "not judged" not in repr(several[0]) + several[0]._repr_html_()
