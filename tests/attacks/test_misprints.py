"""Misprints: a form that comes true along a swept number is none."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jaxdyn as jd
from jaxdyn.attacks.misprints import ask, power
from tests.engine.handmade import Fields, case, data, law

LR = (0.01, 0.02, 0.04)


def printed(errors, evidence="reduced", lr=LR):
    """A printed form that is wrong by these shares at the rates."""
    derived = law(
        form="derived", evidence=evidence, quick=jd.grid(Fields, lr=list(lr)), rivals={"nothing": jd.off(predicted_z=0.0)}
    )
    form = derived.as_printed(id="toy.law_as_printed", title="t", statement="s", form="printed", printed="eq. (1)")
    runs = data(0.001, lr=lr, forms={"derived": 1.0, "printed": 1.0})
    factor = np.where(runs.form.values == "printed", 1 + np.asarray(errors)[:, None], 1.0)
    return case(form, _times(runs, factor))


def _times(runs, factor):
    import xarray as xr

    return runs.assign(
        predicted_z=runs.predicted_z * xr.DataArray(factor, dims=("lr", "form"), coords={"lr": runs.lr, "form": runs.form})
    )


def test_a_form_that_is_right_in_a_limit_is_no_misprint():
    (finding,), fact = ask(printed([0.1, 0.2, 0.4]))
    assert finding.text == "the printed form comes true along lr: its error falls from 0.399 to 0.0989, with the power 1"
    assert finding.subject == "lr"
    assert abs(fact["power of the printed form's error"]["lr"] - 1) < 0.05


@pytest.mark.parametrize("errors", [[0.3, 0.3, 0.3], [0.25, 0.28, 0.3], [0.1, 0.4, 0.2]])
def test_a_form_that_stays_wrong_is_a_misprint(errors):
    assert ask(printed(errors))[0] == []


def test_an_identity_is_exact():
    assert ask(printed([0.1, 0.2, 0.4], evidence="algebra")) == ([], "fails against an exact formula")


def test_without_a_sweep_it_is_not_asked():
    found, why = ask(printed([0.1, 0.2], lr=(0.01, 0.02)))
    assert found == [] and why.startswith("not asked: no number is swept over a factor of 4")


@given(st.floats(-3, 3), st.floats(0.1, 10))
def test_the_power_is_that_of_a_power_law(exponent, size):
    values = np.array([0.5, 1.0, 3.0, 8.0])
    found = power(values, size * values**exponent)
    assert abs(found - exponent) < 1e-6 or abs(exponent) < 1e-6


def test_a_form_that_passes_at_an_end_is_found():
    """The errors of handmade's judge are bounded by 1%."""
    ((finding,), _) = ask(printed([0.3, 0.4, 0.001]))
    assert finding.text == "the printed form passes at lr = 0.04, all else as in the claim"


@pytest.mark.parametrize("errors", [[0.3, 0.001, 0.4], [0.3, 0.3, 0.3]])
def test_a_form_that_passes_inside_or_nowhere_is_not(errors):
    assert ask(printed(errors))[0] == []
