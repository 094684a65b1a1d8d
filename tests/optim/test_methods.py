"""All methods under one interface: they train, share one step, and are swept over rates in one program."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxdyn.engine.claims.code_field import Code
from jaxdyn.errors import UsageError
from jaxdyn.optim.axes import Matrix
from jaxdyn.optim.methods import DECAYS, METHODS, Options, method
from jaxdyn.optim.muon import muon_direction
from jaxdyn.optim.schedules import schedule
from tests.programs import faults

TARGET = np.random.default_rng(1).normal(size=(2, 8, 12)).astype(np.float32) / 3


def start():
    rng = np.random.default_rng(0)
    return {"w": jnp.asarray(rng.normal(0, 0.1, (2, 8, 12)), jnp.float32), "norm": jnp.ones((2, 12))}


def loss(params):
    return jnp.sum(jnp.square(params["w"] * params["norm"][:, None] - TARGET))


def final(name, lr, key):
    options = Options(rank=3, every=10, scale=1.0, alpha=3.0, switch=50)
    chosen = method(name, lr, options, key=key)
    params = chosen.start(start())

    def step(carry, _):
        params, state = carry
        value, gradient = jax.value_and_grad(loss)(params)
        updates, state = chosen.tx.update(gradient, state, params)
        return (optax.apply_updates(params, updates), state), value

    return jax.lax.scan(step, (params, chosen.tx.init(params)), None, length=100)[1]


@pytest.mark.thinned
@pytest.mark.parametrize("name", METHODS)
def test_every_method_lowers_the_loss_at_traced_rates_and_keys(name):
    lrs, keys = jnp.array([0.003, 0.01]), jax.random.split(jax.random.key(0), 2)
    traces = 0

    def counted(lr, key):
        nonlocal traces
        traces += 1
        return final(name, lr, key)

    curves = jax.jit(jax.vmap(counted))(lrs, keys)
    assert traces == 1
    assert np.isfinite(curves).all()
    assert (curves[:, -1] < 0.9 * curves[:, 0]).all()


@pytest.mark.thinned
@pytest.mark.parametrize("name", ["galore", *(name for name in METHODS if name != "galore")])
def test_nnx_takes_every_method(name):
    """``nnx.Optimizer``, steps by hand with variables, and with arrays: the same three steps, with two bases or merges."""
    tx, model = method(name, 0.1, Options(rank=2, every=2)).tx, nnx.Linear(6, 8, rngs=nnx.Rngs(0))
    variables = jax.tree.map(jnp.copy, nnx.state(model, nnx.Param))
    arrays = nnx.to_pure_dict(variables)
    optimizer = nnx.Optimizer(model, tx, wrt=nnx.Param)
    states = [tx.init(variables), tx.init(arrays)]
    for _ in range(3):
        optimizer.update(model, jax.tree.map(jnp.cos, nnx.state(model, nnx.Param)))
        updates, states[0] = tx.update(jax.tree.map(jnp.cos, variables), states[0], variables)
        variables = optax.apply_updates(variables, updates)
        updates, states[1] = tx.update(jax.tree.map(jnp.cos, arrays), states[1], arrays)
        arrays = optax.apply_updates(arrays, updates)
    for tree in (nnx.state(model, nnx.Param), variables):
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-6), nnx.to_pure_dict(tree), arrays)


def test_schedules_are_rates():
    chosen = method("galore", lambda count: 0.1 * count, Options(rank=2))
    params = start()
    updates, _ = chosen.tx.update(params, chosen.tx.init(params), params)
    assert not jax.tree.reduce(lambda a, x: a or bool(x.any()), updates, False)


def test_wrong_methods_are_refused():
    with pytest.raises(UsageError, match="method=rmsprop is not allowed: it is one of sgd, momentum"):
        method("rmsprop", 0.1)
    with pytest.raises(UsageError, match="every=None"):
        method("relora", 0.1, Options(every=None))
    for name in (["adam"], None, "Adam", 3):
        with pytest.raises(UsageError, match="method="):
            method(name, 0.1, Options())
    with pytest.raises(UsageError, match="lazy is not allowed without a period"):
        method("q_galore", 0.1, Options(every=None))


@pytest.mark.parametrize(
    ("field", "values"),
    {
        "rank": (0, -1, 2.5, 2.0, True, np.int64(0), None, "2"),
        "every": (0, np.int64(0), jnp.int32(0), 0.5, 2.0, True, "2"),
        "switch": (-1, 0.5, True),
        "scale": (np.nan, jnp.float32(jnp.nan), np.inf, -1.0, True, "1", np.ones(2)),
        "alpha": (0.0, np.nan, True),
        "b1": (1.0, np.nan, -0.1),
        "b2": (1.0, True),
        "eps": (-1e-8, np.nan),
        "side": ("top", 1),
        "finder": ("guess",),
        "moments": ("turn", True),
        "stored": ("4bit", None),
    }.items(),
)
def test_every_option_is_checked(field, values):
    for value in values:
        with pytest.raises(UsageError, match=rf"{field}.* (is|are) not allowed") as caught:
            Options(**{field: value})
        assert "\n" not in str(caught.value)


def test_numpys_and_jaxs_numbers_are_options():
    assert Options(rank=np.int64(3), every=np.array(2), switch=jnp.int32(1)) == Options(rank=3, every=2, switch=1)
    Options(scale=np.float32(0.5), alpha=jnp.float32(8), b1=np.float64(0.9), eps=0)


@pytest.mark.thinned
@pytest.mark.parametrize("name", ["adam", "lora"])
def test_rates_are_numbers_arrays_or_schedules_and_updates_keep_their_dtype(name, x64):
    params = {"w": jnp.asarray(TARGET, jnp.bfloat16), "norm": jnp.ones((2, 12), jnp.float32)}
    updates = {}
    for kind, lr in {
        "number": 0.25,
        "numpy": np.float64(0.25),
        "array": jnp.float32(0.25),
        "zero axes": np.array(0.25),
        "schedule": lambda count: 0.25,
        "array of a schedule": lambda count: jnp.float64(0.25),
    }.items():
        tx = method(name, lr, OPTIONS).tx
        updates[kind], _ = tx.update(params, tx.init(params), params)
        assert kinds(updates[kind]) == kinds(params)
        jax.tree.map(np.testing.assert_array_equal, updates[kind], updates["number"])
    for lr in (np.nan, -0.1, True, "fast", jnp.ones(12), np.ones(1), jnp.float32(jnp.inf), 1j):
        with pytest.raises(UsageError, match="lr"):
            method(name, lr, OPTIONS)
    tx = method(name, lambda count: jnp.ones(12), OPTIONS).tx
    with pytest.raises(UsageError, match="lr.count.=float64.12. is not allowed"):
        tx.update(params, tx.init(params), params)


# Any gradient: leaves of 0 to 4 axes, sides of 0 and 1, four dtypes (others: the slow test below); zero, tiny, huge, NaN, infinite.

SHAPES = {
    "scalar": ((), "float32"),
    "vector": ((5,), "bfloat16"),
    "empty": ((0, 4), "float32"),
    "row": ((1, 6), "float16"),
    "column": ((6, 1), "float64"),
    "wide": ((4, 7), "float32"),
    "tall": ((5, 3), "float16"),
    "deep": ((2, 1, 3, 4), "bfloat16"),
}
STEPS = 4
FORGETFUL = ("sgd", "sign")  # methods without a state
OPTIONS = Options(rank=3, every=2, scale=0.5, alpha=6.0, switch=3)
SIZES = {
    "zero": lambda dtype: 0.0,
    "tiny": lambda dtype: 4 * float(jnp.finfo(dtype).smallest_subnormal),
    "one": lambda dtype: 1.0,
    "huge": lambda dtype: float(jnp.finfo(dtype).max) ** 0.45,
}


def weights(seed):
    rng = np.random.default_rng(seed)
    return {name: jnp.asarray(rng.normal(0, 0.1, shape), dtype) for name, (shape, dtype) in SHAPES.items()}


@functools.cache
def program(name, options=OPTIONS):
    """Start, and the steps from one number to another along given gradients, with all updates."""
    tx = method(name, 0.1, options)

    @jax.jit
    def run(params, state, gradients, start, stop):
        def step(i, carry):
            params, state, updates = carry
            new, state = tx.tx.update(jax.tree.map(lambda g: g[i], gradients), state, params)
            updates = jax.tree.map(lambda all_, one: all_.at[i].set(one), updates, new)
            return optax.apply_updates(params, new), state, updates

        return jax.lax.fori_loop(start, stop, step, (params, state, jax.tree.map(jnp.zeros_like, gradients)))

    return jax.jit(lambda p: (lambda start: (start, tx.tx.init(start)))(tx.start(p))), run


@st.composite
def gradients(draw, bad, name):
    """Gradients of all steps, and where one of them is not finite: leaf, step and entry."""
    narrow = "float32" if name == "adam_8bit" else "float64"  # what its moments can hold
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    sizes = {
        name: SIZES[draw(st.sampled_from(sorted(SIZES)))](dtype.replace("float64", narrow)) for name, (_, dtype) in SHAPES.items()
    }
    tree = {
        name: (rng.normal(size=(STEPS, *shape)) * sizes[name]).astype(jnp.dtype(dtype)) for name, (shape, dtype) in SHAPES.items()
    }
    if not bad:
        return tree, None
    name = draw(st.sampled_from([name for name, (shape, _) in SHAPES.items() if 0 not in shape]))
    place = (draw(st.integers(0, STEPS - 1)), *(draw(st.integers(0, n - 1)) for n in SHAPES[name][0]))
    tree[name][place] = draw(st.sampled_from([np.nan, np.inf, -np.inf]))
    return tree, (name, place)


def kinds(tree):
    return jax.tree.map(lambda x: (x.shape, x.dtype), tree)


@pytest.mark.thinned
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n in ("galore", "fira", "lora") else pytest.mark.slow) for n in METHODS]
)
@settings(deadline=None, max_examples=25, derandomize=True)
@given(st.data())
def test_finite_gradients_give_finite_steps_in_parts_as_at_once(name, data):
    with jax.enable_x64(True):
        tree, _ = data.draw(gradients(bad=False, name=name))
        start, run = program(name)
        params, state = start(weights(0))
        at_once = run(params, state, tree, 0, STEPS)
        assert kinds(at_once) == kinds((params, state, tree))
        for x in jax.tree.leaves((at_once[0], at_once[2])):
            assert np.isfinite(np.asarray(x, np.float64)).all()
        cut = data.draw(st.integers(0, STEPS))
        first = jax.device_get(run(params, state, tree, 0, cut))  # through the host, as a stored state
        second = run(*first[:2], tree, cut, STEPS)
        jax.tree.map(np.testing.assert_array_equal, second[:2], at_once[:2])


@pytest.mark.thinned
@pytest.mark.parametrize("name", METHODS)
@settings(deadline=None, max_examples=25, derandomize=True)
@given(st.data())
def test_a_gradient_that_is_not_finite_stays_visible_in_its_leaf_alone(name, data):
    with jax.enable_x64(True):
        tree, (leaf, (at, *entry)) = data.draw(gradients(bad=True, name=name))
        start, run = program(name)
        params, _, updates = jax.device_get(run(*start(weights(0)), tree, 0, STEPS))
    for k, (moved, new) in {k: (updates[k].astype(np.float64), params[k].astype(np.float64)) for k in SHAPES}.items():
        if k == leaf:  # from its step on, at its entry
            assert np.isfinite(moved[:at]).all()
            until = at + 1 if name in FORGETFUL else STEPS
            assert not np.isfinite(moved[at:until, *entry]).any() and not np.isfinite(new[tuple(entry)])
        else:
            assert np.isfinite(moved).all() and np.isfinite(new).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", [pytest.param(n, marks=() if n in ("galore", "lora") else pytest.mark.slow) for n in METHODS])
def test_jit_changes_nothing(name):
    params = {"w": jnp.asarray(TARGET[0]), "bias": jnp.asarray(TARGET[0, 0])}
    tx = method(name, lambda count: 0.1 / (count + 1), OPTIONS)
    with jax.disable_jit():
        params = tx.start(params)
        state = tx.tx.init(params)
        plain = tx.tx.update(params, state, params)
    compiled = jax.jit(tx.tx.update)(params, jax.jit(tx.tx.init)(params), params)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5), compiled, plain)


def counted(state, change):
    """The state with its counts changed."""
    named = lambda path: getattr(path[-1], "name", "") == "count"  # noqa: E731
    return jax.tree_util.tree_map_with_path(lambda path, x: change(x) if named(path) else x, state)


def checked(count):
    assert count >= 2**30
    return count


@pytest.mark.thinned
@pytest.mark.parametrize("name", METHODS)
def test_steps_go_on_after_the_last_number_of_the_counts(name):
    params = {"w": jnp.asarray(TARGET[0]), "bias": jnp.asarray(TARGET[0, 0])}
    tx = method(name, 0.1, OPTIONS)
    start, update, paths = tx.start(params), jax.jit(tx.tx.update), {}
    for first in (2**31 - 3, 2**30 + 1):  # of equal phase
        state = counted(tx.tx.init(start), lambda count, first=first: jnp.int32(first))
        now, paths[first] = start, []
        for _ in range(5):
            updates, state = update(now, state, now)
            now = optax.apply_updates(now, updates)
            paths[first].append(now["w"])
            counted(state, checked)
    late, early = (np.stack(path) for path in paths.values())
    assert np.isfinite(late).all()
    if name in (
        "sgd",
        "adam",
        "adam_8bit",
        "muon",
        "galore",
        "q_galore",
        "fira",
        "lora",
        "low_rank",
    ):  # the others draw by the count
        np.testing.assert_allclose(late, early, rtol=1e-4, atol=1e-5)


@pytest.mark.slow  # a program for each tree
@settings(deadline=None, max_examples=60, derandomize=True)
@given(st.data())
def test_any_leaf_and_any_options(data):
    """Shapes of 0 to 4 axes, dtypes and options of all kinds: finite steps of the same structure, and NaN where a gradient is."""
    name = data.draw(st.sampled_from(sorted(METHODS)))
    sides = ("short", "long", "left", "right") + (("full",) if name not in ("fira", "apollo", "apollo_mini") else ())
    options = Options(
        rank=data.draw(st.integers(1, 9)),
        every=data.draw(st.integers(1, 3)),
        side=data.draw(st.sampled_from(sides)),
        finder=data.draw(st.sampled_from(("svd", "randomized", "iteration", "orthonormal", "gaussian"))),
        moments=data.draw(st.sampled_from(("keep", "reset", "rotate"))),
        stored=data.draw(st.sampled_from(("parameter", "float32", "8bit"))),
        switch=data.draw(st.integers(0, 3)),
    )
    shape = tuple(data.draw(st.lists(st.sampled_from([0, 1, 2, 3, 5]), max_size=4)))
    shape = data.draw(st.sampled_from([shape, (64, 80)]))  # the latter has blocks
    options = dataclasses.replace(options, stored="float32") if name == "relora" and 0 not in shape else options
    dtype = data.draw(st.sampled_from(["float32", "float64", "bfloat16", "float16"]))
    held = (
        dtype if (options.stored == "parameter" and name != "adam_8bit") or dtype == "float16" else "float32"
    )  # what the moments can hold
    size = SIZES[data.draw(st.sampled_from(sorted(SIZES)))](held)
    rng = np.random.default_rng(data.draw(st.integers(0, 2**16)))
    with jax.enable_x64(True):
        g = [{"w": jnp.asarray(rng.normal(size=shape) * size, dtype)} for _ in range(3)]
        chosen = method(name, 0.1, options)
        params = chosen.start({"w": jnp.asarray(rng.normal(0, data.draw(st.sampled_from([0, 0.1])), shape), dtype)})
        state, update = chosen.tx.init(params), jax.jit(chosen.tx.update)
        for k in range(3):
            updates, after = update(g[k], state, params)
            assert kinds((updates, after)) == kinds((params, state))
            params, state = optax.apply_updates(params, updates), after
            assert np.isfinite(updates["w"].astype(jnp.float64)).all()
        if 0 not in shape:
            place = tuple(data.draw(st.integers(0, n - 1)) for n in shape)
            bad = {"w": g[0]["w"].at[place].set(data.draw(st.sampled_from([jnp.nan, jnp.inf])))}
            updates, state = update(bad, state, params)
            assert not np.isfinite(updates["w"][place])
            updates, _ = update(g[0], state, params)
            assert options.moments == "reset" or name in FORGETFUL or not np.isfinite(updates["w"][place])


# The methods that other libraries have as well, with both decays: optax's own, and numpy.


def small(count=11, seed=0):
    """Weights and the gradients of ten steps, float32."""
    rng = np.random.default_rng(seed)
    tree = [{"w": rng.normal(size=(4, 6)), "bias": rng.normal(size=6)} for _ in range(count)]
    first, *rest = jax.tree.map(lambda x: jnp.asarray(x, jnp.float32), tree)
    return first, rest


def path(tx, given=None):
    """The weights after every step."""
    params, gradients = given or small()
    state, update, out = tx.init(params), jax.jit(tx.update), []
    for g in gradients:
        updates, state = update(g, state, params)
        params = optax.apply_updates(params, updates)
        out.append(params)
    return jax.tree.map(lambda *x: np.stack(x), *out)


def agree(a, b, rtol=2e-6):
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=rtol, atol=2e-6), a, b)


DIRECTIONS = {
    "sgd": optax.identity,
    "momentum": lambda: optax.trace(0.9),
    "nesterov": lambda: optax.trace(0.9, nesterov=True),
    "sign": optax.scale_by_sign,
    "adam": optax.scale_by_adam,
    "adamw": optax.scale_by_adam,
    "adam_8bit": optax.scale_by_adam,  # arrays as small as these are stored in float32
    "muon": lambda: muon_direction(optax.scale_by_adam()),
}
RATE, LAMBDA = 0.03, 0.2


def by_optax(name, decay):
    decays = optax.add_decayed_weights(LAMBDA)
    parts = [decays, DIRECTIONS[name]()] if decay == "coupled" else [DIRECTIONS[name](), decays]
    return optax.chain(*parts, optax.scale_by_learning_rate(RATE))


@pytest.mark.parametrize("name", DIRECTIONS)
def test_steps_are_optaxs_with_either_decay(name):
    for decay in DECAYS:
        if (name, decay) != ("adamw", "coupled"):
            agree(path(method(name, RATE, Options(weight_decay=LAMBDA, decay=decay)).tx), path(by_optax(name, decay)))
    default = "coupled" if name in ("sgd", "momentum", "nesterov", "adam", "adam_8bit") else "decoupled"
    agree(path(method(name, RATE, Options(weight_decay=LAMBDA)).tx), path(by_optax(name, default)))


def test_whole_optimizers_of_optax():
    alone = {
        "sgd": optax.sgd(RATE),
        "momentum": optax.sgd(RATE, momentum=0.9),
        "nesterov": optax.sgd(RATE, momentum=0.9, nesterov=True),
        "sign": optax.sign_sgd(RATE),
        "adam": optax.adam(RATE),
        "adamw": optax.adamw(RATE, weight_decay=0.0),
    }
    for name, theirs in alone.items():
        jax.tree.map(np.testing.assert_array_equal, path(method(name, RATE).tx), path(theirs))
    agree(path(method("adamw", RATE, Options(weight_decay=0.1, b2=0.95)).tx), path(optax.adamw(RATE, b2=0.95, weight_decay=0.1)))


def test_coupled_and_decoupled_adam_by_hand(x64):
    """Numpy in float64: algorithm 2 of arXiv:1711.05101, the decoupled decay times the rate."""
    params, gradients = small()
    for decay in DECAYS:
        w, m, v = np.asarray(params["w"], float), 0.0, 0.0
        for k, g in enumerate(gradients, 1):
            g = np.asarray(g["w"], float) + (LAMBDA * w if decay == "coupled" else 0)
            m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g**2
            step = m / (1 - 0.9**k) / (np.sqrt(v / (1 - 0.99**k)) + 1e-8)
            w = w - RATE * (step + (LAMBDA * w if decay == "decoupled" else 0))
        found = path(method("adam", RATE, Options(b2=0.99, weight_decay=LAMBDA, decay=decay)).tx)["w"][-1]
        np.testing.assert_allclose(found, w, rtol=1e-4, atol=1e-6)


def test_adams_epsilon_is_its_own_or_galores():
    """One default for Adam, another for Adam in a subspace; given ones hold for both: full rank makes the two equal."""
    params, gradients = small()
    tiny = params, [jax.tree.map(lambda x: 1e-7 * x, g) for g in gradients]
    assert not np.allclose(path(method("adam", 1.0).tx, tiny)["w"], path(method("adam", 1.0, Options(eps=1e-6)).tx, tiny)["w"])
    raw = Options(eps=1e-6, epsilon="raw", rank=4, scale=1.0)
    agree(path(method("adam", 1.0, raw).tx, tiny)["bias"], path(method("galore", 1.0).tx, tiny)["bias"])


@pytest.mark.parametrize("largest", [0.5, 100.0])
def test_a_gradient_is_clipped_before_all_else(largest):
    theirs = optax.chain(optax.clip_by_global_norm(largest), by_optax("momentum", "coupled"))
    agree(path(method("momentum", RATE, Options(clip=largest, weight_decay=LAMBDA)).tx), path(theirs))
    halves = {"w": jnp.full((300, 300), 200.0, jnp.float16)}  # the square of the norm is beyond float16
    tx = method("sgd", 1.0, Options(clip=3.0)).tx
    updates, _ = tx.update(halves, tx.init(halves), halves)
    np.testing.assert_allclose(updates["w"], -0.01, rtol=1e-3)


@pytest.mark.parametrize("name", DIRECTIONS)
def test_without_a_rate_updates_are_the_direction(name):
    options = Options(weight_decay=LAMBDA)
    agree(path(optax.chain(method(name, None, options).tx, optax.scale(-RATE))), path(method(name, RATE, options).tx))


def test_factors_need_a_rate():
    for name in ("lora", "relora", "low_rank"):
        with pytest.raises(UsageError, match=f"lr=None is not allowed for {name}: its factors are trained at a rate"):
            method(name, None)


NUMBERS = {
    "weight_decay": (0.0, 0.3),
    "momentum": (0.5, 0.95),
    "b1": (0.8, 0.9),
    "b2": (0.9, 0.99),
    "clip": (0.5, 2.0),
    "rms": (0.1, 1.0),
}


@pytest.mark.thinned
@pytest.mark.parametrize("name", ["muon", *(name for name in DIRECTIONS if name != "muon")])
def test_traced_numbers_are_swept_in_one_program(name):
    """Rates, decays, betas and norms as traced numbers under vmap are the loop over Python's."""
    params, gradients = small()
    traces = 0

    def end(lr, numbers):
        nonlocal traces
        traces += 1
        tx = method(name, lr, Options(eps=1e-4, **numbers)).tx
        p, state = params, tx.init(params)
        for g in gradients:
            updates, state = tx.update(g, state, p)
            p = optax.apply_updates(p, updates)
        return p

    columns = {key: jnp.asarray(values, jnp.float32) for key, values in NUMBERS.items()}
    found = jax.jit(jax.vmap(end))(jnp.asarray([0.01, 0.1]), columns)
    assert traces == 1
    for i, lr in enumerate((0.01, 0.1)):
        one = path(method(name, lr, Options(eps=1e-4, **{key: values[i] for key, values in NUMBERS.items()})).tx)
        jax.tree.map(lambda a, b, i=i: np.testing.assert_allclose(a[i], b[-1], rtol=1e-3, atol=1e-4), found, one)


CHEAP = ("sgd", "momentum", "sign", "adam")


def test_a_switch_is_each_method_by_itself():
    """One program for all names, vmapped over the switch and the rate; the state holds the states of all."""
    params, gradients = small()
    traces = 0

    def end(index, lr):
        nonlocal traces
        traces += 1
        chosen = method(Code(index, CHEAP), schedule("cosine", lr, 20, warmup=2), Options(weight_decay=LAMBDA))
        p, tx = chosen.start(params), chosen.tx
        state = tx.init(p)
        for g in gradients:
            updates, state = tx.update(g, state, p)
            p = optax.apply_updates(p, updates)
        return p

    found = jax.jit(jax.vmap(end))(jnp.arange(4), jnp.full(4, 0.1))
    assert traces == 1
    for i, name in enumerate(CHEAP):
        one = path(method(name, schedule("cosine", 0.1, 20, warmup=2), Options(weight_decay=LAMBDA)).tx)
        jax.tree.map(lambda a, b, i=i: np.testing.assert_allclose(a[i], b[-1], rtol=1e-4, atol=1e-5), found, one)


def test_a_switch_chooses_the_start_as_well():
    """That of low-rank training is a product of factors; those of others are the weights."""
    params = start()
    starts = [method(Code(i, ("adam", "low_rank")), 0.1, Options(rank=2)).start(params) for i in range(2)]
    jax.tree.map(np.testing.assert_array_equal, starts[0], params)
    jax.tree.map(np.testing.assert_array_equal, starts[1], method("low_rank", 0.1, Options(rank=2)).start(params))
    with pytest.raises(UsageError, match="method=gd is not allowed: it is one of sgd, momentum"):
        method(Code(0, ("gd", "adam")), 0.1)


@pytest.mark.parametrize("name", [pytest.param(n, marks=() if n in DIRECTIONS else pytest.mark.slow) for n in METHODS])
def test_every_method_lowers_for_accelerators(name):
    chosen = method(name, schedule("wsd", 0.1, 10, warmup=2, cooldown=3), dataclasses.replace(OPTIONS, clip=1.0, weight_decay=0.1))
    params = {"w": jax.ShapeDtypeStruct((2, 64, 80), jnp.bfloat16), "bias": jax.ShapeDtypeStruct((5,), jnp.float32)}
    state = jax.eval_shape(chosen.tx.init, params)
    assert faults(jax.jit(chosen.tx.update), params, state, params) == []


def test_muon_with_singular_vectors_lowers_for_accelerators():
    tx = method("muon", 0.1, Options(orthogonal="polar"), dims=Matrix()).tx
    params = {"w": jax.ShapeDtypeStruct((2, 64, 80), jnp.float32)}
    assert faults(jax.jit(tx.update), params, jax.eval_shape(tx.init, params), params) == []


def test_wrong_options_are_refused_in_a_sentence():
    for field, values in {
        "momentum": (1.0, -0.1, np.nan, True, "0.9"),
        "rms": (0.0, np.inf),
        "clip": (0.0, -1.0, np.nan),
        "decay": ("l2", True, "Coupled"),
        "orthogonal": ("svd", None),
        "epsilon": ("square", 1e-8),
        "weight_decay": (-0.1, np.nan),
    }.items():
        for value in values:
            with pytest.raises(UsageError, match=rf"{field}.* is not allowed") as caught:
                Options(**{field: value})
            assert "\n" not in str(caught.value)
    with pytest.raises(UsageError, match="AdamW's decay is decoupled"):
        method("adamw", 0.1, Options(decay="coupled"))
    tx = method("adamw", 0.1, Options(weight_decay=0.1)).tx
    params = {"w": jnp.ones(3)}
    with pytest.raises(UsageError, match="a step without the parameters is not allowed"):
        tx.update(params, tx.init(params))


def test_injected_numbers_change_during_a_run():
    make = lambda lr, momentum: method("momentum", lr, Options(momentum=momentum)).tx  # noqa: E731
    tx, (params, gradients) = optax.inject_hyperparams(make)(lr=0.1, momentum=0.9), small()
    state = tx.init(params)
    agree(path(tx), path(method("momentum", 0.1).tx))
    updates, state = tx.update(gradients[0], state, params)
    state.hyperparams["lr"], state.hyperparams["momentum"] = jnp.float32(0.2), jnp.float32(0.5)
    updates, _ = tx.update(gradients[1], state, params)
    expected = jax.tree.map(lambda a, b: -0.2 * (0.5 * a + b), *gradients[:2])
    agree(updates, expected)
