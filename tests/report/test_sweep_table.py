"""The table of a sweep: infinite results count, those that are no number are said, and different fields look different."""

import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure

from jaxdyn.report.sweep import draw_parallel, page
from jaxdyn.report.sweep_table import table


def test_infinite_results_count_and_missing_ones_are_said():
    values = np.full((3, 16), np.inf)
    values[0, :4] = values[1, :13] = 3.0
    values[1, 13:] = np.nan
    values[2] = 2.0
    status = np.zeros((3, 16), int)
    status[2, 1:] = 1
    ds = xr.Dataset(
        {"x": (("a", "seed"), values), "status": (("a", "seed"), status)}, {"a": [1.0, 1.00001, 2.0], "seed": range(16)}
    )
    found = table(ds)
    first, second, third = (cell["values"]["x"] for cell in found.to_json()["cells"])
    assert first == {"low": 3.0, "median": None, "high": None, "infinite": 12, "no_number": 0}
    assert second == {"low": 3.0, "median": 3.0, "high": 3.0, "infinite": 0, "no_number": 3}
    assert third["median"] == 2.0 and third["no_number"] == 0
    assert ",inf" in found.to_csv({}) and ",nan" in found.to_csv({})
    html = page(found, "trial", [], "")
    assert "∞ (3 to ∞)" in html and "3 (3 to 3); 3 of 16 have no number" in html
    assert '<td class="num">1.00001</td>' in html and found.words(0) == "a = 1" and found.words(1) == "a = 1.00001"


def test_complex_numbers_are_two_columns():
    z = np.array([[1 + 2j, 3 - 4j]])
    data = {
        "status": (("lr", "seed"), np.zeros((1, 2), int)),
        "z": (("lr", "seed"), z),
        "c": (("lr", "seed", "step"), z[..., None] * [1, 2]),
    }
    found = table(xr.Dataset(data, {"lr": [0.1], "seed": [0, 1]}))
    assert {k: v.tolist() for k, v in found.scalars.items()} == {"z.real": [[1, 3]], "z.imag": [[2, -4]]}
    assert set(found.curves) == {"c.real", "c.imag"} and not found.others
    assert found.to_csv({}).splitlines() == ["lr,seed,status,z.real,z.imag", "0.1,0,ok,1.0,2.0", "0.1,1,ok,3.0,-4.0"]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("exponents", [(1.0, 308.0), (308.0, 308.2), (-320.0, 308.0), (-308.0, -300.0), (249.0, 250.0)])
@pytest.mark.parametrize("sign", [1.0, -1.0, "both"])
def test_numbers_at_the_end_of_floats_are_drawn_or_said_to_be_missing(exponents, sign):
    """No axis can be laid out beyond about 1e300: matplotlib would warn, or raise."""
    values = np.repeat(10.0 ** np.linspace(*exponents, 4)[:, None], 8, 1)
    values = values * np.resize([1.0, -1.0], 8) if sign == "both" else sign * values
    data = {"x": (("a", "seed"), values), "c": (("a", "seed", "time"), values[..., None] * [0.5, 1.0])}
    axes = {"a": [1.0, 2.0, 3.0, 4.0], "seed": range(8)}
    found = table(xr.Dataset({**data, "status": (("a", "seed"), np.zeros((4, 8), int))}, axes))
    html = page(found, "trial", [], "")
    said = "Not drawn, a gap: what is infinite, or beyond 1e250, which no axis holds."
    assert html.count(said) == (2 if exponents[1] > 250 else 0) and html.count("<svg") == 2
    fig = Figure()
    draw_parallel(found, ["x"], fig)
    assert all(np.isfinite(line.get_ydata()).all() for line in fig.axes[0].lines)


def test_a_part_of_a_variable_and_a_variable_of_its_name_are_two_columns():
    axes = ("lr", "seed")
    data = {
        "status": (axes, np.zeros((1, 2), int)),
        "z": (axes, np.array([[1 + 2j, 3 - 4j]])),
        "z.real": (axes, np.array([[7.0, 8.0]])),
        "r": ((*axes, "form"), np.array([[[1.0, 2.0], [3.0, 4.0]]])),
        "r.printed": (axes, np.array([[5.0, 6.0]])),
    }
    found = table(xr.Dataset(data, {"lr": [0.1], "seed": [0, 1], "form": ["printed", "corrected"]}))
    assert {k: v.tolist() for k, v in found.scalars.items()} == {
        "z[real]": [[1, 3]],
        "z.imag": [[2, -4]],
        "z.real": [[7, 8]],
        "r[printed]": [[1, 3]],
        "r.corrected": [[2, 4]],
        "r.printed": [[5, 6]],
    }
