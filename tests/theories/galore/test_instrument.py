"""Gradients layer by layer against jax.grad of the whole network, and what gradients of one token have."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure

from jaxdyn.nn.transformer import apply
from jaxdyn.theories.galore.instrument import GRADIENTS, SHARES, measure, predict, summary
from tests.instruments import plain

OTHERS = {
    "llama": {},
    "tied": {"tied": True},
    "parallel": {"norm": "layer", "mlp": "plain", "parallel": True, "biases": ("q", "up")},
}


def loss(params, shape, piece):
    wide = jax.nn.log_softmax(apply(shape, params, piece[None, :-1])[0])
    return -jnp.mean(jnp.take_along_axis(wide, piece[1:, None], -1))


@pytest.mark.slow
@pytest.mark.parametrize("name", OTHERS)
def test_spectra_are_those_of_the_whole_gradient(name):
    shape = plain.changed(**OTHERS[name])
    one, tokens = plain.model(shape), jnp.asarray(plain.TOKENS)
    ds = measure(one, plain.TOKENS, plain.nothing)
    losses, grads = jax.jit(jax.vmap(jax.value_and_grad(lambda p, t: loss(p, shape, t)), (None, 0)))(one.params, tokens)
    np.testing.assert_allclose(ds.loss, losses, rtol=1e-5)
    for matrix in shape.weights:
        every = np.asarray(grads["blocks"][matrix])  # [piece, layer, rows, columns]
        for which, g in (("piece", every), ("batch", every.mean(0))):
            s = np.linalg.svd(g, compute_uv=False) ** 2
            rank, norm, share = (ds[f"{which}_{name}"].sel(matrix=matrix).values for name in ("rank", "norm", "share"))
            np.testing.assert_allclose(rank, s.sum(-1) / s[..., 0], rtol=1e-3)
            np.testing.assert_allclose(norm, np.sqrt(s.sum(-1)), rtol=1e-3)
            parts = [s[..., : max(1, round(part * s.shape[-1]))].sum(-1) / s.sum(-1) for part in SHARES]
            np.testing.assert_allclose(share, np.stack(parts, -1), rtol=1e-3)


def test_one_word_again_and_again_gives_gradients_of_rank_one():
    """All tokens are alike to a network without positions: every matrix' gradient is a product of two vectors."""
    one = plain.model(plain.changed(position="none"))
    ds = measure(one, np.full((2, 12), 3, np.int32), plain.nothing)
    used = ds.piece_rank.sel(matrix=["v", "o", "gate", "up", "down"])
    np.testing.assert_allclose(used, 1, rtol=1e-4)
    np.testing.assert_allclose(ds.piece_share.sel(matrix="up"), 1, rtol=1e-4)
    law = GRADIENTS.predict(ds)
    assert float(law["rank"].min()) > 1.4 and float(law.share.isel(part=-2).max()) < 0.75
    assert law.published.values.tolist() == [0.25, 1 / 3, 0.25, 0.25]


@pytest.mark.parametrize(("rows", "columns"), [(10, 400), (6, 200), (37, 900)])
def test_gaussian_matrices_are_expected_at_the_ranks_at_which_they_are_measured(rows, columns):
    values = np.linalg.svd(np.random.default_rng(0).normal(size=(60, rows, columns)), compute_uv=False) ** 2
    measured = np.asarray(summary(jnp.asarray(values))["share"]).mean(0)
    ds = xr.Dataset({"size": (("matrix", "side"), [[rows, columns]])}, {"matrix": ["up"], "part": list(SHARES)})
    np.testing.assert_allclose(predict(ds).share[0], measured, atol=0.012)


def test_a_mean_over_layers_is_not_that_of_some_of_them():
    """A figure shows what the numbers say: no value where a layer has none."""
    ds = measure(plain.model(), plain.TOKENS, plain.nothing)
    hole = ds.assign(piece_rank=ds.piece_rank.where(ds.layer != 1), piece_share=ds.piece_share.where(ds.layer != 1))
    drawn = GRADIENTS.traces(hole)
    rank = drawn["stable rank of gradients"]
    assert rank.sel(layer=1).isnull().all() and rank.sel(layer=2).notnull().all()
    fig = Figure()
    GRADIENTS.plot(hole, fig)
    curves = [line for line in fig.axes[0].lines if line.get_label() in ds.matrix.values]
    assert len(curves) == ds.sizes["matrix"] and all(np.isnan(line.get_ydata()).all() for line in curves)
