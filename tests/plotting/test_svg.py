"""Paths of a figure in few characters."""

import re

import numpy as np

from jaxdyn.plotting import svg as compacting


def test_shortened_paths_stay_within_a_twentieth_of_a_point_all_along():
    rng = np.random.default_rng(1)
    xy = np.cumsum(rng.normal(size=(200, 2)), 0)
    short = compacting.compact_path("M " + " L ".join(f"{x:.6f} {y:.6f}" for x, y in xy), 1)
    numbers = [float(n) for n in re.findall(r"-?(?:\d+\.?\d*|\.\d+)", short)]
    found = np.cumsum(np.reshape(numbers, (-1, 2)), 0)
    kept = np.concatenate([[True], (np.diff(np.round(xy, 1), axis=0) != 0).any(1)])
    np.testing.assert_allclose(found, xy[kept], atol=0.05 + 1e-9)


def test_closed_and_curved_paths_keep_their_commands():
    assert compacting.compact_path("M 33.504 -216.3 \nL 135.1749 6.80 \nz", 1) == "M33.5-216.3l101.7 223.1z".replace("5-", "5 -")
    assert compacting.compact_path("M 1 2 Q 3.26 4 5 6 z", 1) == "M1 2Q3.3 4 5 6z"
