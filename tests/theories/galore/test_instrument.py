"""Gradients layer by layer against jax.grad of the whole network, and what gradients of one token have."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from jax.flatten_util import ravel_pytree
from matplotlib.figure import Figure

from jaxdyn import nn
from jaxdyn.instruments.law import Asked
from jaxdyn.instruments.moment import Moment, batch_loss
from jaxdyn.laboratory.lab import study
from jaxdyn.laboratory.tasks import TASKS
from jaxdyn.nn.transformer import apply
from jaxdyn.theories.galore import instrument
from jaxdyn.theories.galore.instrument import GRADIENTS, RANK, SHARES, measure, predict, summary
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


# stable ranks along descent


def moment(frozen=(), **fields):
    task = TASKS["facts"]
    fields = {"hidden": 6, "mlp": "plain", "activation": "tanh", "norm": "none"} | fields
    shape = nn.Transformer(vocabulary=task.vocabulary, width=4, position="none", start="fan_in", **fields)
    params = nn.network(shape).init(jax.random.key(0))
    batch = task.batch(task.world(jax.random.key(1)), jax.random.key(2), 9)

    def mean(p):
        return batch_loss(shape, p, batch)

    gradient = jax.grad(mean)(params)
    return Moment(shape, params, batch, gradient, mean, (), jnp.float32(0.1), jnp.int32(0), frozenset(frozen))


@pytest.mark.parametrize("frozen", [(), ("embed", "head", "q", "k", "v", "up", "down")], ids=["all", "o alone"])
def test_the_gradient_decays_as_by_the_whole_gauss_newton_matrix(frozen, monkeypatch):
    monkeypatch.setattr(instrument, "VECTORS", 40)
    at = moment(frozen)
    flat, back = ravel_pytree(at.params)
    moves = np.asarray(ravel_pytree(jax.tree.map_with_path(lambda p, w: jnp.full(w.shape, p[-1].key not in frozen), at.params))[0])
    j = np.asarray(jax.jacrev(lambda p: apply(at.shape, back(p), at.batch.tokens)[:, -1])(flat), np.float64) * moves
    p = np.asarray(jax.nn.softmax(apply(at.shape, at.params, at.batch.tokens)[:, -1]), np.float64)
    weights = np.asarray(at.batch.weights[:, -1], np.float64)
    s = sum(w * a.T @ (np.diag(b) - np.outer(b, b)) @ a for w, a, b in zip(weights, j, p, strict=True))
    g = np.asarray(ravel_pytree(at.gradient)[0], np.float64) * moves
    start = jax.jit(lambda: instrument.first_curvature(at))()
    v = jnp.asarray(np.random.default_rng(0).standard_normal(g.size) * moves, jnp.float32)
    np.testing.assert_allclose(instrument.bent(at, v), s @ np.asarray(v, np.float64), atol=2e-5)
    names = [name for name in at.shape.weights if name not in frozen]
    for steps in (0, 7, 60):
        found, _ = instrument.read_ranks(at._replace(step=jnp.int32(steps)), start)
        decayed = back(jnp.asarray(np.linalg.matrix_power(np.eye(g.size) - 0.1 * s, steps) @ g, jnp.float32))["blocks"]
        sigma = [np.linalg.svd(np.asarray(decayed[name][0], np.float64), compute_uv=False) for name in names]
        np.testing.assert_allclose(found["decayed"][0], [(x**2).sum() / x[0] ** 2 for x in sigma], rtol=0.01)
        assert found["decayed"].shape == found["rank"].shape == (1, len(names))
    assert float(found["steepness"]) == pytest.approx(0.05 * np.linalg.eigvalsh(s)[-1], rel=1e-3)


def test_stable_ranks_without_singular_values():
    g = np.random.default_rng(0).standard_normal((3, 6, 20)).astype(np.float32) * np.asarray([1, 1e-6, 0])[:, None, None]
    found = instrument.ranks({"a": jnp.asarray(g), "b": jnp.asarray(np.swapaxes(g, 1, 2))})
    sigma = np.linalg.svd(np.asarray(g[:2], np.float64), compute_uv=False)
    np.testing.assert_allclose(found[:2, 0], (sigma**2).sum(1) / sigma[:, 0] ** 2, rtol=3e-3)
    np.testing.assert_allclose(found[:, 0], found[:, 1], rtol=1e-3)
    assert found[2].tolist() == [0, 0]


def test_the_lemma_holds_where_one_matrix_moves_and_not_where_all_do():
    fields = {"data": "facts", "same": True, "reading": 48, "layers": 1, "width": 32, "mlp": "none", "lr": 0.05}
    variants = {"v alone": {"frozen": "embed+head+q+k+o"}, "all": {}}
    one, every = study("rank", variants, seeds=3, steps=60, every=10, **fields).cells
    assert one.verdict == "upheld" and min(one.off, one.shuffled) > 5 * RANK.bound
    assert every.error > RANK.bound


def test_ranks_are_of_descent_on_one_batch():
    shape = moment().shape
    assert "one batch" in RANK.why_not(Asked(shape, "facts", "sgd", False))
    assert "optimizer" in RANK.why_not(Asked(shape, "facts", "muon", True))
    assert not RANK.why_not(Asked(shape, "facts", "sgd", True))
