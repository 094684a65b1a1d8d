"""Judges of networks that run in parts, on made-up losses."""

import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure

from jaxdyn.theories.dejavu.contextual import claims
from jaxdyn.theories.dejavu.contextual.trial import HEAD_MODES, HEAD_SHARES, SHARES
from jaxdyn.theories.dejavu.model import MODES, SOURCES
from tests.theories.galore.helpers import passed

COST = {"own": 0.01, "other": 0.8, "mean": 0.4, "frequency": 0.5, "random": 1.0, "same": 0.1, "previous": 0.15, "shuffled": 0.7}
RECALL = {"same": 0.8, "previous": 0.75, "shuffled": 0.4, "frequency": 0.45}

EDITS = {name: rival for claim in claims.CLAIMS for name, rival in claim.rivals.items()}
EDITS |= {name: control.breach for claim in claims.CLAIMS for name, control in claim.controls.items()}


def made(runs=8):
    """Eight runs with costs that do not depend on the share, and cosines below one."""
    noise = 0.005 * np.random.default_rng(0).normal(size=(runs, 1, 1))

    def table(values, axis):
        return np.asarray(values)[None, :, None] + noise + np.zeros((1, 1, axis))

    layers = ("seed", "layer", "half")
    return xr.Dataset(
        {
            "measured_units": (("seed", "mode", "share"), 2 + table([COST[m] for m in MODES], 3)),
            "measured_heads": (("seed", "head_mode", "head_share"), 2 + table([0.1 + COST[m] for m in HEAD_MODES], 2)),
            "measured_recall": (("seed", "predictor", "share"), table(list(RECALL.values()), 3)),
            "measured_union": (("seed", "share"), np.full((runs, 3), 6.0) + noise[..., 0]),
            "measured_cosine": (layers, np.full((runs, 2, 2), 0.8) + noise),
            "measured_inside": (layers, np.full((runs, 2, 2), 0.85) + noise),
            "measured_bound": (layers, np.full((runs, 2, 2), 0.7) + noise),
            "measured_room": (layers, np.full((runs, 2, 2), 0.05)),
            "measured_void": (layers, np.full((runs, 2, 2), 0.1) + noise),
            "start_cosine": (layers, np.full((runs, 2, 2), 0.95)),
            "whole": (("seed",), np.full(runs, 2.0)),
            "start": (("seed",), np.full(runs, 6.0)),
        },
        coords={
            "mode": list(MODES),
            "share": list(SHARES),
            "head_mode": list(HEAD_MODES),
            "head_share": list(HEAD_SHARES),
            "predictor": list(RECALL),
            "half": ["attention", "mlp"],
        },
    )


def decided(checks):
    return passed([c for c in checks if not c.gate])


def test_own_units_against_static_ones():
    assert SOURCES == tuple(RECALL)[:2]
    np.testing.assert_allclose(claims.static(made()), made().measured_units.sel(mode="mean"))
    assert decided(claims.judge_contextual(made())) == [True] * 3
    assert decided(claims.judge_contextual(claims.UNCHANGING(made()))) == [False] * 3
    other = claims.replaced("other", "other", "shuffled")(made())
    assert decided(claims.judge_contextual(other))[:2] == [False, False]
    untrained = made().assign(start=made().whole)
    assert [c.passed for c in claims.judge_contextual(untrained) if c.gate] == [False, True]


def test_heads():
    assert decided(claims.judge_heads(made())) == [True] * 6
    assert decided(claims.judge_heads(EDITS["it does not matter which heads run"](made()))) == [False] * 6
    random = claims.replaced("random", "random", "shuffled")(made())
    assert decided(claims.judge_heads(random))[2:4] == [False, False]


def test_predictors():
    assert decided(claims.judge_predictor(made())) == [True] * 4
    assert decided(claims.judge_predictor(claims.replaced("static", "mean", "frequency")(made()))) == [False] * 4
    assert decided(claims.judge_predictor(claims.replaced("shuffled", "other", "shuffled")(made()))) == [False] * 4


def test_cosines():
    checks = claims.judge_cosines(made())
    assert decided(checks) == [True] * 9
    assert len({c.name for c in checks}) == len(checks)
    assert decided(claims.judge_cosines(EDITS["nothing is added to a stream"](made())))[1:] == [False] * 8
    assert decided(claims.judge_cosines(EDITS["training moves no stream"](made())))[1:] == [True, False] * 4
    assert decided(claims.judge_cosines(EDITS["the change in place of the stream"](made())))[0] is False


@pytest.mark.parametrize("plot", [claims.plot_units, claims.plot_recall, claims.plot_cosines])
def test_plots(plot):
    fig = Figure()
    plot(made(), fig)
    assert fig.axes and all(ax.lines for ax in fig.axes)
