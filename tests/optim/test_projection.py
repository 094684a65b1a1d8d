"""GaLore against NumPy, against optax's, and its properties under vmap, scan, batches and bad gradients."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import optax.contrib
import pytest

from jaxdyn import linalg
from jaxdyn.errors import UsageError
from jaxdyn.optim.adam import adam_direction
from jaxdyn.optim.axes import Matrix
from jaxdyn.optim.projection import Lazy, galore, golore
from jaxdyn.optim.subspace import Subspace, overlap
from tests.optim.numpy_galore import galore_adam

LR = 0.05


def loss(params):
    """Neither convex nor quadratic, and different in every entry."""
    return sum(jnp.sum(jnp.sin(x * jnp.arange(1, x.size + 1, dtype=x.dtype).reshape(x.shape) / x.size * 3)) for x in
               jax.tree.leaves(params))  # fmt: skip


def train(tx, params, steps, lr=LR, observe=lambda state: None):
    """All weights along training."""
    tx = optax.chain(tx, optax.scale(-lr))

    def step(carry, _):
        params, state = carry
        updates, state = tx.update(jax.grad(loss)(params), state, params)
        params = optax.apply_updates(params, updates)
        return (params, state), (params, observe(state[0]))

    return jax.lax.scan(step, (params, tx.init(params)), None, length=steps)[1]


GRADIENT = jax.jit(jax.grad(loss))


def weights(*shape, dtype=np.float64, seed=0):
    return jnp.asarray(np.random.default_rng(seed).normal(size=shape), dtype)


@pytest.mark.thinned
@pytest.mark.parametrize("shape", [(5, 8), (8, 5)])
@pytest.mark.parametrize("side", ["short", "long", "full"])
@pytest.mark.parametrize("moments", ["keep", "reset", "rotate"])
def test_numpy_from_the_formulas(shape, side, moments, x64):
    w = weights(*shape)
    tx = galore(adam_direction(), Subspace(rank=3, side=side), every=4, scale=0.5, moments=moments)
    ours = jax.jit(lambda w: train(tx, {"w": w}, 14)[0]["w"])(w)
    theirs = galore_adam(
        np.asarray(w), lambda w: np.asarray(GRADIENT(w)), steps=14, lr=LR, rank=3, every=4, scale=0.5, side=side, moments=moments
    )
    np.testing.assert_allclose(ours, theirs, atol=1e-11)


def test_optax_agrees_on_the_long_side_and_differs_on_the_short_one():
    params = {"a": weights(6, 9, dtype=np.float32), "b": weights(9, 6, dtype=np.float32), "v": weights(4, dtype=np.float32)}
    their_step = optax.contrib.scale_by_galore(rank=3, update_proj_gap=5, scale=0.25)

    def ours(side):  # LAPACK's signs: the moments that are kept at a refresh depend on them
        return galore(optax.scale_by_adam(), Subspace(rank=3, side=side, signs=False), every=5)

    theirs, long, short = (
        jax.jit(lambda p, tx=tx: train(tx, p, 20)[0])(params) for tx in (their_step, ours("long"), ours("short"))
    )
    for name in params:
        np.testing.assert_allclose(long[name], theirs[name], atol=1e-5)
    assert float(jnp.max(jnp.abs(short["a"] - theirs["a"]))) > 1e-2


class CountedSvd:
    """linalg.svd that counts the matrices it decomposes when a program runs."""

    def __init__(self, monkeypatch):
        self.matrices, self.real = 0, linalg.svd
        monkeypatch.setattr(linalg, "svd", self)

    def tick(self, seen):
        self.matrices += np.size(seen)

    def __call__(self, a):
        jax.debug.callback(self.tick, a[..., 0, 0])  # once for each element of a vmap
        return self.real(a)


@pytest.mark.thinned
@pytest.mark.parametrize("runs", [None, 3])
@pytest.mark.parametrize("traced_period", [False, True])
def test_as_many_decompositions_as_periods(monkeypatch, runs, traced_period):
    counted = CountedSvd(monkeypatch)

    def run(w, every):
        return train(galore(adam_direction(), Subspace(rank=2), every=every), {"a": w, "b": w.T}, 12)[0]

    w, every = weights(4, 6, dtype=np.float32), 4
    if traced_period:
        every = jnp.int32(4)
    if runs:
        w = w * jnp.arange(1, runs + 1, dtype=w.dtype)[:, None, None]
        every = jnp.full(runs, 4) if traced_period else every
        axes = (0, 0 if traced_period else None)
        jax.jit(jax.vmap(run, axes))(w, every)
    else:
        jax.jit(run)(w, every)
    jax.effects_barrier()
    assert counted.matrices == 2 * 3 * (runs or 1)  # two matrices, three periods


def test_vmapped_update_of_batched_states_refreshes_once(monkeypatch):
    counted = CountedSvd(monkeypatch)
    tx = galore(optax.sgd(0.1), Subspace(rank=2), every=4)
    params = {"w": weights(3, 4, 6, dtype=np.float32)}
    state = jax.vmap(tx.init)(params)  # counts are batched
    update = jax.jit(jax.vmap(tx.update))
    for _ in range(8):
        _, state = update(params, state)
    jax.effects_barrier()
    assert counted.matrices == 2 * 3


@pytest.mark.thinned
@pytest.mark.parametrize("finder", ["svd", "randomized", "iteration", "orthonormal"])
def test_vmap_is_the_loop(finder, x64):
    tx = galore(adam_direction(), Subspace(rank=2, finder=finder), every=3, key=jax.random.key(1))
    run = jax.jit(lambda w: train(tx, {"w": w}, 8)[0]["w"])
    ws = weights(3, 4, 6)
    together = jax.jit(jax.vmap(run))(ws)
    for w, one in zip(ws, together, strict=True):
        np.testing.assert_allclose(run(w), one, atol=1e-10)


@pytest.mark.slow
def test_stacked_and_split_leaves_are_matrices_one_by_one(x64):
    tx = functools.partial(galore, adam_direction(), Subspace(rank=2), every=3)
    stacked = weights(2, 4, 6)
    gradient = weights(2, 4, 6, seed=1)

    @functools.partial(jax.jit, static_argnums=0)
    def steps(tx, g):
        state, out = tx.init({"w": g}), []
        for k in range(5):
            n, state = tx.update({"w": jnp.sin(g * (k + 1))}, state)
            out.append(n["w"])
        return jnp.stack(out)

    together = steps(tx(), gradient)
    single = tx()
    for layer in range(2):
        np.testing.assert_allclose(together[:, layer], steps(single, gradient[layer]), atol=1e-12)
    split = steps(tx(dims={"w": Matrix((1,), (0, 2))}), stacked)  # (4, 2 * 6)
    flat = steps(single, stacked.transpose(1, 0, 2).reshape(4, 12))
    np.testing.assert_allclose(split.transpose(0, 2, 1, 3).reshape(5, 4, 12), flat, atol=1e-12)


def test_other_leaves_take_plain_adam():
    params = {
        "embed": weights(5, 4, dtype=np.float32),
        "norm": weights(2, 4, dtype=np.float32),
        "q": weights(4, 4, dtype=np.float32),
    }
    ours = train(galore(adam_direction(), Subspace(rank=2), scale=0.1), params, 6)[0]
    plain = train(adam_direction(), params, 6)[0]
    for name in ("embed", "norm"):
        np.testing.assert_array_equal(ours[name], plain[name])
    assert float(jnp.max(jnp.abs(ours["q"] - plain["q"]))) > 1e-3


@pytest.mark.parametrize("inner", [optax.scale_by_lion(), optax.trace(0.9), optax.scale_by_rms(), optax.identity()])
def test_any_elementwise_inner_transformation(inner):
    params = {"w": weights(4, 6, dtype=np.float32)}
    path = train(galore(inner, Subspace(rank=2), every=3), params, 7)[0]["w"]
    assert np.isfinite(path).all()
    ranks = np.linalg.matrix_rank(np.asarray(path[2]) - np.asarray(params["w"]), tol=1e-4)
    assert ranks == 2  # within the first basis


def test_eight_bit_states_of_projected_shape_that_rotate():
    params = {"w": weights(64, 128, dtype=np.float32)}
    path = {}
    for stored in ("float32", "8bit"):
        tx = galore(adam_direction(stored=stored), Subspace(rank=32), every=5, moments="rotate")
        path[stored] = jax.jit(lambda p, tx=tx: train(tx, p, 15, lr=0.01)[0]["w"])(params)
        state = jax.eval_shape(tx.init, params)
        if stored == "8bit":
            assert {x.dtype.name for x in jax.tree.leaves(state.inner.mu)} == {"uint8", "float32"}
    moved = jnp.linalg.norm(path["float32"][-1] - params["w"])
    assert float(jnp.linalg.norm(path["float32"][-1] - path["8bit"][-1]) / moved) < 0.1


def test_bfloat16_weights_keep_bfloat16_states():
    params = {"w": weights(16, 32, dtype=jnp.bfloat16)}
    tx = galore(adam_direction(), Subspace(rank=4), every=3)
    state = tx.init(params)
    assert {x.dtype.name for x in jax.tree.leaves((state.bases, state.inner.mu))} == {"bfloat16"}
    path = train(tx, params, 7, lr=0.01)[0]["w"]
    assert path.dtype == jnp.bfloat16 and np.isfinite(path.astype(np.float32)).all()


@pytest.mark.parametrize("bad", [0.0, np.nan])
def test_bad_gradients_leave_the_basis_and_training_goes_on(bad):
    tx = optax.apply_if_finite(galore(adam_direction(), Subspace(rank=2), every=2), 10)
    good = weights(4, 6, dtype=np.float32)
    state, update = tx.init({"w": good}), jax.jit(tx.update)
    for k in range(8):
        g = jnp.full_like(good, bad) if k in (0, 4) else jnp.cos(good * k)
        updates, state = update({"w": g}, state)
        basis = state.inner_state.bases["w"].left
        if k or bad == 0:
            np.testing.assert_allclose(basis.T @ basis, np.eye(2), atol=1e-5)
        assert np.isfinite(updates["w"]).all()
    assert float(jnp.linalg.norm(updates["w"])) > 0


def test_the_first_basis_stays_without_period_and_the_moving_one_does_not():
    params = {"w": weights(4, 6, dtype=np.float32)}
    bases = {
        e: train(galore(adam_direction(), Subspace(rank=2), every=e), params, 9, observe=lambda s: s.bases["w"])[1]
        for e in (None, 3)
    }
    first = jax.tree.map(lambda x: x[0], bases[None])
    for i in range(9):
        np.testing.assert_array_equal(bases[None].left[i], first.left)
        np.testing.assert_array_equal(bases[3].left[i], bases[3].left[i // 3 * 3])
    assert float(overlap(first, jax.tree.map(lambda x: x[-1], bases[3]))) < 0.999


def test_golore_is_random_from_its_switch_on():
    params = {"w": weights(6, 8, dtype=np.float32)}
    s = Subspace(rank=2)
    observe = lambda state: state.bases["w"].left  # noqa: E731
    plain = train(galore(adam_direction(), s, every=2), params, 8, observe=observe)[1]
    switched = train(galore(adam_direction(), s, every=2, finder=golore(s, 4)), params, 8, observe=observe)[1]
    np.testing.assert_array_equal(switched[:4], plain[:4])
    for later in (switched[4], switched[6]):
        np.testing.assert_allclose(later.T @ later, np.eye(2), atol=1e-5)
        assert float(jnp.linalg.norm(later.T @ plain[4])) < 1.3  # equal subspaces: sqrt 2
    assert float(jnp.max(jnp.abs(switched[4] - switched[6]))) > 0.1


def test_lazy_periods_double_while_bases_stay_alike():
    params = {"w": weights(6, 8, dtype=np.float32)}
    still = optax.identity()
    tx = galore(still, Subspace(rank=2), every=2, lazy=Lazy(0.4, 2), scale=0.0)  # nothing moves: all bases are equal
    clock = train(tx, params, 20, observe=lambda s: s.clocks["w"])[1]
    # refreshes at 0, 2, 4 (two alike: the period doubles), 8, 12 (doubles), 20
    np.testing.assert_array_equal(np.flatnonzero(np.diff(clock.refreshes, prepend=0)), [0, 2, 4, 8, 12])
    assert clock.period[-1] == 8
    random = galore(still, Subspace(rank=1, finder="orthonormal"), every=2, lazy=Lazy(0.99, 2), scale=0.0)
    assert train(random, params, 20, observe=lambda s: s.clocks["w"])[1].refreshes[-1] == 10


@pytest.mark.parametrize("every", [0, np.int64(0), jnp.int32(0), np.array(0), -1, 0.5, 4.0, True, np.True_, np.nan, "4", 2**31])
def test_periods_that_are_no_whole_number_are_refused(every):
    with pytest.raises(UsageError, match="every=.* is not allowed: every is (a whole number, )?at (least|most)"):
        galore(adam_direction(), Subspace(rank=2), every=every)
    if not (np.ndim(every) == 0 and np.asarray(every).dtype.kind == "i" and every == 0):
        with pytest.raises(UsageError, match="at=.* is not allowed: at is (a whole number, )?at (least|most)"):
            golore(Subspace(rank=2), every)


@pytest.mark.slow
def test_numpys_and_jaxs_whole_numbers_are_periods_and_a_traced_one_below_1_is_1():
    params = {"w": weights(4, 6, dtype=np.float32)}

    def path(every):
        return train(galore(adam_direction(), Subspace(rank=2), every=every), params, 5)[0]["w"]

    for every in (np.int64(2), np.array(2), jnp.int32(2)):
        np.testing.assert_array_equal(path(every), path(2))
    np.testing.assert_allclose(jax.jit(path)(0), path(1), rtol=1e-5)


@pytest.mark.parametrize("lazy", [None, Lazy(2.0, 1)])
def test_refreshes_go_on_after_the_last_number_of_the_count(lazy):
    tx = galore(optax.identity(), Subspace(rank=2), every=3, lazy=lazy)
    g = [weights(4, 6, dtype=np.float32, seed=k) for k in range(8)]
    state, update, made = tx.init({"w": g[0]})._replace(steps=jnp.int32(2**31 - 5)), jax.jit(tx.update), []
    for k in range(8):  # steps 2^31 - 5, ...; 2^31 is 2 more than a multiple of 3
        before = state.bases["w"].left
        _, state = update({"w": g[k]}, state)
        made.append(bool(jnp.any(state.bases["w"].left != before)))
        assert state.steps > 2**30 - 3
    assert made == [
        lazy is not None or (2**31 - 5 + k) % 3 == 0 if k == 0 else (k if lazy else 2**31 - 5 + k) % 3 == 0 for k in range(8)
    ]


def test_wrong_use_is_refused():
    s = Subspace(rank=2)
    for wrong in ({"scale": np.nan}, {"scale": jnp.float32(jnp.inf)}, {"scale": True}, {"lazy": Lazy(streak=0)}):
        with pytest.raises(UsageError, match="is not allowed"):
            galore(adam_direction(), s, **wrong)
    plain = galore(optax.identity(), s)
    for other in (jnp.ones((5, 4)), jnp.ones((2, 3, 4))):
        with pytest.raises(UsageError, match="a parameter of another shape"):
            plain.update({"w": other}, plain.init({"w": jnp.ones((3, 4))}))
    with pytest.raises(UsageError, match="moments='turn'"):
        galore(adam_direction(), s, moments="turn")
    with pytest.raises(UsageError, match="lazy is not allowed"):
        galore(adam_direction(), s, every=None, lazy=Lazy())
    tx = galore(optax.identity(), s, moments="rotate")
    params = {"w": jnp.ones((3, 4))}
    with pytest.raises(UsageError, match="has none of"):
        tx.update(params, tx.init(params))
