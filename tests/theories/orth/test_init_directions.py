"""Random vectors of the trial against NumPy; the judges on made-up sets."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

import jaxdyn as jd
from jaxdyn.theories.orth import init_directions


def test_random_trial_is_plain_numpy(x64):
    s = jd.grid(init_directions.Directions, dims=(8, 12), vectors=6, common=0.2).cells()[0]
    found = jax.jit(init_directions.trial)(s, jax.random.key(0))
    sample = 0.2 + np.asarray(jax.random.normal(jax.random.key(0), (6, 12), jnp.float64))
    for i, d in enumerate((8, 12)):
        u = sample[:, :d] / np.linalg.norm(sample[:, :d], axis=1, keepdims=True)
        pairs = (u @ u.T)[np.triu_indices(6, 1)]
        np.testing.assert_allclose(found.measured["signed"].value[i], pairs.mean(), rtol=1e-10)
        np.testing.assert_allclose(found.measured["absolute"].value[i], np.abs(pairs).mean(), rtol=1e-10)


@pytest.fixture
def sets():
    """Made-up means of sets of vectors, near their formulas."""
    rng, dim, axes = np.random.default_rng(0), np.array([64.0, 128.0]), ("common", "seed", "dim")
    ones = np.ones((2, 64, 2))
    common = np.array([0.1, 0.5])[:, None, None]
    noise = 1 + 0.004 * rng.normal(size=ones.shape)
    return xr.Dataset(
        {
            "predicted_absolute": (axes, ones * (2 / np.pi / dim) ** 0.5 / (1 - 1 / (4 * dim))),
            "measured_absolute": (axes, noise * (2 / np.pi / dim) ** 0.5 / (1 - 1 / (4 * dim))),
            "approximate": (axes, ones * (2 / np.pi / dim) ** 0.5),
            "predicted_gram": (axes, ones),
            "measured_gram": (axes, noise**0.5),
            "predicted_signed": (axes, ones * common**2),
            "measured_signed": (axes, noise * common**2),
            "predicted_limit": (axes[:2], (ones * common**2)[..., 0]),
            "measured_limit": (axes[:2], (noise * common**2)[..., -1]),
        },
        {"common": common.ravel(), "dim": dim},
    )


def refused(checks):
    """Which checks fail for certain."""
    return {i for i, c in enumerate(checks) if c.passed is False}


def test_judges_of_random_vectors(sets):
    for judge in (init_directions.judge_absolute, init_directions.judge_signed):
        assert all(c.passed for c in judge(sets))
    assert refused(init_directions.judge_absolute(jd.scaled(predicted_absolute=1.012)(sets))) == {0, 2}
    assert refused(init_directions.judge_absolute(jd.scaled(predicted_gram=1.012)(sets))) == {1}
    assert refused(init_directions.judge_signed(jd.scaled(predicted_signed=1.04)(sets))) == {0}
    assert refused(init_directions.judge_signed(jd.scaled(predicted_limit=1.05)(sets))) == {1}
    small = sets.assign(predicted_signed=sets.predicted_signed * xr.where(sets.common < 0.2, 1.05, 1))
    assert all(c.passed for c in init_directions.judge_signed(small)), "a small mean may be missed by more"
