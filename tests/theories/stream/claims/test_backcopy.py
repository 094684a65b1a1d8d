"""Judges of caches in networks with and without a sink, on made-up divergences."""

import numpy as np
import xarray as xr

from jaxdyn.theories.sink.trials.language import places
from jaxdyn.theories.stream.claims import backcopy
from jaxdyn.theories.stream.trials.backcopy import POLICIES
from tests.theories.galore.helpers import passed


def made(idle=0.4, **more):
    """Six runs whose policies lack nothing more than the network itself but what is given, in nats."""
    rng = np.random.default_rng(0)
    lacks = np.full((6, len(POLICIES), 7), 0.003) + 1e-5 * rng.normal(size=(6, len(POLICIES), 7))
    for i, name in enumerate(POLICIES):
        lacks[:, i, 1:] += {"dense": 1.0}.get(name, 0) * np.linspace(0.5, 1, 6) + more.get(name.replace(" ", "_"), 0)
    scalars = {"idle": idle, "idle_lacks": 0.01, "entropy": 2.0}
    ds = {name: ("seed", np.full(6, value) * (1 + 0.01 * rng.normal(size=6))) for name, value in scalars.items()}
    ds |= {"measured_lacks": (("seed", "policy", "stretch"), lacks)}
    ds |= {"place": (("seed", "stretch"), np.tile(np.asarray(places(24, "float32")), (6, 1)))}
    return xr.Dataset(ds, coords={"policy": list(POLICIES)})


def decided(checks):
    return passed([c for c in checks if not c.gate])


def test_ratios_are_of_perplexities_after_two_lengths():
    ds = made(window=np.log(2))
    np.testing.assert_allclose(backcopy.ratio(ds, "window", "1 sink"), 2, rtol=1e-4)
    np.testing.assert_allclose(backcopy.ratio(ds, "replaced", "1 sink"), 1, rtol=1e-4)
    first = ds.copy(deep=True)
    first.measured_lacks[:, :, :2] = 99
    np.testing.assert_array_equal(backcopy.ratio(first, "window", "1 sink"), backcopy.ratio(ds, "window", "1 sink"))


def worlds(without=0.0, **more):
    """Networks with token 0, and the same without, of which a window loses ``without`` nats; enough for a share."""
    parts = [xr.concat([one] * 3, "seed") for one in (made(**more), made(idle=0.05, window=without))]
    return xr.concat(parts, "cut").assign_coords(cut=[0, backcopy.CUT])


def test_windows_that_break_and_windows_that_hold():
    assert decided(backcopy.judge_breaks(worlds(window=0.7))) == [True, True]
    assert decided(backcopy.judge_breaks(worlds())) == [False, True]
    assert decided(backcopy.judge_breaks(worlds(without=0.7, window=0.7))) == [True, False]
    assert decided(backcopy.judge_breaks(backcopy.alike(worlds(window=0.7)))) == [False, True]
    assert decided(backcopy.judge_breaks(backcopy.broken(worlds()))) == [True, False]
    assert decided(backcopy.judge_breaks(backcopy.exchanged(worlds(window=0.7)))) == [False, False]
    assert [c.passed for c in backcopy.judge_breaks(worlds(idle=0.1)) if c.gate] == [True, False, True, True]
    assert decided(backcopy.judge_holds(made())) == [True]
    assert decided(backcopy.judge_holds(backcopy.broken(made()))) == [False]
    assert decided(backcopy.judge_holds(backcopy.read_by("dense")(made()))) == [False]


def test_a_sink_that_emerges():
    ds = made().assign(copying=("seed", np.full(6, 0.02)))
    assert decided(backcopy.judge_emerges(ds)) == [True]
    assert decided(backcopy.judge_emerges(backcopy.uniform(ds))) == [False]
    assert decided(backcopy.judge_emerges(made(idle=0.1).assign(copying=ds.copying))) == [False]


def test_the_token_and_its_place():
    ds = xr.concat([made(window=0.7)] * 3, "seed").assign(measured_share=("seed", np.full(18, 0.97)), predicted_share=1.0)
    assert decided(backcopy.judge_token(ds)) == [True]
    assert decided(backcopy.judge_token(ds.assign(predicted_share=0.0))) == [False]
    assert decided(backcopy.judge_token(backcopy.placed(ds))) == [False]
    assert decided(backcopy.judge_token(backcopy.both_count(ds.assign(predicted_share=xr.ones_like(ds.measured_share))))) == [False]
    assert [c.passed for c in backcopy.judge_token(ds.assign(measured_lacks=0 * ds.measured_lacks)) if c.gate][-1] is False


def test_runs_that_are_not_judged_count_neither_way():
    left_out = xr.DataArray(np.arange(18) < 2, dims="seed")
    ds = xr.concat([made(window=0.7)] * 3, "seed").assign(measured_share=("seed", np.full(18, 0.97)), predicted_share=1.0)
    ds = ds.assign(measured_share=ds.measured_share.where(~left_out))
    token = backcopy.judge_token(ds)[-1]
    broken = worlds(window=0.7)
    breaks = backcopy.judge_breaks(broken.assign(measured_lacks=broken.measured_lacks.where(~left_out)))
    assert [c.value for c in (token, *breaks) if "share of runs" in c.name] == [1.0, 1.0]


def test_perplexity_that_stays_and_perplexity_that_grows():
    assert decided(backcopy.judge_stable(made())) == [True]
    assert decided(backcopy.judge_stable(backcopy.read_by("dense")(made()))) == [False]
