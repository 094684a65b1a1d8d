"""CoGO's trainer against a plain NumPy Adam, and against itself without leaving dead nodes out."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn import train as training_loop
from jaxdyn.data.abelian import parse
from jaxdyn.errors import UsageError
from jaxdyn.theories.cogo import model, training
from jaxdyn.theories.cogo.training import Training

SMALL = Training(group="5", hidden=32, epochs=60, every=20, dtype="float64")


def numpy_adam(w: np.ndarray, pairs: np.ndarray, d: int, lr: float, decay: float, epochs: int) -> np.ndarray:
    """Full-batch Adam with coupled decay on the code-scale loss, gradients written out by hand."""
    g1, g2 = pairs.T
    m, v = np.zeros_like(w), np.zeros_like(w)
    for step in range(1, epochs + 1):
        s = w[0][g1] + w[1][g2]
        o = s**2 @ w[2].T
        error = o - o.mean(1, keepdims=True) - (np.eye(d)[(g1 + g2) % d] - 1 / d)
        change = 2 * error / len(pairs)
        hidden = change @ w[2] * 2 * s
        g = np.zeros_like(w)
        np.add.at(g[0], g1, hidden)
        np.add.at(g[1], g2, hidden)
        g[2] = change.T @ s**2
        g += decay * w
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
        w = w - lr * (m / (1 - 0.9**step)) / (np.sqrt(v / (1 - 0.999**step)) + 1e-8)
    return w


init = jax.jit(model.init, static_argnums=(1, 2, 3))


def trained(s: Training, seed: int = 0) -> training.Run:
    return jax.jit(training.train, static_argnums=0)(s, jax.random.key(seed))


def by_size(w: np.ndarray) -> np.ndarray:
    return w[..., np.argsort(-np.abs(w).max((0, 1)))]


@pytest.mark.thinned
@pytest.mark.parametrize("hidden", [4, 32])  # Gram matrices, pairs
def test_steps_are_those_of_plain_numpy(x64, hidden):
    s = dataclasses.replace(SMALL, hidden=hidden)
    run = trained(s)
    used, out = np.nonzero(~np.asarray(run.held_out)), np.nonzero(np.asarray(run.held_out))
    assert len(out[0]) == 3 and len(used[0]) == 22  # a tenth of 25, rounded up
    start = np.asarray(init(jax.random.split(jax.random.key(0))[1], parse("5"), hidden, "float64"))
    expected = numpy_adam(start, np.stack(used, 1), 5, 0.01, 5e-5, 60)
    np.testing.assert_allclose(run.w, by_size(expected), rtol=1e-7, atol=1e-9)


def test_records_are_what_they_are_called(x64):
    run = trained(SMALL)
    w, group = run.w, parse("5")
    assert {len(x) for x in run.curves.values()} == {4}
    each = np.asarray(jax.jit(lambda w: model.loss_per_pair(w, group, "code"))(w))
    right = np.asarray(jax.jit(lambda w: model.correct(w, group))(w))
    out = np.asarray(run.held_out)
    for name, only in (("train", ~out), ("test", out)):
        np.testing.assert_allclose(run.curves[f"{name}_loss"][-1], each[only].mean(), rtol=1e-12)
        np.testing.assert_allclose(run.curves[f"{name}_accuracy"][-1], right[only].mean(), rtol=1e-12)
    z = np.fft.fft(np.asarray(w), axis=1) / 5
    z[2] = z[2].conj()
    r = np.einsum("aj,bj,cj->abc", *z[:, 1:])
    diagonal = np.einsum("kkk->", r).real
    np.testing.assert_allclose(run.curves["diagonal"][-1], 10 * diagonal, rtol=1e-10)
    np.testing.assert_allclose(run.curves["cross"][-1], 10 * (r.sum().real - diagonal), atol=1e-10)


@pytest.mark.slow
def test_a_solved_run_stays_as_it_is_from_that_record_on(x64):
    whole = trained(SMALL).curves["train_loss"]
    solved = float(jnp.mean(whole[1:3]))
    ended = jax.jit(lambda key: training.train(SMALL, key, solved=solved))(jax.random.key(0)).curves["train_loss"]
    first = int(jnp.argmax(whole < solved))
    assert first == 2
    np.testing.assert_allclose(ended[: first + 1], whole[: first + 1], rtol=1e-12)
    np.testing.assert_allclose(ended[first:], ended[first], rtol=1e-12)


def test_dead_nodes_are_left_out_without_changing_the_rest(x64):
    """Among many nodes most are dead from the start: the steps on the narrow network are those of the wide one."""
    s = dataclasses.replace(SMALL, hidden=64, epochs=20)
    group = parse("5")
    assert training.widths(s, group) == (64, 32, 16)
    w = np.array(init(jax.random.key(3), group, 64, "float64"))
    w[..., np.arange(64) % 5 > 0] *= 1e-7
    _, out = training.split(jax.random.key(4), group, 0.1)
    step = training_loop.make_step(training.objective(s, group, out), tx := training.optax.adam(0.01))
    start = training_loop.init(tx, jnp.asarray(w))
    full, live = jax.jit(training.settle)(start)
    assert int(live) == 13
    wide, narrow = (jax.jit(training.narrowed(step, 20, n))(full).params for n in (64, 16))
    np.testing.assert_allclose(narrow, wide, rtol=1e-9, atol=1e-12)
    assert not np.asarray(narrow[..., 13:]).any()


def test_settled_nodes_stand_in_order_with_their_moments(x64):
    w = jnp.array([[[0.05, 0.01, 0.5, 0.02]], [[0.0, 0.01, 2.0, 3.0]], [[1e-4, 0.02, 0.0, 0.0]]])
    state = training_loop.State(w, {"mu": 10 * w, "count": jnp.int32(3)}, jnp.int32(3))
    after, live = training.settle(state)
    assert int(live) == 3
    np.testing.assert_array_equal(after.params[:, 0], [[0.02, 0.5, 0.01, 0.0], [3.0, 2.0, 0.01, 0.0], [0.0, 0.0, 0.02, 0.0]])
    np.testing.assert_array_equal(after.opt["mu"], 10 * after.params)
    assert int(after.opt["count"]) == 3


def test_nodes_that_stand_in_place_are_left_there(x64):
    w = jnp.array([[[0.5, 3.0, 0.0]], [[2.0, 0.1, 0.0]], [[0.1, 0.1, 0.0]]])
    state = training_loop.State(w, {"mu": 10 * w}, jnp.int32(3))
    after, live = training.settled(state)
    np.testing.assert_array_equal(after.params, w)
    assert int(live) == 2
    for unsettled in (w[..., [2, 0, 1]], w.at[0, 0, 2].set(1e-6)):  # a dead node before live ones; one that is not zero
        after, live = training.settled(training_loop.State(unsettled, {"mu": 10 * unsettled}, jnp.int32(3)))
        np.testing.assert_array_equal(after.params, w[..., [1, 0, 2]])
        assert int(live) == 2


def test_dead_is_what_adds_next_to_nothing_and_is_small(x64):
    """Of (a + b)^2 c below 4e-6: with a large layer a node lives, as it does with small layers that add more."""
    w = jnp.array([[0.2, 0.05, 0.05, 0.0], [0.0, 0.05, -0.05, 0.0], [0.0, 3e-4, 5e-4, 0.0]])[:, None]
    np.testing.assert_array_equal(training.living(w), [True, False, True, False])


def test_polish_lets_the_rate_fall_to_zero_at_the_end(x64):
    s = dataclasses.replace(SMALL, polish=0.5)
    rates = [float(training.rate(s, jnp.int32(i))) for i in (0, 29, 30, 45, 59, 60)]
    np.testing.assert_allclose(rates, [0.01, 0.01, 0.01, 0.005, 0.01 / 30, 0.0], rtol=1e-12)
    assert float(training.rate(SMALL, jnp.int32(59))) == 0.01


def test_float32_stays_float32(x64):
    run = trained(dataclasses.replace(SMALL, dtype="float32", epochs=20))
    assert {x.dtype for x in jax.tree.leaves((run.w, run.curves))} == {jnp.dtype("float32")}


@pytest.mark.slow
def test_seeds_together_are_the_seeds_alone(x64):
    keys = jax.vmap(jax.random.key)(jnp.arange(2))
    together = jax.jit(jax.vmap(lambda k: training.train(SMALL, k).w))(keys)
    for i in range(2):
        np.testing.assert_allclose(together[i], trained(SMALL, i).w, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"group": "abc"}, "group='abc' is not allowed"),
        ({"group": "1"}, "at least 2 elements"),
        ({"epochs": 150}, "epochs=150, every=100 are not allowed: epochs is a multiple of every"),
        ({"width": 600.0}, "width=600.0, hidden=512 are not allowed: width is at most hidden"),
    ],
)
def test_bad_settings_are_refused(fields, message):
    with pytest.raises(UsageError, match=message.replace("(", r"\(")):
        jd.grid(Training, **fields)
