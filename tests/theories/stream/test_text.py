"""Judges of caches in a language model, on made-up cross-entropies."""

import numpy as np
import xarray as xr

import jaxdyn as jd
from jaxdyn.theories.sink.language import POLICIES, places
from jaxdyn.theories.stream import text
from tests.theories.galore.helpers import passed


def made(**more):
    """Three runs whose policies lose nothing but what is given, in nats or as a function of the position."""
    rng = np.random.default_rng(0)
    x = np.asarray(places(32, "float32"))
    base = 2 + 0.1 * rng.normal(size=(3, 1, 7)) + np.zeros((3, len(POLICIES), 7))
    for i, name in enumerate(POLICIES):
        base[:, i] += (
            {"dense": 1.0, "absolute": 0.1}.get(name, 0) + more.get(name.replace(" ", "_"), 0) + 1e-3 * rng.normal(size=(3, 7))
        )
    return xr.Dataset(
        {
            "measured_loss": (("seed", "policy", "stretch"), base),
            "measured_sink": (("seed", "step"), np.zeros((3, 2))),
            "validation": (("seed", "step"), np.tile([5.5, 2.0], (3, 1))),
            "place": (("seed", "stretch"), np.tile(x, (3, 1))),
        },
        coords={"policy": list(POLICIES)},
    )


def decided(checks):
    return passed([c for c in checks if not c.gate])


def test_a_window_without_a_sink():
    assert decided(text.judge_window(made())) == [True, True]
    assert decided(text.judge_window(made(window=0.05))) == [False, False]
    assert decided(text.judge_window(text.broken("window")(made()))) == [False, False]
    assert decided(text.judge_window(text.read_by("dense", instead=("window",))(made()))) == [False, False]
    sink = made()
    sink["measured_sink"] = sink.measured_sink + 0.1
    assert [c.passed for c in text.judge_window(sink) if c.gate] == [True, False]


def test_streaming_against_recomputation():
    assert decided(text.judge_recomputed(made())) == [True, True]
    assert decided(text.judge_recomputed(text.read_by("absolute")(made()))) == [False, False]
    assert decided(text.judge_level(made())) == [True]
    growing = 0.05 * np.log10(np.asarray(places(32, "float32")))
    assert decided(text.judge_level(made(**{"1_sink": growing}))) == [False]


def test_dense_caches_and_positions():
    assert decided(text.judge_dense(made())) == decided(text.judge_positions(made())) == [True]
    assert decided(text.judge_dense(text.ALIKE(made()))) == decided(text.judge_positions(text.ALIKE(made()))) == [False]
    assert decided(text.judge_positions(jd.swap(measured_loss=text.exchanged)(made()))) == [False]
    assert float(text.mean_ratio(made(), "dense", "dense").max()) == 1


def test_more_first_tokens():
    assert decided(text.judge_count(made())) == [True] * 3
    assert decided(text.judge_count(jd.swap(measured_loss=text.helped)(made()))) == [False] * 3
    assert decided(text.judge_count(text.read_by("dense", instead=text.MORE)(made()))) == [False] * 3
