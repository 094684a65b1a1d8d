"""The table of a sweep: infinite results count, those that are no number are said, and different fields look different."""

import numpy as np
import xarray as xr

from jaxdyn.report.sweep import page
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
