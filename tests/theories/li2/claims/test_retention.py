"""Theorem 4: judges on planted laws; the script of its tables."""

import sys
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn.theories.li2.claims import retention
from jaxdyn.theories.li2.dynamics import retention as theory

FOLDER = Path(__file__).parents[4] / "experiments"


def planted(exponent=1.0, degree=2.0, noise=0.1, units=60):
    """Masses of .95 above each subset's own p and .1 below it: medians 2 (ln M / M)^exponent, and c_50 = d^degree / 2."""
    rng = np.random.default_rng(1)
    starts = ("31", "101", "331", "D30/1", "D30/2", "A5/3")
    order, d = np.array([31, 101, 331, 60, 60, 60.0]), np.array([1, 1, 1, 1, 2, 3.0])
    c = 0.3 * 1.2 ** np.arange(24)
    law = np.log(order) / order
    own = np.where(np.arange(6) < 3, law**exponent * 2 * law[0] ** (1 - exponent), d**degree * law / 2)
    own = own * np.exp(noise * rng.standard_normal((3, units, 6)))
    p = np.minimum(c[:, None, None] * 1.2 ** rng.uniform(-0.5, 0.5, (units, 6)) * law, 1)
    mass = np.where(p[:, None] >= own, 0.95, 0.1)
    coords = {"c": c, "seed": [0], "object": list(theory.OBJECTS), "start": list(starts), "subset": np.arange(units)}
    axes = ("c", "seed", "object", "start", "subset")
    data = {name: (axes, np.moveaxis(x, -1, -2)[:, None]) for name, x in (("measured_mass", mass), ("gradient", 0 * mass))}
    data["p"] = (("c", "seed", "start", "subset"), np.moveaxis(p, -1, -2)[:, None])
    data |= {name: ("start", values) for name, values in (("order", order), ("degree", d), ("share", 0.01 * d))}
    return xr.Dataset(data, coords)


def test_medians_of_planted_thresholds_and_their_intervals():
    found = retention.halves(planted())
    order = np.array([31, 101, 331.0])
    truth = 2 * np.log(order) / order
    low, high = found.interval()
    assert found.p.shape == (3, 6, 5) and found.drawn.shape == (3, 6, 5, retention.DRAWS)
    np.testing.assert_allclose(found.p[:, :3, 1], np.tile(truth, (3, 1)), rtol=0.08)
    assert np.mean((low[:, :3] <= truth[:, None]) & (truth[:, None] <= high[:, :3])) >= 0.8


def test_judges_recognise_the_theorem_and_refuse_other_laws():
    right, wrong, linear = planted(), planted(0.8), planted(degree=1.0)

    def verdicts(ds, words):
        return [check.passed for check in retention.judge(ds) if words in check.name]

    for words in ("over ln(ln M / M), whitened", "over ln M, plain", "drift", "largest M over"):
        assert all(verdicts(right, words)) and not any(verdicts(wrong, words)), words
    assert all(verdicts(right, ": theorem")) and not any(verdicts(right, "authors"))
    assert all(verdicts(linear, "authors")) and not any(verdicts(linear, ": theorem"))
    assert all(check.passed for check in retention.judge_whitened(right))
    assert not any(check.passed for check in retention.judge_whitened(wrong) if "slope" in check.name)
    assert len([check for check in retention.judge(right) if check.name.startswith("p_50")]) == 9


def test_a_threshold_beyond_the_grid_is_no_number():
    ds = planted()
    found = retention.halves(ds.isel(c=slice(0, 4)))
    assert np.isnan(found.p[:, :3]).all()
    assert not any(check.passed for check in retention.judge_whitened(ds.isel(c=slice(0, 4))))


def test_thresholds_above_chance_are_higher():
    ds = planted().isel(start=[0, 3, 4, 5])
    ds = ds.assign(measured_mass=0.2 + 0.7 * ds.p.broadcast_like(ds.measured_mass))
    plain, above = (retention.halves(ds.assign(share=ds.share + 0.2), (0.6,), above_chance=a).p[0, :, 0] for a in (False, True))
    np.testing.assert_allclose(plain, 0.4 / 0.7, rtol=0.1)
    share = 0.2 + 0.01 * ds.degree.values
    np.testing.assert_allclose(above, (share + 0.6 * (1 - share) - 0.2) / 0.7, rtol=0.1)


def test_too_little_data_decides_nothing():
    for part, words in (
        (planted().isel(c=[3]), "at least 3 values of c"),
        (planted().isel(subset=slice(4)), "8 subsets"),
        (planted().isel(start=[0, 1, 3, 4, 5]), "at least 3 cyclic groups"),
    ):
        with pytest.raises(jd.Inconclusive, match=words):
            retention.judge(part)


@pytest.mark.parametrize("claim", retention.CLAIMS, ids=lambda c: c.id)
def test_figures_can_be_drawn(claim):
    fig = Figure()
    claim.plot(planted(), fig)
    assert len(fig.axes) == 2 and all(ax.has_data() for ax in fig.axes)


@pytest.fixture
def script(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    import li2_thm4

    yield li2_thm4
    sys.modules.pop("li2_thm4", None)


def test_the_script_writes_tables_and_figures(script, monkeypatch, tmp_path):
    monkeypatch.setitem(script.SCALES, "quick", {"groups": ("31", "101", "331"), "degrees": ("D30/1", "D30/2", "A5/3")})
    monkeypatch.setattr(script, "swept", lambda out, start, case: planted().sel(start=[start]))
    script.run("quick", tmp_path)
    found = {name: (tmp_path / f"{name}.csv").read_text() for name in ("halves", "slopes", "degrees")}
    assert found["halves"].count("\n") == 10 and found["slopes"].count("\n") == 16 and "exponent of d" in found["degrees"]
    assert all((tmp_path / f"li2_thm4{end}.{kind}").exists() for end in ("", "_halves") for kind in ("svg", "png"))


def test_a_sweep_of_the_script_resumes(script, tmp_path):
    case = {"c": [1.0, 1.5], "spread": 1.5, "subsets": 2, "steps": 5, "seeds": 2}
    ds = script.swept(tmp_path, "S3/2", case)
    assert ds.sizes["start"] == 1 and "status" not in ds
    written = {path: path.stat().st_mtime_ns for path in (tmp_path / "S3_d2").rglob("*.nc")}
    xr.testing.assert_identical(ds.measured_mass, script.swept(tmp_path, "S3/2", case).measured_mass)
    assert written and written == {path: path.stat().st_mtime_ns for path in written}
