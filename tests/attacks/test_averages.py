"""Means over settings: a mean of cells that differ in sign is found, one that holds in each cell is not."""

import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.attacks import averages
from tests.attacks import toys
from tests.engine import handmade
from tests.engine.handmade import data

NAME = "mean error"


def judge_mean(ds):
    """The mean over cells and seeds of a difference; the second cell's is shifted by ``tilt``."""
    error = (ds.measured_path / ds.predicted_path - 1).isel(time=-1)
    return [jd.mean_within(NAME, error, over=["lr", "seed"], low=-0.05, high=0.05)]


def tilted(ds):
    error = (ds.measured_path / ds.predicted_path - 1).isel(time=-1)
    sign = np.where(np.arange(ds.sizes["lr"]) % 2 == 0, 1.0, -1.0) if ds.sizes["lr"] > 1 else np.where(ds.lr < 0.0075, 1.0, -1.0)
    return [jd.mean_within(NAME, error + 0.2 * ds.lr.copy(data=sign), over=["lr", "seed"], low=-0.25, high=0.25)]


def outside(ds):
    sign = ds.lr.copy(data=np.where(ds.lr.values < 0.0075, 1.0, -1.0))
    noise = (ds.measured_path / ds.predicted_path - 1).isel(time=-1)
    return [jd.mean_within(NAME, noise + 0.2 * sign, over=["lr", "seed"], low=-0.1 - 10 * float(ds.sizes["lr"] > 1), high=0.1)]


def test_a_mean_that_holds_in_every_cell_is_not_accused():
    assert averages.ask(toys.case(judge=judge_mean)).outcome == "noticed"
    assert averages.ask(toys.case(judge=tilted)).outcome == "noticed", "cells differ in sign, but each lies inside"


def test_cells_on_both_sides_are_found():
    found = averages.ask(toys.case(judge=outside))
    assert found.outcome == "finding" and "lr = 0.005" in found.findings[0].text


def test_one_cell_has_no_mean():
    assert averages.ask(toys.case(quick=jd.grid(toys.Decay))).outcome == "not applicable"


@pytest.mark.parametrize(
    ("cells", "name", "found"),
    [
        ((0.5, 1.8), "ratio", True),
        ((1.3, 1.8), "ratio", False),
        ((0.5, 1.8), "loss", False),
        ((0.5, 1.8), "loss over its law", True),
    ],
)
def test_a_ratio_that_is_a_mean_of_both_sides_of_one_is_found(cells, name, found):
    def judge(ds):
        return [jd.mean_reading(name, (ds.measured_z / ds.predicted_z).mean("entry"), over=["lr", "seed"])]

    noise = 0.01 * np.random.default_rng(0).normal(size=(2, 4, 3))
    runs = data(np.asarray(cells)[:, None, None] - 1 + noise)
    one = handmade.law(expected="measured", judge=judge, rivals={"nothing": jd.off({name: 0.0})})
    answer = averages.ask(handmade.case(one, runs))
    assert (answer.outcome == "finding") == found, answer
    if found:
        assert "on both sides of 1: 0.5" in answer.findings[0].text and "lr = 0.2" in answer.findings[0].text


def of_each_rate(ds):
    """Readings of single rates, which a cell of another rate has not."""
    at_one = (ds.measured_path / ds.predicted_path).isel(time=-1).sel(lr=0.005) - 1
    side = at_one.curvature.copy(data=np.where(at_one.curvature.values < 1.5, 0.5, 1.5))
    return [jd.mean_reading("ratio at lr 0.005", at_one + side, over=["curvature", "seed"])]


def test_a_judge_that_needs_all_values_of_one_axis_is_asked_along_the_others():
    grid = jd.grid(toys.Decay, lr=[0.005, 0.01], curvature=[1.0, 2.0])
    rivals = {"nothing": jd.off({"ratio at lr 0.005": 0.0})}
    one = toys.case(quick=grid, judge=of_each_rate, expected="measured", bounds=None, rivals=rivals, controls={})
    answer = averages.ask(one)
    assert answer.outcome == "finding" and "curvature = 2" in answer.findings[0].text, answer
