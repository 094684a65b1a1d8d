"""Spectra against singular values, and the law of Marchenko and Pastur against Gaussian matrices."""

import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn.instruments.spectra import energies, gaussian_share, gaussian_stable_rank, share, stable_ranks

SIZES = [(300, 300), (200, 700), (700, 200), (40, 60)]


@pytest.mark.parametrize("size", [(5, 9), (9, 5), (6, 6)])
def test_energies(size):
    w = np.random.default_rng(0).normal(size=(2, *size)).astype(np.float32)
    s = np.linalg.svd(w, compute_uv=False)
    found = energies(jnp.asarray(w))
    np.testing.assert_allclose(found, s**2, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(stable_ranks(found), (s**2).sum(-1) / s[:, 0] ** 2, rtol=1e-4)
    np.testing.assert_allclose(share(found, 2), (s[:, :2] ** 2).sum(-1) / (s**2).sum(-1), rtol=1e-4)


@pytest.mark.parametrize("size", SIZES)
def test_gaussian_matrices(size):
    s = np.linalg.svd(np.random.default_rng(1).normal(size=size), compute_uv=False) ** 2
    rough = 0.02 if min(size) >= 200 else 0.1  # the edge of the law moves like the power -2/3 of the size
    assert gaussian_stable_rank(*size) == pytest.approx(s.sum() / s[0], rel=2 * rough)
    for part in (0.1, 0.25, 0.5, 1.0):
        rank = round(part * min(size))
        assert gaussian_share(*size, rank) == pytest.approx(s[:rank].sum() / s.sum(), rel=rough)


def test_ends_of_the_law():
    assert gaussian_share(30, 50, 0) == 0 and gaussian_share(30, 50, 30) == pytest.approx(1)
    assert gaussian_stable_rank(4, 4) == 1  # of a square matrix, a quarter of its side
