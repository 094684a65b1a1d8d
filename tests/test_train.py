"""train.py against loops in numpy, and its promises: bits, precision, resumption, divergence."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jaxdyn import train
from jaxdyn.engine.setting import Code
from jaxdyn.errors import UsageError
from jaxdyn.status import DIVERGED, OK

NAMES = ("gd", "momentum", "adam")


def data(dtype=np.float64):
    rng = np.random.default_rng(0)
    return rng.normal(size=(12, 3)).astype(dtype), rng.normal(size=(12, 2)).astype(dtype)


def loss(params, batch):
    x, y = batch
    return 0.5 * jnp.mean(jnp.sum(jnp.square(jnp.tanh(x @ params["w"]) @ params["v"] - y), -1))


def start(dtype=np.float64):
    rng = np.random.default_rng(1)
    return {"w": jnp.asarray(0.5 * rng.normal(size=(3, 4)), dtype), "v": jnp.asarray(0.5 * rng.normal(size=(4, 2)), dtype)}


def optimizers(lr):
    return {"gd": optax.sgd(lr), "momentum": optax.sgd(lr, momentum=0.9), "adam": optax.adam(lr)}


def numpy_run(name, lr, steps, batch_of=lambda i, x, y: (x, y)):
    """The same training written from the formulas: gradient by hand, update rules of the three optimizers."""
    params = {k: np.asarray(p) for k, p in start().items()}
    m = {k: np.zeros_like(p) for k, p in params.items()}
    s = {k: np.zeros_like(p) for k, p in params.items()}
    path = [params]
    for i in range(steps):
        x, y = batch_of(i, *data())
        h = np.tanh(x @ params["w"])
        e = (h @ params["v"] - y) / len(x)
        g = {"v": h.T @ e, "w": x.T @ ((e @ params["v"].T) * (1 - h**2))}
        for k in params:
            if name == "gd":
                move = g[k]
            elif name == "momentum":
                m[k] = 0.9 * m[k] + g[k]
                move = m[k]
            else:
                m[k], s[k] = 0.9 * m[k] + 0.1 * g[k], 0.999 * s[k] + 0.001 * g[k] ** 2
                move = m[k] / (1 - 0.9 ** (i + 1)) / (np.sqrt(s[k] / (1 - 0.999 ** (i + 1))) + 1e-8)
            params = params | {k: params[k] - lr * move}
        path.append(params)
    return {k: np.stack([p[k] for p in path]) for k in params}


def switched(index, lr):
    return train.switched(Code(index, NAMES), optimizers(lr))


def recorded(index, lr, every, samples=3, batch=None):
    step = train.make_step(loss, switched(index, lr), batch)
    first = train.init(switched(index, lr), start())
    inputs = tuple(jnp.asarray(a) for a in data())
    return train.record(lambda s: step(s, inputs), first, lambda s: s.params, samples=samples, every=every)


def test_optimizers_against_numpy_in_one_program(x64):
    """Three optimizers and two step sizes with equal times, vmapped through one trace; steps 0, every, ... are recorded."""
    traced = []

    def run(index, lr, every):
        traced.append(1)
        return recorded(index, lr, every)

    index, lr, every = np.array([0, 0, 1, 2]), np.array([0.1, 0.05, 0.1, 0.01]), np.array([5, 10, 5, 5], np.int32)
    final, observed = jax.jit(jax.vmap(run))(index, lr, every)
    assert len(traced) == 1 and final.step.tolist() == [15, 30, 15, 15]
    for i, k in itertools.product(range(4), "wv"):
        exact = numpy_run(NAMES[index[i]], lr[i], 3 * every[i])[k][:: every[i]]
        # 30 steps of a stable map: rounding of each, 50 eps, carried along
        np.testing.assert_allclose(observed[k][i], exact, rtol=0, atol=30 * 50 * np.finfo(float).eps)
        np.testing.assert_array_equal(observed[k][i, -1], final.params[k][i])


def test_batches_depend_on_the_step_alone(x64):
    """The data of step i is batch(i): minibatches as in the numpy loop."""

    def batch(i, whole):
        rows = (jnp.arange(4) + 4 * i) % 12
        return tuple(a[rows] for a in whole)

    def rows(i, x, y):
        return tuple(a[(np.arange(4) + 4 * i) % 12] for a in (x, y))

    _, observed = jax.jit(lambda lr: recorded(0, lr, 2, batch=batch))(0.1)
    np.testing.assert_allclose(observed["w"], numpy_run("gd", 0.1, 6, rows)["w"][::2], atol=1e-13, rtol=0)


@pytest.mark.parametrize("parts", [2, 3, 12])
def test_a_step_by_parts_is_that_of_the_whole_batch(x64, parts):
    tx = optax.sgd(0.1)
    step = jax.jit(train.make_step(loss, tx, lambda i, whole: whole, parts=parts))
    after = step(train.init(tx, start()), data()).params
    for name, exact in numpy_run("gd", 0.1, 1).items():
        np.testing.assert_allclose(after[name], exact[-1], atol=1e-15, rtol=0)


@pytest.mark.parametrize("parts", [0, 5])
def test_parts_that_do_not_divide_the_batch_are_refused(x64, parts):
    tx = optax.sgd(0.1)
    with pytest.raises(UsageError, match=f"parts={parts} is not allowed"):
        train.make_step(loss, tx, lambda i, whole: whole, parts=parts)(train.init(tx, start()), data())


def test_switched_is_each_optimizer_by_itself(x64):
    """The chosen optimizer moves exactly as alone, the others' states rest; jit, vmap and lax.map agree."""
    gradient = jax.tree.map(jnp.ones_like, start())
    for index, name in enumerate(NAMES):
        tx, alone = switched(jnp.int32(index), 0.1), optimizers(0.1)[name]
        state = tx.init(start())
        updates, after = jax.jit(tx.update)(gradient, state, start())
        expected, _ = jax.jit(alone.update)(gradient, alone.init(start()), start())
        jax.tree.map(np.testing.assert_array_equal, updates, expected)
        for other in set(NAMES) - {name}:
            jax.tree.map(np.testing.assert_array_equal, after[other], state[other])
    runs = np.arange(3)
    mapped = jax.jit(lambda i: jax.lax.map(lambda j: recorded(j, 0.1, 4)[1], i))(runs)
    batched = jax.jit(jax.vmap(lambda j: recorded(j, 0.1, 4)[1]))(runs)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=0, atol=1e-13), mapped, batched)
    with pytest.raises(UsageError, match="the optimizers are none, the switch has gd, momentum, adam"):
        train.switched(Code(0, NAMES), {})


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_segments_are_the_unbroken_run_to_the_bit(x64, dtype):
    """4 x 25 steps = 100 steps = 37 steps, a checkpoint, a new process's arrays, 63 steps; the start survives donation."""
    tx = optax.adam(jnp.asarray(0.05, dtype))
    key = jax.random.key(3)

    def batch(i, x, y):
        rows = jax.random.choice(jax.random.fold_in(key, i), 12, (6,))
        return x[rows], y[rows]

    step, first = train.make_step(loss, tx, batch), train.init(tx, start(dtype))
    inputs = tuple(jnp.asarray(a) for a in data(dtype))
    run = lambda state, until, every: list(train.segments(step, state, until=until, every=every, data=inputs))  # noqa: E731
    (whole,) = run(first, 100, 100)
    steps = [int(s.step) for s in train.segments(step, first, until=100, every=25, data=inputs)]
    assert steps == [25, 50, 75, 100]
    *_, joined = train.segments(step, first, until=100, every=25, data=inputs)
    checkpoint = jax.device_get(run(first, 37, 37)[-1])
    *_, resumed = train.segments(step, jax.tree.map(jnp.asarray, checkpoint), until=100, every=40, data=inputs)
    for state in (joined, resumed):
        jax.tree.map(np.testing.assert_array_equal, state, whole)
    assert int(first.step) == 0 and np.all(np.isfinite(first.params["w"]))  # not donated
    assert list(train.segments(step, whole, until=100, every=10, data=inputs)) == []
    with pytest.raises(UsageError, match="at least one step"):
        train.segments(step, first, until=10, every=0)


def test_segments_give_their_memory_away(x64):
    """The state that was yielded is dead after the next segment: long runs hold one state."""
    tx = optax.sgd(0.1)
    states = train.segments(train.make_step(loss, tx), train.init(tx, start()), until=4, every=2, data=(data(),))
    yielded = next(states)
    next(states)
    assert yielded.params["w"].is_deleted()


def test_record_is_the_plain_loop_to_the_bit(x64):
    """One compiled step in a Python loop gives the recorded bits; samples=0 observes the start only."""
    tx = optax.sgd(0.1, momentum=0.9)
    inputs = tuple(jnp.asarray(a) for a in data())
    step = train.make_step(loss, tx)
    state, once = train.init(tx, start()), jax.jit(step)
    _, observed = jax.jit(lambda s: train.record(lambda s: step(s, inputs), s, lambda s: s.params["w"], samples=4, every=3))(state)
    for i in range(13):
        if i % 3 == 0:
            np.testing.assert_array_equal(observed[i // 3], state.params["w"])
        state = once(state, inputs)
    _, (at,) = train.record(lambda s: step(s, inputs), state, lambda s: (s.step,), samples=0, every=5)
    assert at.tolist() == [13]
    with pytest.raises(UsageError, match="samples=-1"):
        train.record(step, state, lambda s: s, samples=-1, every=5)


def walk(jaxpr):
    """Every equation of a jaxpr, inner ones included."""
    for eqn in jaxpr.eqns:
        yield eqn
        for inner in jax.tree.leaves(list(eqn.params.values()), is_leaf=lambda p: hasattr(p, "eqns") or hasattr(p, "jaxpr")):
            if hasattr(inner, "jaxpr"):
                inner = inner.jaxpr
            if hasattr(inner, "eqns"):
                yield from walk(inner)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_float32_stays_float32(x64, dtype):
    """No array of a float32 training step is float64 in the 64-bit context (scalars may be); the walk does find them in float64."""
    inputs = data(dtype)

    def run(index, lr):
        tx = optax.chain(optax.clip_by_global_norm(1.0), switched(index, lr), optax.add_decayed_weights(1e-3))
        step = train.make_step(loss, tx)
        return train.record(
            lambda s: step(s, inputs), train.init(tx, start(dtype)), lambda s: loss(s.params, inputs), samples=2, every=2
        )

    jaxpr = jax.make_jaxpr(run)(jnp.int32(1), jnp.asarray(0.1, dtype))
    wide = [v.aval for e in walk(jaxpr.jaxpr) for v in e.outvars if getattr(v.aval, "dtype", None) == np.float64 and v.aval.ndim]
    assert (len(wide) > 0) == (dtype == "float64")
    assert all(
        leaf.dtype == dtype for leaf in jax.tree.leaves(jax.eval_shape(run, jnp.int32(1), jnp.asarray(0.1, dtype))[0].params)
    )


def test_divergence_is_a_status_of_its_own_run(x64):
    """A run with too large a step diverges; its neighbour in the batch keeps its numbers."""

    def run(lr):
        tx = optax.sgd(lr)
        step = train.make_step(lambda p: 0.25 * jnp.sum(p**4), tx)
        final, observed = train.record(step, train.init(tx, jnp.array([1.0, 0.5])), lambda s: s.params, samples=2, every=20)
        return train.finite_status(final), train.finite_status(observed), observed

    last, path, observed = jax.jit(jax.vmap(run))(np.array([0.1, 5.0]))
    assert last.tolist() == path.tolist() == [OK, DIVERGED]
    x = np.array([1.0, 0.5])
    for _ in range(40):
        x = x - 0.1 * x**3
    np.testing.assert_allclose(observed[0, -1], x, rtol=1e-13)


def test_finite_status_sees_every_leaf(x64):
    """One NaN or inf anywhere counts, also in wide arrays, where XLA's max would lose it; whole numbers and nothing are finite."""
    wide = np.zeros((1024, 10))
    assert train.finite_status({"a": wide, "n": np.arange(3), "none": None}) == OK
    assert train.finite_status(()) == OK
    for bad in (np.nan, np.inf, -np.inf):
        spoiled = wide.copy()
        spoiled[46, 8] = bad
        assert train.finite_status((jnp.zeros(2), spoiled)) == DIVERGED
