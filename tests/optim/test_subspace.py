"""Bases: sides from shapes, singular subspaces by three ways, signs, and gradients without direction."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxdyn.errors import UsageError
from jaxdyn.optim.subspace import Basis, Subspace, find, lift, low_shape, lower, overlap, sides, signed, zeros

SHAPES = [(6, 10), (10, 6), (7, 7)]


def decaying(shape, ratio=0.5, seed=0):
    """A matrix whose singular values fall by a constant ratio."""
    rng = np.random.default_rng(seed)
    k = min(shape)
    u, v = (np.linalg.qr(rng.normal(size=(n, k)))[0] for n in shape)
    return u * ratio ** np.arange(k) @ v.T


FIND = jax.jit(find, static_argnums=0)


def basis_of(s, g, old=None):
    old = zeros(s, g.shape, jnp.asarray(g).dtype) if old is None else old
    return FIND(s, jnp.asarray(g), old, jax.random.key(0))


@jax.jit
def nearest(basis, g):
    return lift(basis, lower(basis, g))


@pytest.mark.parametrize(
    ("side", "expected"),
    [("short", ["left", "right", "right"]), ("long", ["right", "left", "left"]), ("left", ["left"] * 3), ("right", ["right"] * 3)],
)
@pytest.mark.parametrize("rank", [2, 50])
def test_the_side_is_decided_by_the_weight_whatever_the_rank(side, expected, rank):
    s = Subspace(rank=rank, side=side)
    for shape, name in zip(SHAPES, expected, strict=True):
        assert sides(s, *shape) == (name == "left", name == "right")
        r = min(rank, *shape)
        assert low_shape(s, shape) == ((r, shape[1]) if name == "left" else (shape[0], r))


def test_full_projects_both():
    s = Subspace(rank=3, side="full")
    assert low_shape(s, (2, 6, 10)) == (2, 3, 3)
    basis = basis_of(s, decaying((6, 10)))
    assert basis.left.shape == (6, 3) and basis.right.shape == (10, 3)


@pytest.mark.thinned
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("side", ["short", "long", "full"])
@pytest.mark.parametrize(("finder", "tolerance"), [("svd", 1e-12), ("randomized", 1e-4), ("iteration", 1e-7)])
def test_the_singular_subspace_is_found(shape, side, finder, tolerance, x64):
    g, s = decaying(shape), Subspace(rank=3, side=side, finder=finder, power=2, oversample=3)
    basis = basis_of(s, g)
    for _ in range(8 if finder == "iteration" else 0):  # warm starts: 18 rounds in all, each four times as near (4^-18 = 1.5e-11)
        basis = basis_of(s, g, basis)
    u, _, vt = np.linalg.svd(g)
    for ours, theirs in zip(basis, (u[:, :3], vt[:3].T), strict=True):
        if ours is not None:
            assert np.linalg.norm(ours @ ours.T - theirs @ theirs.T, 2) < tolerance
            np.testing.assert_allclose(ours.T @ ours, np.eye(3), atol=1e-12)


def test_iteration_at_rest_stays_itself(x64):
    s = Subspace(rank=3, finder="iteration", side="left")
    g = decaying((6, 10))
    basis = basis_of(s, g)
    for _ in range(20):
        basis = basis_of(s, g, basis)
    np.testing.assert_allclose(basis_of(s, g, basis).left, basis.left, atol=1e-10)


@pytest.mark.slow
@settings(deadline=None, max_examples=15)
@given(st.integers(0, 2**16), st.sampled_from(SHAPES), st.sampled_from(["orthonormal", "svd"]))
def test_projection_is_the_nearest_point_of_the_subspace(seed, shape, finder):
    g = np.random.default_rng(seed).normal(size=shape).astype(np.float32)
    for side in ("short", "long", "full"):
        basis = basis_of(Subspace(rank=3, side=side, finder=finder), g)
        once = nearest(basis, g)
        np.testing.assert_allclose(nearest(basis, once), once, atol=1e-4)
        assert np.linalg.norm(once) <= np.linalg.norm(g) * (1 + 1e-5)


def test_signs_do_not_depend_on_the_factorisation():
    p = jnp.asarray(np.random.default_rng(0).normal(size=(5, 3)), jnp.float32)
    flipped = p * np.array([1, -1, -1])
    np.testing.assert_array_equal(signed(p), signed(flipped))
    assert np.all(np.take_along_axis(np.asarray(signed(p)), np.argmax(np.abs(p), 0)[None], 0) > 0)


@pytest.mark.parametrize("finder", ["svd", "randomized", "iteration"])
@pytest.mark.parametrize("value", [0.0, np.nan, np.inf])
def test_a_gradient_without_direction_keeps_the_basis_or_takes_a_random_one(finder, value):
    s = Subspace(rank=2, finder=finder)
    g = np.full((6, 10), value, np.float32)
    first = basis_of(s, g)
    np.testing.assert_allclose(first.left.T @ first.left, np.eye(2), atol=1e-5)
    kept = basis_of(s, decaying((6, 10)).astype(np.float32))
    np.testing.assert_array_equal(basis_of(s, g, kept).left, kept.left)


def test_bfloat16_gradients_are_decomposed_in_float32():
    g = jnp.asarray(decaying((32, 64), 0.9), jnp.bfloat16)
    basis = basis_of(Subspace(rank=8, dtype="float32"), g)
    assert basis.left.dtype == jnp.float32
    np.testing.assert_allclose(basis.left.T @ basis.left, np.eye(8), atol=1e-5)
    low = basis_of(Subspace(rank=8), g)
    assert low.left.dtype == jnp.bfloat16
    drift = np.abs(np.asarray(low.left, np.float32).T @ np.asarray(low.left, np.float32) - np.eye(8)).max()
    assert 1e-4 < drift < 2e-2  # stored in bfloat16, it is orthonormal to about 1%


def test_batches_are_matrices_one_by_one():
    g = np.stack([decaying((6, 10), seed=i) for i in range(3)]).astype(np.float32)
    basis = basis_of(Subspace(rank=2), g)
    for i in range(3):
        np.testing.assert_allclose(basis.left[i], basis_of(Subspace(rank=2), g[i]).left, atol=1e-5)


@pytest.mark.parametrize("finder", ["svd", "randomized", "iteration"])
@pytest.mark.parametrize("scale", [1e-30, 1e-20, 1e20, 1e30])
def test_the_basis_does_not_depend_on_the_gradients_size(finder, scale):
    s, g = Subspace(rank=3, finder=finder), decaying((6, 10))
    plain, scaled = (basis_of(s, (g * x).astype(np.float32)) for x in (1.0, scale))
    np.testing.assert_allclose(scaled.left, plain.left, atol=1e-4)


def test_ranks_of_numpy_are_hashable_whole_numbers():
    assert Subspace(rank=np.int64(3)) == Subspace(rank=jnp.int32(3)) == Subspace(rank=3)
    assert hash(Subspace(rank=np.array(3))) == hash(Subspace(rank=3))


def test_overlap_is_of_subspaces():
    q = np.linalg.qr(np.random.default_rng(0).normal(size=(8, 4)))[0]
    turn = np.linalg.qr(np.random.default_rng(1).normal(size=(2, 2)))[0]
    same = overlap(Basis(q[:, :2], None), Basis(q[:, :2] @ turn, None))
    apart = overlap(Basis(q[:, :2], None), Basis(q[:, 2:], None))
    np.testing.assert_allclose([same, apart], [1, 0], atol=1e-6)


def test_gaussian_bases_keep_lengths_on_average():
    s = Subspace(rank=64, side="left", finder="gaussian")
    g = jnp.ones((128, 1), jnp.float32)
    old = zeros(s, (128, 64), jnp.float32)
    size = jax.jit(lambda k: jnp.sum(jnp.square(lower(find(s, g, old, k), g))))
    sizes = [float(size(k)) for k in jax.random.split(jax.random.key(0), 50)]
    assert abs(np.mean(sizes) / 128 - 1) < 0.1


RANKS = (0, True, 2.0, 2.5, np.int64(0), None, "2")
WRONG = ({"side": "top"}, {"finder": "guess"}, {"finder": "iteration", "power": 0}, {"oversample": -1}, {"power": 1.5},
         {"dtype": "int32"}, {"dtype": "floot"})  # fmt: skip


@pytest.mark.parametrize("wrong", [*({"rank": rank} for rank in RANKS), *({"rank": 2, **more} for more in WRONG)])
def test_wrong_descriptions_are_refused(wrong):
    with pytest.raises(UsageError, match="not allowed"):
        Subspace(**wrong)
