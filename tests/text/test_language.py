"""language.py against plain numpy: the loss and its gradient, windows in order, evaluation."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import scipy.special

from jaxdyn import nn, text, train
from jaxdyn.errors import UsageError
from jaxdyn.text import language

V, D, N = 11, 4, 7


def drawn(seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    x, head, shift = rng.normal(size=(N, D)), rng.normal(size=(V, D)), rng.normal(size=V)
    targets = np.array([3, 3, 0, 10, 5, 3, 1])  # one token more than once: its rows of the gradient add up
    return x.astype(dtype), head.astype(dtype), shift.astype(dtype), targets


def numpy_loss(x, head, shift, targets):
    z = x @ head.T + shift
    z = z - z.max(1, keepdims=True)
    return np.mean(np.log(np.exp(z).sum(1)) - z[np.arange(len(x)), targets])


def numpy_gradient(x, head, shift, targets):
    z = x @ head.T + shift
    p = np.exp(z - z.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    p[np.arange(len(x)), targets] -= 1
    p /= len(x)
    return p @ head, p.T @ x, p.sum(0)


@pytest.mark.parametrize("factor", [0.0, 1.0, 300.0])
def test_loss_and_gradient(x64, factor):
    """At factor 300 logits reach 1000 and more: nothing overflows."""
    x, head, shift, targets = drawn()
    args = (factor * x, head, shift, jnp.asarray(targets))
    value, gradient = jax.jit(jax.value_and_grad(language.cross_entropy, (0, 1, 2)))(*args)
    np.testing.assert_allclose(value, numpy_loss(*args[:3], targets), rtol=1e-12)
    for ours, theirs in zip(gradient, numpy_gradient(*args[:3], targets), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-13)


def test_gradient_scales_with_what_comes_from_above_and_batches(x64):
    x, head, shift, targets = drawn()
    gradient = jax.grad(language.cross_entropy)
    once = jax.jit(gradient)(x, head, shift, targets)
    thrice = jax.jit(jax.grad(lambda x: 3 * language.cross_entropy(x, head, shift, targets)))(x)
    np.testing.assert_allclose(thrice, 3 * once, rtol=1e-12)
    many = jax.jit(jax.vmap(gradient, (0, None, None, None)))(np.stack([x, 2 * x]), head, shift, targets)
    np.testing.assert_allclose(many[0], once, rtol=1e-12)


def test_float32_stays_float32(x64):
    x, head, shift, targets = drawn(dtype=np.float32)
    both = jax.jit(jax.value_and_grad(language.cross_entropy, (0, 1, 2)))
    value, gradient = both(x, head, shift, jnp.asarray(targets, jnp.int32))
    assert {value.dtype, *(g.dtype for g in gradient)} == {np.dtype("float32")}
    for ours, theirs in zip(gradient, numpy_gradient(*(a.astype(float) for a in drawn()[:3]), targets), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-6)


def small():
    columns = text.columns(np.random.default_rng(0).integers(0, V, 3 * 22).astype(np.int32), 3)
    return nn.network(nn.encoder_lm(V, width=4, hidden=6, layers=2, dropout=0.0)), columns


@pytest.mark.slow
@pytest.mark.parametrize("tied", [pytest.param(False, marks=pytest.mark.slow), True])
def test_loss_is_that_of_the_logits(x64, tied):
    biases = ("o",) if tied else ("o", "head")
    shape = nn.encoder_lm(V, width=4, hidden=6, layers=2, dropout=0.2, tied=tied, biases=biases, dtype="float64")
    net = nn.network(shape)
    params = jax.jit(net.init)(jax.random.key(0))
    inputs, targets = text.window(small()[1], 1, 5)
    both = jax.jit(lambda key: (net.apply(params, inputs, key=key), language.loss(net, params, inputs, targets, key)))
    for key in (None, jax.random.key(3)):
        logits, loss = jax.device_get(both(key))
        right = np.take_along_axis(logits, np.asarray(targets)[..., None], -1)[..., 0]
        np.testing.assert_allclose(loss, np.mean(scipy.special.logsumexp(logits, -1) - right), rtol=1e-12)


@pytest.mark.slow
def test_steps_go_round_the_windows_in_order():
    """Five steps by hand on windows 0, 1, 2, 3, 0 of four: 21 // 5."""
    net, columns = small()
    tx = optax.sgd(0.1)
    start = train.init(tx, jax.jit(net.init)(jax.random.key(0)))
    step = jax.jit(language.make_step(net, tx, 5))
    state, params = start, start.params
    gradient = jax.jit(jax.grad(lambda p, x, y: language.loss(net, p, x, y)))
    for i in (0, 1, 2, 3, 0):
        state = step(state, columns, jax.random.key(1))
        g = gradient(params, columns[:, 5 * i : 5 * i + 5], columns[:, 5 * i + 1 : 5 * i + 6])
        params = jax.tree.map(lambda p, g: np.asarray(p) - 0.1 * np.asarray(g), params, g)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6), state.params, params)


@pytest.mark.slow
def test_dropout_of_a_step_depends_on_the_step_and_the_key_alone():
    net = nn.network(nn.encoder_lm(V, width=4, hidden=6, dropout=0.5))
    columns = text.columns(np.zeros(66, np.int32), 3)  # all windows are alike
    tx = optax.sgd(0.0)
    step = language.make_step(net, optax.sgd(1.0), 5)
    start = train.init(tx, jax.jit(net.init)(jax.random.key(0)))
    run = jax.jit(lambda i, key: step(start._replace(step=i), columns, key).params["head"])
    ends = [run(i, jax.random.key(1)) for i in (0, 0, 1)]
    other = run(0, jax.random.key(2))
    assert np.array_equal(ends[0], ends[1])
    assert not np.array_equal(ends[0], ends[2]) and not np.array_equal(ends[0], other)


@pytest.mark.slow
def test_evaluation_is_the_mean_over_windows():
    net, columns = small()
    params = jax.jit(net.init)(jax.random.key(0))
    observed = jax.jit(lambda x: net.apply(params, x, observe=("attention",)))
    losses, entropies = [], []
    for i in range(4):
        inputs, targets = columns[:, 5 * i : 5 * i + 5], columns[:, 5 * i + 1 : 5 * i + 6]
        logits, values = jax.tree.map(lambda x: np.asarray(x, float), observed(inputs))
        rows, right = logits.reshape(-1, V), targets.reshape(-1)
        losses.append(numpy_loss(rows, np.eye(V), 0, right))
        a = values["attention"]
        entropies.append(-(a * np.log(np.where(a > 0, a, 1))).sum(-1).mean((1, 2, 3)))
    evaluate = jax.jit(lambda windows: language.evaluate(net, params, columns, 5, windows))
    for windows in (1, 3, 4, 99):
        measured = evaluate(windows)
        np.testing.assert_allclose(measured.loss, np.mean(losses[:windows]), rtol=1e-5)
        np.testing.assert_allclose(measured.entropy, np.mean(entropies[:windows], 0), rtol=1e-5)
    everything = jax.jit(lambda: language.evaluate(net, params, columns, 5))()
    np.testing.assert_allclose(everything.loss, np.mean(losses), rtol=1e-5)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_losses_of_narrow_numbers_have_the_digits_of_float32(dtype):
    """The loss of the rounded numbers to float32's precision; the gradient to that of its own dtype, and it sums to zero."""
    rng = np.random.default_rng(3)
    given = [jnp.asarray(rng.normal(size=size), dtype) for size in ((700, 16), (900, 16), (900,))]
    targets = rng.integers(0, 9, 700)  # few: in bfloat16 their rows of the gradient would stop adding up
    exact = [np.asarray(x, np.float64) for x in given]
    value, gradient = jax.jit(jax.value_and_grad(language.cross_entropy, (0, 1, 2)))(*given, jnp.asarray(targets))
    assert value.dtype == np.float32
    np.testing.assert_allclose(value, numpy_loss(*exact, targets), rtol=2e-6)
    eps = float(jnp.finfo(dtype).eps)
    for ours, theirs in zip(gradient, numpy_gradient(*exact, targets), strict=True):
        assert ours.dtype == jnp.dtype(dtype)
        assert np.linalg.norm(np.asarray(ours, np.float64) - theirs) < eps * np.linalg.norm(theirs)
    assert abs(np.sum(np.asarray(gradient[2], np.float64))) < eps


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_evaluations_of_narrow_networks_have_the_digits_of_float32(dtype):
    """Loss and entropy are those of the network's own logits and attention, in float64."""
    columns = text.columns(np.random.default_rng(1).integers(0, V, 97).astype(np.int32), 2)
    net = nn.network(nn.encoder_lm(V, width=4, hidden=6, dtype=dtype))
    params = jax.tree.map(lambda x: (3 * x).astype(x.dtype), jax.jit(net.init)(jax.random.key(0)))
    measured = jax.jit(lambda p: language.evaluate(net, p, columns, 5, 3))(params)
    assert {x.dtype.name for x in measured} == {"float32"}
    trunk = jax.jit(lambda p, x: net.trunk(p, x, observe=("attention",)))
    losses, entropies = [], []
    for i in range(3):
        inputs, targets = (np.asarray(x) for x in text.window(columns, i, 5))
        x, seen = trunk(params, jnp.asarray(inputs))
        head, shift = (np.asarray(w, np.float64) for w in nn.read_out(params))
        losses.append(numpy_loss(np.asarray(x, np.float64).reshape(-1, 4), head, shift, targets.ravel()))
        entropies.append(scipy.special.entr(np.asarray(seen["attention"], np.float64)).sum(-1).mean((1, 2, 3)))
    np.testing.assert_allclose(measured.loss, np.mean(losses), rtol=1e-5)
    np.testing.assert_allclose(measured.entropy, np.mean(entropies, 0), rtol=1e-5)


@pytest.mark.slow
def test_the_mean_over_many_windows_keeps_its_digits_in_bfloat16():
    """A sum in bfloat16 would stop growing at 256 windows of alike losses."""
    columns = text.columns(np.zeros(2401, np.int32), 1)  # all windows are alike
    net = nn.network(nn.encoder_lm(V, width=4, hidden=6, dtype="bfloat16"))
    params = jax.jit(net.init)(jax.random.key(0))
    one, many = (jax.jit(lambda n=n: language.evaluate(net, params, columns, 3, n))() for n in (1, 799))
    np.testing.assert_allclose(float(many.loss), float(one.loss), rtol=1e-5)
    np.testing.assert_allclose(np.asarray(many.entropy, float), np.asarray(one.entropy, float), rtol=1e-5)


@pytest.mark.slow
def test_training_lowers_the_loss_of_a_text_with_structure():
    """Each word fixes the next one: the loss falls far below the unigram's ln 11."""
    net, _ = small()
    columns = text.columns(np.tile(np.arange(V, dtype=np.int32), 40), 4)
    tx = optax.adam(0.02)
    step = language.make_step(net, tx, 5)
    state = jax.jit(lambda s: jax.lax.fori_loop(0, 400, lambda _, s: step(s, columns, jax.random.key(0)), s))(
        train.init(tx, jax.jit(net.init)(jax.random.key(0)))
    )
    assert jax.jit(lambda p: language.evaluate(net, p, columns, 5).loss)(state.params) < 0.2 < np.log(V)


@pytest.mark.slow
def test_tokens_beyond_the_vocabulary_are_refused_outside_jit():
    net, columns = small()
    params = jax.jit(net.init)(jax.random.key(0))
    x, head, shift, targets = drawn(dtype=np.float32)
    for wrong in (V, -1):
        with pytest.raises(UsageError, match=f"{wrong} in targets is not allowed: it is a number from 0 to 10"):
            language.cross_entropy(x, head, shift, np.where(targets == 10, wrong, targets))
        with pytest.raises(UsageError, match=f"{wrong} in targets is not allowed: it is a number from 0 to 10"):
            language.loss(net, params, columns[:, :5], np.full((3, 5), wrong))
        with pytest.raises(UsageError, match=f"{wrong} in columns is not allowed: it is a number from 0 to 10"):
            language.evaluate(net, params, np.where(columns == 10, wrong, columns), 5)
    with pytest.raises(UsageError, match="it is an array of whole numbers"):
        language.cross_entropy(x, head, shift, targets.astype(float))
    traced = jax.jit(language.cross_entropy)(x, head, shift, np.full(N, V + 5))
    np.testing.assert_allclose(traced, language.cross_entropy(x, head, shift, np.full(N, V - 1)), rtol=1e-6)


@pytest.mark.thinned
@pytest.mark.parametrize("wrong", [0, -1, True, 1.0, np.int64(0), "3"])
def test_counts_of_windows_are_whole_numbers(wrong):
    net, columns = small()
    params = jax.jit(net.init)(jax.random.key(0))
    with pytest.raises(UsageError, match="windows=.* is not allowed: windows is"):
        language.evaluate(net, params, columns, 5, wrong)
    with pytest.raises(UsageError, match="length=.* is not allowed: length is"):
        language.make_step(net, optax.sgd(0.1), wrong)


def test_a_network_that_sees_the_future_is_no_language_model():
    net = nn.network(nn.encoder_lm(V, width=4, hidden=6, causal=False))
    with pytest.raises(UsageError, match="causal=False is not allowed: such a network reads the tokens that it is to predict"):
        language.loss(net, {}, np.zeros((1, 3), int), np.zeros((1, 3), int))
