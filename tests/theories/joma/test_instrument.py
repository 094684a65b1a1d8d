"""Attention entropy and stable ranks against NumPy, and what uniform attention and Gaussian matrices have."""

import numpy as np
import pytest

from jaxdyn.theories.joma.instrument import ENTROPY, measure, uniform
from tests.instruments import plain


@pytest.mark.parametrize("fields", [{}, pytest.param({"repeats": 2}, marks=pytest.mark.slow)], ids=["once", "twice"])
def test_entropy_and_ranks_are_those_of_plain_numpy(fields):
    one = plain.model(plain.changed(**fields))
    ds = measure(one, plain.TOKENS, plain.nothing)
    seen, _ = plain.pieces_of(one.shape, one.params, plain.TOKENS)
    b = seen["attention"]
    entropy = -(b * np.log(np.where(b > 0, b, 1))).sum(-1)
    np.testing.assert_allclose(ds.entropy, entropy.mean(-1), rtol=1e-4)
    for name in ds.matrix.values:
        for block in range(2):
            s = np.linalg.svd(np.asarray(one.params["blocks"][name][block]), compute_uv=False)
            assert float(ds["rank"].sel(matrix=name)[block]) == pytest.approx((s**2).sum() / s[0] ** 2, rel=1e-4)


@pytest.mark.parametrize("fields", [{}, {"window": 4}, {"sees_itself": False}], ids=str)
def test_uniform_attention_has_the_entropy_that_is_predicted(fields):
    ds = measure(plain.uniform(plain.changed(**fields)), plain.TOKENS, plain.nothing)
    np.testing.assert_allclose(ds.entropy, ENTROPY.predict(ds).entropy, rtol=1e-5)
    assert uniform(plain.SHAPE, 35) == pytest.approx(2.6325, abs=1e-4)


def test_a_planted_sink_has_no_entropy():
    ds = measure(plain.planted(), plain.circles(), plain.nothing)
    assert float(ds.entropy.isel(head=0).max()) < 0.05
    np.testing.assert_allclose(ds.entropy.isel(head=1), uniform(plain.planted().shape, 80), rtol=1e-5)
