"""CoGO: the network, its losses against plain loops, and the axes of its figures.

CoGO's trainer against a plain NumPy Adam, and against itself without leaving dead nodes out.
"""

import dataclasses
import functools
import itertools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import train as training_loop
from jaxdyn.data.abelian import parse
from jaxdyn.errors import UsageError
from jaxdyn.theories.cogo import blocks, classify, model, training
from jaxdyn.theories.cogo.dynamics import semiring, solutions
from jaxdyn.theories.cogo.figures import log_orders, ticks
from jaxdyn.theories.cogo.training import Training
from tests.theories.cogo.oracle import GROUPS, by_loops, composed, weights_of_loops

# CoGO's network and its losses against plain loops.

init = jax.jit(model.init, static_argnums=(1, 2, 3))
loss = jax.jit(model.loss, static_argnums=(1, 2, 4))
output, correct = jax.jit(model.output), jax.jit(model.correct, static_argnums=1)


@pytest.mark.thinned
@pytest.mark.parametrize("name", GROUPS)
def test_loss_is_that_of_the_loops(x64, name):
    group = parse(name)
    w = weights_of_loops(group, 4)
    forms = [(f, scale) for scale in ("paper", "code") for f in (model.loss, model.loss_by_gram)]
    *ours, rectified = jax.jit(
        lambda w: [*(f(w, group, scale) for f, scale in forms), model.loss(w, group, "code", activation="relu")]
    )(w)
    factors = {"paper": 1 / (2 * group.order), "code": 1.0}
    np.testing.assert_allclose(ours, [by_loops(w, group, factors[scale]) for _, scale in forms], rtol=1e-12)
    np.testing.assert_allclose(rectified, by_loops(w, group, 1.0, activation=lambda x: max(x, 0)), rtol=1e-12)


def test_zero_weights_lose_one_less_one_over_d(x64):
    group = parse("7")
    zero = jnp.zeros((3, 7, 2))
    np.testing.assert_allclose(
        [jax.jit(lambda w, f=f: f(w, group, "paper"))(zero) for f in (model.loss, model.loss_by_gram)], 6 / 7, rtol=1e-15
    )


def test_scales_are_related_by_one_factor(x64):
    group = parse("2x4")
    w = jnp.asarray(weights_of_loops(group, 3))
    code = model.to_scale(w, group, "code")
    np.testing.assert_allclose(loss(code, group, "code"), loss(w, group, "paper"), rtol=1e-13)
    np.testing.assert_allclose(model.to_scale(code, group, "paper"), w, rtol=1e-15)


def test_a_node_of_other_sign_and_other_place_changes_nothing(x64):
    """(a, b, c) -> (-a, -b, c), and any permutation of the nodes."""
    group = parse("5")
    w = weights_of_loops(group, 4)
    other = w.copy()
    other[:2, :, 1] *= -1
    np.testing.assert_allclose(output(jnp.asarray(other[:, :, [2, 0, 3, 1]])), output(jnp.asarray(w)), rtol=1e-12)


def test_start_keeps_its_bounds_and_its_type():
    group = parse("23")
    w = init(jax.random.key(0), group, 512)
    chex.assert_shape(w, (3, 23, 512))
    chex.assert_type(w, jnp.float32)
    bounds = np.array([23**-0.5, 23**-0.5, 512**-0.5])
    top = np.abs(w).max((1, 2))
    assert (top <= bounds * (1 + 1e-6)).all() and (top > 0.99 * bounds).all()


def test_correct_marks_the_pairs_whose_largest_output_is_the_sum(x64):
    """A network that stores the table: node (x, y) answers only to its own pair."""
    group = parse("2x2")
    a = jnp.repeat(jnp.eye(4), 4, 1)
    b = jnp.tile(jnp.eye(4), (1, 4))
    c = jnp.stack([jnp.eye(4)[group.add[x, y]] for x in range(4) for y in range(4)], 1)
    assert bool(correct(jnp.stack([a, b, c]), group).all())
    assert not bool(correct(jnp.stack([a, b, c[jnp.array([1, 0, 2, 3])]]), group).all())


@pytest.mark.parametrize("width", [1, 6, 11])
def test_a_start_of_some_width_holds_the_network_of_that_size(x64, width):
    group, key = parse("5"), jax.random.key(3)
    wide = jax.jit(lambda q: model.init(key, group, 11, "float32", q))(jnp.asarray(float(width), jnp.float32))
    np.testing.assert_allclose(wide[..., :width], init(key, group, width), rtol=1e-6)
    assert not np.asarray(wide[..., width:]).any()


def test_the_activation_may_be_a_traced_switch(x64):
    group = parse("5")
    w = jnp.asarray(weights_of_loops(group, 3))
    switched = jax.jit(lambda i: model.loss(w, group, "code", None, jd.Code(i, ("quadratic", "relu"))))
    for i, name in enumerate(("quadratic", "relu")):
        np.testing.assert_allclose(switched(i), loss(w, group, "code", None, name), rtol=1e-14)


# Means that nodes leave in the output, on exact solutions and against the loss.


@pytest.mark.parametrize("name", ["7", "8"])
def test_means_of_all_nodes_are_those_of_the_loss(x64, name):
    group = parse(name)
    w = jax.random.normal(jax.random.key(1), (3, group.order, 9), jnp.float64)

    @jax.jit
    def both(w):
        z = semiring.transform(model.to_scale(w, group, "paper"), group)
        s = semiring.sums(semiring.autopotentials(z), group)
        whole = semiring.potentials(z)[0, 0] + (s[0, 0] + s[1, 0]) / 2
        return classify.means(classify.nodes(w, group, 0.6), group), whole

    parts, whole = both(w)
    np.testing.assert_allclose(parts.sum(0), whole[group.pairs], rtol=1e-10)


def test_without_carriers_the_loss_is_that_of_blocks_of_order_4(x64):
    group = parse("11")
    w = composed(group, 1)

    @jax.jit
    def cut(w):
        nodes = classify.nodes(w, group)
        bare = classify.ablated(nodes, group, classify.node_orders(nodes) == 6)
        return bare, model.loss(bare, group, "code")

    bare, loss = cut(w)
    assert loss == pytest.approx(16 / 11, rel=1e-12)
    assert jnp.sum(jnp.any(jnp.abs(bare - w) > 1e-9, (0, 1))) == 6


# Groups by name, empty places, and the breach that exchanges nets.


def test_groups_by_name():
    groups = blocks.checked_groups(("5", "2x2", "7"))
    assert [g.order for g in groups] == [5, 4, 7] and blocks.most_pairs(groups).order == 7
    with pytest.raises(jd.UsageError, match="at least one group is needed"):
        blocks.checked_groups(())


@pytest.mark.slow
def test_blocks_have_six_places_of_which_some_are_empty(x64):
    made = blocks.all_blocks(solutions.sample(jax.random.key(0), parse("5")))
    assert made.shape == (5, 2, 3, 6)
    np.testing.assert_array_equal(np.sum(np.abs(made[:, 0, 0]) > 0, -1), [6, 4, 6, 3, 6])


def test_empty_places_change_no_potential(x64):
    x = semiring.random(jax.random.key(1), parse("5"), 3)
    wide = blocks.widened(x, 5)
    assert wide.z.shape == (3, 5, 5) and int(semiring.order(wide)) == 3
    np.testing.assert_allclose(semiring.potentials(wide.z), semiring.potentials(x.z), atol=1e-14)


def test_one_net_takes_the_place_of_another():
    ds = xr.Dataset({"loss": ("net", [1.0, 2.0]), "wrong": ("net", [0, 3])}, coords={"net": ["a", "b"]})
    after = blocks.replaced("a", "b")(ds)
    assert list(after.loss) == [2.0, 2.0] and list(after.wrong) == [3, 3]


def test_the_numbers_of_blocks_are_those_of_the_largest_group(x64):
    assert len(jnp.asarray(solutions.sample(jax.random.key(0), blocks.most_pairs(blocks.checked_groups(("5", "9")))).nu)) == 4


# Axes of CoGO's figures.


def labels(ax):
    return [t.get_text() for t in ax.get_xticklabels()]


def test_orders_are_the_only_ticks_of_a_logarithmic_axis():
    ax = Figure().subplots()
    log_orders(ax, np.array([5, 7, 23]))
    assert ax.get_xscale() == "log" and labels(ax) == ["5", "7", "23"]
    assert not any(ax.xaxis.get_minor_formatter().format_ticks([6.0, 10.0]))


def test_ticks_stand_at_the_values():
    ax = Figure().subplots()
    ticks(ax, [0.25, 1.0])
    assert labels(ax) == ["0.25", "1"] and ax.get_xticks().tolist() == [0.25, 1.0]


# The Gram form of the loss against plain loops and against sums over pairs; its gradient against finite differences.


@pytest.mark.thinned
@pytest.mark.parametrize("name", GROUPS)
def test_subset_by_pairs_and_by_what_is_left_out(x64, name):
    group = parse(name)
    w = weights_of_loops(group, 3)
    every = list(itertools.product(range(group.order), repeat=2))
    np.random.default_rng(1).shuffle(every)
    held, kept = every[:3], every[3:]
    pairs = np.array(held), np.array(kept)
    (full_less_held, out), at_kept = jax.jit(
        lambda w, out, kept: (model.loss_without(w, group, "code", out), model.loss_at(w, group, "code", kept))
    )(w, *pairs)
    np.testing.assert_allclose(out, by_loops(w, group, 1.0, held), rtol=1e-12)
    np.testing.assert_allclose(full_less_held, by_loops(w, group, 1.0, kept), rtol=1e-12)
    np.testing.assert_allclose(at_kept, by_loops(w, group, 1.0, kept), rtol=1e-12)


@functools.cache
def compiled(name):
    """The losses of one group on the paper's scale and their gradients, each one program."""
    group = parse(name)
    return [jax.jit(jax.value_and_grad(lambda w, f=f: f(w, group, "paper"))) for f in (model.loss_by_gram, model.loss)]


@pytest.mark.slow
@settings(deadline=None, max_examples=24)
@given(st.sampled_from([(name, q) for i, name in enumerate(GROUPS) for q in (1, 2 + 3 * (i % 2))]), st.integers(0, 99))
def test_gradient_of_the_gram_form(shape, seed):
    name, q = shape
    with jax.enable_x64(True):
        gram_loss, model_loss = compiled(name)
        w = weights_of_loops(parse(name), q, seed)
        ours, theirs = np.asarray(gram_loss(w)[1]), np.asarray(model_loss(w)[1])
        np.testing.assert_allclose(ours, theirs, atol=1e-12 * np.abs(theirs).max())
        step = 1e-5 * np.random.default_rng(seed).normal(size=w.shape)
        rise = (gram_loss(w + step)[0] - gram_loss(w - step)[0]) / 2
        np.testing.assert_allclose(rise, np.sum(ours * step), rtol=1e-5, atol=1e-10)


# The written-out gradient of the loss over pairs against automatic differentiation of the plain form.


@pytest.mark.parametrize("name", ["5", "2x3"])
def test_value_and_gradient_are_those_of_the_plain_loss(x64, name):
    group = parse(name)
    w = jax.random.normal(jax.random.key(0), (3, group.order, 4), jnp.float64)
    used = jax.random.bernoulli(jax.random.key(1), 0.7, (group.order,) * 2)
    value, slope = jax.jit(jax.value_and_grad(lambda w: model.loss_of_pairs(w, group, used)))(w)
    plain, expected = jax.jit(jax.value_and_grad(lambda w: model.loss(w, group, "code", used)))(w)
    assert float(value) == pytest.approx(float(plain), rel=1e-12)
    np.testing.assert_allclose(slope, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.slow
def test_other_pairs_play_no_part(x64):
    group = parse("5")
    w = jax.random.normal(jax.random.key(0), (3, 5, 2), jnp.float64)
    used = jnp.zeros((5, 5), bool).at[0].set(True)
    slope = model.gradient(w, group, used)
    assert np.all(np.asarray(slope[0, 1:]) == 0) and np.any(np.asarray(slope[0, 0]) != 0)


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


init_of_training = jax.jit(model.init, static_argnums=(1, 2, 3))


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
    start = np.asarray(init_of_training(jax.random.split(jax.random.key(0))[1], parse("5"), hidden, "float64"))
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
    w = np.array(init_of_training(jax.random.key(3), group, 64, "float64"))
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
