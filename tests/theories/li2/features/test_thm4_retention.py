"""Theorem 4: the trial on small runs, judges on planted laws, settings that are refused, the script of its tables."""

import functools
import sys
from pathlib import Path

import jax
import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn.theories.li2.dynamics import retention
from jaxdyn.theories.li2.features import thm4_retention
from jaxdyn.theories.li2.features.thm4_retention import Retention, trial
from tests.theories.li2.helpers import opponents, planted_masses, read, refused

SMALL = jd.grid(Retention, c=[0.7, 1.3, 2.4, 4.5], spread=1.85, starts=("11", "S3/2"), subsets=8, steps=60)


@functools.cache
def runs():
    return jd.sweep(trial, SMALL, 2)


@pytest.mark.slow
def test_trial_keeps_more_with_more_pairs():
    ds = runs()
    assert (ds.status == 0).all() and ds.measured_mass.dims == ("c", "seed", "object", "start", "subset")
    np.testing.assert_allclose(ds.share.isel(c=0, seed=0), [2 / 11, 4 / 6])
    np.testing.assert_allclose(ds.degree.isel(c=0, seed=0), [1, 2])
    whole = ds.measured_mass.where(ds.p == 1)
    assert int((ds.p == 1).sum()) > 5
    np.testing.assert_allclose(whole.min(), 1, atol=1e-9)
    retained = (ds.measured_mass > 0.6).mean(["seed", "subset"]).sel(start="11")
    assert bool((retained.isel(c=-1) > retained.isel(c=0)).all())
    assert bool((ds.p.diff("c") >= 0).all())


@pytest.mark.slow
def test_blocks_of_subsets_change_nothing(monkeypatch):
    s = Retention(c=1.3, spread=1.85, starts=("11",), subsets=8, steps=60)

    def run():
        with jax.enable_x64(True):
            return jax.jit(lambda key: trial(s, key))(jax.random.key(0))

    whole = run()
    monkeypatch.setattr(thm4_retention, "LARGE", 5)
    monkeypatch.setattr(thm4_retention, "SOME", 3)
    assert thm4_retention.block(11, 8) == 2 and thm4_retention.block(4, 8) == 8
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-9), run(), whole)


@pytest.mark.slow
def test_the_draws_of_a_start_do_not_depend_on_the_other_starts():
    other = jd.sweep(trial, SMALL.replace(starts=("11",), c=[1.3]), 1)
    ours = runs().sel(start=["11"], c=[1.3], seed=[0])
    np.testing.assert_array_equal(other.p, ours.p)
    np.testing.assert_allclose(other.measured_mass, ours.measured_mass, atol=1e-6)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"starts": ()}, "at least one"),
        ({"starts": ("7", "7")}, "differ"),
        ({"starts": ("S3/3",)}, "no irrep of degree 3"),
        ({"starts": ("S3/x",)}, "group/degree"),
        ({"starts": ("X9",)}, "X9"),
    ],
)
def test_impossible_settings_are_refused(fields, words):
    with pytest.raises(jd.UsageError, match=words):
        jd.grid(Retention, **fields)


def test_a_degree_that_only_the_irreps_can_tell_is_refused_by_the_trial(x64):
    """No group of order 12 is refused degree 2 at once, but A4 has degrees 1, 1, 1, 3."""
    s = Retention(starts=("A4/2",), subsets=1, steps=1)
    with pytest.raises(jd.UsageError, match="A4 has no irrep of degree 2"):
        trial(s, jax.random.key(0))


FOLDER = Path(__file__).parents[4] / "experiments"


THM4, DELTA, WHITENED = thm4_retention.CLAIMS


def test_planted_powers_and_degrees_are_read():
    right, slower, linear = planted_masses(), planted_masses(0.8), planted_masses(degree=1.0)
    order = np.array([31, 101, 331.0])
    for kind in retention.OBJECTS:
        name = thm4_retention.POWER.format(kind)
        found = read(THM4, right)
        assert found[name].value == pytest.approx(1, abs=0.1) and read(THM4, slower)[name].value == pytest.approx(0.8, abs=0.1)
        np.testing.assert_allclose([found[f"c_50, {kind}, M = {m:g}"].value for m in order], 2, rtol=0.1)
        assert found[thm4_retention.RISE.format(kind)].value == pytest.approx(1, abs=0.1)
        degree = thm4_retention.DEGREE.format(kind)
        assert found[degree].value == pytest.approx(2, abs=0.1) and read(THM4, linear)[degree].value == pytest.approx(1, abs=0.1)
    assert [one.value for one in read(WHITENED, right).values() if "power" in one.name] == pytest.approx([1] * 5, abs=0.1)


def test_rivals_are_told_apart_unless_they_are_what_is_planted():
    for ds, own in ((planted_masses(), "the theorem's number is also needed"), (planted_masses(0.8), None)):
        for name, rival in opponents(THM4).items():
            assert refused(THM4, ds, rival) == (name != own), name
    rivals = opponents(WHITENED)
    assert not refused(WHITENED, planted_masses(), rivals["one number for all M"])
    assert all(refused(WHITENED, planted_masses(0.5), rival) for rival in rivals.values())


def test_pairs_for_a_higher_probability_are_read():
    """Thresholds with a log-normal spread: their .9 quantile over their median, over the theorem's ratio."""
    order = np.array([31, 101, 331.0])
    for noise in (0.1, 0.2):
        truth = np.exp(1.2816 * noise) / np.exp(np.mean(np.log(np.log(10 * order) / np.log(2 * order))))
        found = [one.value for one in read(DELTA, planted_masses(noise=noise)).values()]
        np.testing.assert_allclose(found, truth, rtol=0.08)
    assert all(refused(DELTA, planted_masses(noise=0.1), rival) for rival in opponents(DELTA).values())


def test_what_is_said_of_other_powers():
    order = np.array([31, 101, 331.0])
    slope = np.polyfit(np.log(np.log(order) / order), -0.5 * np.log(order), 1)[0]
    assert opponents(THM4)["a share of one over the root of M"][thm4_retention.POWER.format("cross")](planted_masses()) == (
        pytest.approx(slope)
    )


def test_a_threshold_beyond_the_grid_is_no_number():
    found = thm4_retention.judge_whitened(planted_masses().isel(c=slice(0, 4)))
    assert np.isnan([one.value for one in found]).all()


def test_too_little_data_decides_nothing():
    for part, words in (
        (planted_masses().isel(c=[3]), "at least 3 values of c"),
        (planted_masses().isel(subset=slice(4)), "8 subsets"),
        (planted_masses().isel(start=[0, 1, 3, 4, 5]), "at least 3 cyclic groups"),
    ):
        with pytest.raises(jd.Inconclusive, match=words):
            thm4_retention.judge(part)


@pytest.mark.parametrize("claim", thm4_retention.CLAIMS, ids=lambda c: c.id)
def test_figures_can_be_drawn(claim):
    fig = Figure()
    claim.plot(planted_masses(), fig)
    assert len(fig.axes) >= 2 and all(ax.has_data() for ax in fig.axes)


@pytest.fixture
def script(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    import li2_thm4

    yield li2_thm4
    sys.modules.pop("li2_thm4", None)


@pytest.mark.slow
def test_the_script_writes_tables_and_figures(script, monkeypatch, tmp_path):
    monkeypatch.setitem(script.SCALES, "quick", {"groups": ("31", "101", "331"), "degrees": ("D30/1", "D30/2", "A5/3")})
    monkeypatch.setattr(script, "swept", lambda out, start, case: planted_masses().sel(start=[start]))
    script.run("quick", tmp_path)
    found = {name: (tmp_path / f"{name}.csv").read_text(encoding="utf-8") for name in ("halves", "slopes", "degrees")}
    assert found["halves"].count("\n") == 10 and found["slopes"].count("\n") == 16 and "exponent of d" in found["degrees"]
    assert all((tmp_path / f"li2_thm4{end}.{kind}").exists() for end in ("", "_halves") for kind in ("svg", "png"))


@pytest.mark.slow
def test_a_sweep_of_the_script_resumes(script, tmp_path):
    case = {"c": [1.0, 1.5], "spread": 1.5, "subsets": 2, "steps": 5, "seeds": 2}
    ds = script.swept(tmp_path, "S3/2", case)
    assert ds.sizes["start"] == 1 and "status" not in ds
    written = {path: path.stat().st_mtime_ns for path in (tmp_path / "S3_d2").rglob("*.nc")}
    xr.testing.assert_identical(ds.measured_mass, script.swept(tmp_path, "S3/2", case).measured_mass)
    assert written and written == {path: path.stat().st_mtime_ns for path in written}
