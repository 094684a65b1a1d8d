"""train.py against loops in numpy, and its promises: bits, precision, resumption, divergence."""

import contextlib
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxdyn import train
from jaxdyn.engine.claims.code_field import Code
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


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32", "float64"])
@pytest.mark.parametrize("parts", [512, 4096])
def test_a_sum_of_many_parts_does_not_stop_growing(x64, parts, dtype):
    """A slope of 1 in every part: a weight moves by 1, where a sum of bfloat16 would stay at 256, and of float16 at 2048."""
    tx, x = optax.sgd(1.0), np.ones(parts, dtype)
    step = jax.jit(train.make_step(lambda w, x: jnp.mean(w * x), tx, parts=parts))
    after = step(train.init(tx, jnp.zeros((), dtype)), x).params
    assert after.dtype == dtype and float(after) == -1


@settings(deadline=None, max_examples=25, derandomize=True)
@given(st.sampled_from([2, 3, 16, 96, 384, 768]), st.sampled_from(["bfloat16", "float16", "float32"]), st.integers(0, 2**32 - 1))
def test_any_number_of_parts_gives_the_gradient_of_the_whole_batch(parts, dtype, seed):
    """Against numpy in float64: wrong by the rounding of each part's own gradient, and of a sum in float32."""
    rng, rows = np.random.default_rng(seed), 768
    x, y = (jnp.asarray(rng.normal(size=shape) + 1, dtype) for shape in ((rows, 3), (rows,)))
    tx = optax.sgd(1.0)
    step = jax.jit(train.make_step(lambda w, x, y: -jnp.mean((x @ w - y) * x[:, 0]), tx, parts=parts))
    after = np.asarray(step(train.init(tx, jnp.zeros(3, dtype)), x, y).params, float)
    x = np.asarray(x, float)
    exact = (x * x[:, :1]).mean(0)  # the gradient's negative
    size = (np.abs(x) * np.abs(x[:, :1])).mean(0)
    part_rounding = 4 * float(jnp.finfo(dtype).eps)  # a product, a sum within the part, the gradient, the result
    np.testing.assert_array_less(np.abs(after - exact), (part_rounding + (rows / parts + parts) * 2**-24) * size)


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
    with pytest.raises(UsageError, match="every=0 is not allowed: every is at least 1"):
        train.segments(step, first, until=10, every=0)


@pytest.mark.thinned
@pytest.mark.parametrize("name", NAMES)
def test_a_run_in_parts_is_the_run_at_once(name, x64):
    """Segments of any length that end and resume anywhere, and records: the same bits, with the batches of each step."""
    index, inputs = jnp.int32(NAMES.index(name)), tuple(jnp.asarray(a) for a in data())

    def batch(i, whole):
        rows = jax.random.choice(jax.random.fold_in(jax.random.key(0), i), 12, (4,))
        return tuple(a[rows] for a in whole)

    tx = switched(index, 0.1)
    step, first = train.make_step(loss, tx, batch), train.init(tx, start())
    record = jax.jit(lambda s, n: train.record(lambda s: step(s, inputs), s, lambda s: s.params, samples=2, every=n))
    *_, last = train.segments(step, first, until=12, every=12, data=(inputs,))
    whole = record(first, 6)

    @settings(deadline=None, max_examples=6, derandomize=True)
    @given(st.lists(st.integers(1, 12), min_size=1, max_size=4), st.integers(1, 11))
    def check(lengths, half):
        state = first
        for until in sorted({*lengths, 12}):
            *_, state = train.segments(step, state, until=until, every=lengths[0], data=(inputs,))
            state = jax.device_get(state)  # a checkpoint
        jax.tree.map(np.testing.assert_array_equal, state, last)
        middle, one = record(first, half)
        end, other = record(middle, half)
        jax.tree.map(lambda a, b: np.testing.assert_array_equal(a[-1], b[0]), one, other)
        if half == 3:
            jax.tree.map(np.testing.assert_array_equal, end, whole[0])

    check()
    middle, one = record(first, 3)
    end, other = record(middle, 3)
    jax.tree.map(np.testing.assert_array_equal, end, whole[0])
    jax.tree.map(lambda a, b, c: np.testing.assert_array_equal([a[2], b[2]], c[1:]), one, other, whole[1])


WRONG_STEPS = [0.9, True, np.float64(2), "2", None, np.asarray([1, 1, 1]), 0, -1, np.int64(0), jnp.asarray(0)]


@pytest.mark.parametrize("every", WRONG_STEPS, ids=repr)
def test_what_is_no_number_of_steps_is_refused(every):
    tx = optax.sgd(0.1)
    step, first = train.make_step(lambda p: jnp.sum(p**2), tx), train.init(tx, jnp.ones(2))
    for call in (
        lambda: train.record(step, first, lambda s: s.step, samples=2, every=every),
        lambda: train.segments(step, first, until=4, every=every),
        lambda: train.make_step(lambda p, x: jnp.sum(p * x), tx, parts=every),
    ):
        with pytest.raises(UsageError, match="^(every|parts)=.* is not allowed: (every|parts) is .*at least 1"):
            call()


def test_counts_of_a_run_are_checked():
    tx = optax.sgd(0.1)
    step, first = train.make_step(lambda p: jnp.sum(p**2), tx), train.init(tx, jnp.ones(2))
    record = lambda **more: train.record(step, first, lambda s: s.step, **({"samples": 2, "every": 1} | more))  # noqa: E731
    assert record(samples=np.int64(2), every=np.int32(3))[1].tolist() == [0, 3, 6]
    for samples in (True, 2.0, -1, np.float32(1), None):
        with pytest.raises(UsageError, match=f"samples={samples} is not allowed: samples is "):
            record(samples=samples)
    with pytest.raises(UsageError, match="every=1073741824 is not allowed: every is at least 1 and at most 1073741823"):
        record(every=2**30)  # 2^31 steps, counted in 32 bits
    with pytest.raises(UsageError, match=r"every=float32\[\] is not allowed: every is a whole number"):
        jax.jit(lambda every: record(every=every))(2.0)
    for until in (4.5, True, -1, 2**31):
        with pytest.raises(UsageError, match=f"until={until} is not allowed: until is "):
            train.segments(step, first, until=until, every=1)
    for wrong in (
        first._replace(step=jnp.float32(1)),
        first._replace(step=jnp.zeros(2, int)),
        first._replace(step=-1),
        first.params,
    ):
        with pytest.raises(UsageError, match="step=.* is not allowed: step is "):
            train.segments(step, wrong, until=4, every=1)
    assert [int(s.step) for s in train.segments(step, first, until=np.int64(3), every=np.int16(2))] == [2, 3]


def test_data_of_different_lengths_are_not_cut():
    """Six examples and three weights of classes, say: a part would have two of the one and one of the other."""
    tx, data = optax.sgd(0.1), (np.ones((6, 2)), np.ones(3))
    told = "parts=3 is not allowed for data whose leading axes have the lengths 6, 3: all have the same"
    with pytest.raises(UsageError, match=told):
        train.make_step(lambda p, x, w: jnp.mean(p * x) * jnp.sum(w), tx, parts=3)(train.init(tx, jnp.zeros(())), *data)
    whole = train.make_step(lambda p, x, w: jnp.mean(p * x) * jnp.sum(w), tx)(train.init(tx, jnp.zeros(())), *data)
    assert float(whole.params) == pytest.approx(-0.3)


@pytest.mark.parametrize(
    "wrong", [(np.ones((4, 3)), 0.5), (np.ones((0, 3)),), (), (np.ones(3),)], ids=["float", "empty", "none", "odd"]
)
def test_data_that_cannot_be_cut_are_refused(wrong):
    tx = optax.sgd(0.1)
    step = train.make_step(lambda p, *x: jnp.sum(p), tx, parts=2)
    with pytest.raises(UsageError, match="parts=2 is not allowed: it divides the length of all data, and there is some"):
        step(train.init(tx, jnp.ones(3)), *wrong)


def test_a_switch_stands_at_one_of_its_names():
    for index in (3, -1, True, 1.0):
        with pytest.raises(UsageError, match=f"choice={index} is not allowed: choice is .*at least 0 and at most 2"):
            train.switched(Code(index, NAMES), optimizers(0.1))
    with pytest.raises(UsageError, match="choice=gd is not allowed: it is a switch"):
        train.switched("gd", optimizers(0.1))


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


# learning


def text_of(factor=None, kind="descend"):
    """The program of three steps, as the compiler gets it, and the weights after them."""

    def steps(params):
        if kind == "hand":
            gradient = jax.grad(loss)(params, data())
            return train.learned(params, jax.tree.map(lambda p, g: p - 0.1 * g, params, gradient))
        tx = optax.adam(0.1)
        step = train.make_step(loss, tx)
        return jax.lax.fori_loop(0, 3, lambda _, s: step(s, data()), train.init(tx, params)).params

    with contextlib.nullcontext() if factor is None else train.learning(factor) as made:
        lowered = jax.jit(steps).lower(start())
    return lowered.as_text(), lowered.compile()(start()), made


@pytest.mark.parametrize("kind", ["descend", "hand"])
def test_learning_scales_steps_and_leaves_other_programs_alone(kind, x64, monkeypatch):
    plain, after, _ = text_of(kind=kind)
    zero, still, made = text_of(0.0, kind)
    _, half, _ = text_of(0.5, kind)
    assert text_of(kind=kind)[0] == plain, "the context is left"
    monkeypatch.setattr(train, "learned", lambda before, after: after)
    assert text_of(kind=kind)[0] == plain, "without it, programs are those of plain steps"
    assert zero != plain and made.steps == 1
    for name, w in start().items():
        np.testing.assert_array_equal(still[name], w)
        assert not np.allclose(after[name], w)
        if kind == "hand":
            np.testing.assert_allclose(half[name], (w + after[name]) / 2)


@pytest.mark.parametrize("jitted", [False, True])
def test_what_was_traced_outside_a_block_is_not_taken_for_it(jitted, x64):
    """Nor the other way round: JAX keeps traces of functions, of segments too."""
    tx = optax.sgd(0.1)
    step = train.make_step(lambda w: jnp.sum(w**2), tx)
    step = jax.jit(step) if jitted else step

    def end():
        (last,) = train.segments(step, train.init(tx, jnp.ones(2)), until=5, every=5)
        return np.asarray(last.params)

    moved = np.full(2, 0.8**5)
    for _ in range(2):
        np.testing.assert_allclose(end(), moved, rtol=1e-6)
        with train.learning(0.0) as now:
            np.testing.assert_array_equal(end(), 1)
        with train.learning(0.5):
            np.testing.assert_allclose(end(), 0.9**5, rtol=1e-6)
        assert now.steps == 1
