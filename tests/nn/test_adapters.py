"""Flax modules against our transformer, both ways: equal logits, keys of dropout, training to the same weights, messages."""

import dataclasses
import functools
import subprocess
import sys

import flax.linen
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx
from flax.training.train_state import TrainState

from jaxdyn import nn, text, train
from jaxdyn.errors import UsageError
from jaxdyn.nn.adapters import LinenTransformer, NnxTransformer, from_linen, from_nnx
from jaxdyn.text import language
from tests.nn.drawn import weights

pytestmark = pytest.mark.filterwarnings("ignore:Using 'Module.sow:DeprecationWarning")  # a user's module sows, observed or not
V, WIDTH, LENGTH = 11, 8, 7
GPT2 = nn.gpt2(V, width=WIDTH, layers=2, heads=2, length=LENGTH, std=0.4)
ENCODER = nn.encoder_lm(V, width=WIDTH, hidden=12, layers=2, std=0.4)
VARIANTS = {
    "encoder_lm": ENCODER,
    "gpt2": GPT2,
    "llama, groups": nn.llama("9M", vocabulary=V, width=WIDTH, hidden=10, heads=4, groups=2, layers=2, std=0.4),
    "tied, one for all keys": nn.Transformer(vocabulary=V, width=WIDTH, hidden=6, heads=2, groups=1, tied=True, std=0.4),
    "sinks": nn.Transformer(vocabulary=V, width=WIDTH, hidden=6, sink_token=True, attention="sink_bias", dropout=0.3, std=0.4),
}
TOLERANCE = {"float32": 1e-6, "float64": 1e-12}
TX = optax.adamw(0.02, eps=1e-4, weight_decay=0.1)
COLUMNS = np.random.default_rng(3).integers(0, V, (3, 5 * 20 + 1))
own_loss = optax.softmax_cross_entropy_with_integer_labels


def tokens(b=2, n=LENGTH):
    return jnp.asarray(np.random.default_rng(0).integers(0, V, (b, n)))


def window(i):
    """Inputs and targets of step i, by NumPy: what language.make_step reads."""
    return COLUMNS[:, 5 * i : 5 * i + 5], COLUMNS[:, 5 * i + 1 : 5 * i + 6]


def sines(n, dtype):
    """Sinusoidal positions, by NumPy."""
    angle = np.arange(n)[:, None] / 10_000.0 ** (np.arange(WIDTH) // 2 * 2 / WIDTH)
    return np.where(np.arange(WIDTH) % 2 == 0, np.sin(angle), np.cos(angle)).astype(dtype)


# The two networks as a user of flax writes them, with flax's own layers


class LinenBlock(flax.linen.Module):
    """Attention and MLP, with norms before (GPT-2) or after them."""

    post: bool
    hidden: int
    rate: float
    dtype: str

    @flax.linen.compact
    def __call__(self, x, mask, deterministic):
        m = {"dtype": self.dtype, "param_dtype": self.dtype}
        drop = flax.linen.Dropout(self.rate, deterministic=deterministic)
        a, b = (flax.linen.LayerNorm(epsilon=1e-5, name=name, use_fast_variance=False, **m) for name in ("norm1", "norm2"))
        heads = flax.linen.MultiHeadDotProductAttention(1 if self.post else 2, name="attention", deterministic=True, **m)
        z = x if self.post else a(x)
        x = x + drop(heads(z, mask=mask))
        x = a(x) if self.post else x
        act = flax.linen.relu if self.post else flax.linen.gelu
        z = act(flax.linen.Dense(self.hidden, name="up", **m)(x if self.post else b(x)))
        self.sow("intermediates", "active", jnp.mean(z > 0))
        x = x + drop(flax.linen.Dense(WIDTH, name="down", **m)(z))
        return b(x) if self.post else x


class Linen(flax.linen.Module):
    """GPT-2 or the encoder."""

    post: bool
    hidden: int
    rate: float = 0.25
    dtype: str = "float32"

    @flax.linen.compact
    def __call__(self, tokens, train=False):
        m = {"dtype": self.dtype, "param_dtype": self.dtype}
        embed, mask = flax.linen.Embed(V, WIDTH, name="embed", **m), flax.linen.make_causal_mask(tokens)
        if self.post:
            x = embed(tokens) * jnp.asarray(WIDTH**0.5, self.dtype) + sines(tokens.shape[-1], self.dtype)
        else:
            position = self.param("position", flax.linen.initializers.normal(0.02, self.dtype), (LENGTH, WIDTH))
            x = embed(tokens) + position[: tokens.shape[-1]]
        for i in range(2):
            x = LinenBlock(self.post, self.hidden, self.rate, self.dtype, name=f"blocks_{i}")(x, mask, not train)
        if self.post:
            return flax.linen.Dense(V, name="head", **m)(x)
        return embed.attend(flax.linen.LayerNorm(epsilon=1e-5, name="norm", use_fast_variance=False, **m)(x))


def attention(q, k, v, mask=None, **_):
    """For float64: JAX's own attention, which is nnx's, has its softmax in float32."""
    return jnp.einsum("...hqk,...khd->...qhd", flax.linen.dot_product_attention_weights(q, k, mask=mask), v)


class NnxBlock(nnx.Module):
    """As :class:`LinenBlock`."""

    def __init__(self, post, hidden, rate, m, *, rngs):
        self.post, self.drop = post, nnx.Dropout(rate, rngs=rngs)
        self.norm1, self.norm2 = (nnx.LayerNorm(WIDTH, epsilon=1e-5, use_fast_variance=False, rngs=rngs, **m) for _ in range(2))
        self.attention = nnx.MultiHeadAttention(1 if post else 2, WIDTH, decode=False, attention_fn=attention, rngs=rngs, **m)
        self.up, self.down = nnx.Linear(WIDTH, hidden, rngs=rngs, **m), nnx.Linear(hidden, WIDTH, rngs=rngs, **m)

    def __call__(self, x, mask):
        x = x + self.drop(self.attention(x if self.post else self.norm1(x), mask=mask))
        x = self.norm1(x) if self.post else x
        z = (nnx.relu if self.post else nnx.gelu)(self.up(x if self.post else self.norm2(x)))
        self.sow(nnx.Intermediate, "active", jnp.mean(z > 0))
        x = x + self.drop(self.down(z))
        return self.norm2(x) if self.post else x


class Nnx(nnx.Module):
    """As :class:`Linen`; the sinusoidal positions are an array of the module, which is no variable."""

    def __init__(self, post, hidden, rate=0.25, dtype="float32", *, rngs):
        m = {"dtype": dtype, "param_dtype": dtype}
        self.post, self.embed = post, nnx.Embed(V, WIDTH, rngs=rngs, **m)
        self.blocks = nnx.List([NnxBlock(post, hidden, rate, m, rngs=rngs) for _ in range(2)])
        if post:
            self.sines, self.head = jnp.asarray(sines(LENGTH, dtype)), nnx.Linear(WIDTH, V, rngs=rngs, **m)
        else:
            self.position = nnx.Param(0.02 * rngs.params.normal((LENGTH, WIDTH), dtype))
            self.norm = nnx.LayerNorm(WIDTH, epsilon=1e-5, use_fast_variance=False, rngs=rngs, **m)

    def __call__(self, tokens):
        x, n = self.embed(tokens), tokens.shape[-1]
        x = x * jnp.asarray(WIDTH**0.5, x.dtype) + self.sines[:n] if self.post else x + self.position[:n]
        for block in self.blocks:
            x = block(x, nnx.make_causal_mask(tokens))
        return self.head(x) if self.post else self.embed.attend(self.norm(x))


def theirs(params, kind):
    """Our weights under flax's names, and in its shapes."""
    w, post = params["blocks"], "head" in params

    def layer(name, i, kernel=(), bias=()):
        parts = {"kernel": (w[name][i], kernel), "bias": (w[f"{name}_bias"][i], bias)}
        return {part: x.reshape(size or x.shape) for part, (x, size) in parts.items()}

    def block(i):
        h, cut = 1 if post else 2, {"q": "query", "k": "key", "v": "value"}
        heads = {other: layer(name, i, (WIDTH, h, -1), (h, -1)) for name, other in cut.items()}
        heads |= {"out": layer("o", i, (h, -1, WIDTH))}
        norms = {"norm1": "attention_norm", "norm2": "mlp_norm"}
        norms = {other: {"scale": w[name][i], "bias": w[f"{name}_bias"][i]} for other, name in norms.items()}
        return {"attention": heads, "up": layer("up", i), "down": layer("down", i)} | norms

    blocks = {f"blocks_{i}": block(i) for i in range(2)} if kind == "linen" else {"blocks": {i: block(i) for i in range(2)}}
    out = blocks | {"embed": {"embedding": params["embed"]}}
    if post:
        return out | {"head": {"kernel": params["head"].T, "bias": params["head_bias"]}}
    return out | {"position": params["position"], "norm": {"scale": params["norm"], "bias": params["norm_bias"]}}


def users(kind, name, dtype="float32", rate=0.25):
    """A user's module (linen) or what builds it (nnx), our shape and weights, and the network made of the module."""
    post, shape = name == "encoder_lm", dataclasses.replace(VARIANTS[name], dropout=0.0, dtype=dtype)
    given = {"post": post, "hidden": shape.hidden, "rate": rate, "dtype": dtype}
    if kind == "linen":
        module = Linen(**given)
        return module, shape, weights(shape), from_linen(module)
    build = functools.partial(Nnx, **given)
    return build, shape, weights(shape), from_nnx(build)


def close(a, b, atol):
    assert jax.tree.structure(a) == jax.tree.structure(b)
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=atol, atol=atol), a, b)


USERS = [(kind, name) for name in ("gpt2", "encoder_lm") for kind in ("linen", "nnx")]


@pytest.mark.thinned
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize(("kind", "name"), USERS)
def test_a_module_in_the_same_logits_out(kind, name, dtype, x64):
    module, shape, ours, net = users(kind, name, dtype)
    params = theirs(ours, kind)
    logits = jax.jit(net.apply)(params, tokens())
    if kind == "linen":
        own = module.apply({"params": params}, tokens())
    else:
        model = module(rngs=nnx.Rngs(0))
        nnx.update(model, params)
        model.eval()
        own = model(tokens())
    np.testing.assert_allclose(logits, own, atol=TOLERANCE[dtype])
    np.testing.assert_allclose(logits, jax.jit(nn.network(shape).apply)(ours, tokens()), atol=5 * TOLERANCE[dtype])
    assert logits.dtype == dtype and np.std(logits) > 0.1


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["linen", "nnx"])
def test_weights_are_drawn_as_the_module_draws_them(kind):
    module, _, ours, net = users(kind, "gpt2")
    key = jax.random.key(5)
    params = jax.jit(net.init)(key)
    if kind == "linen":
        own = module.init(key, tokens())["params"]
    else:
        own = nnx.to_pure_dict(nnx.state(module(rngs=nnx.Rngs(key)), nnx.Param))
    close(params, own, 1e-6)
    assert jax.tree.map(jnp.shape, params) == jax.tree.map(jnp.shape, theirs(ours, kind))
    many = jax.vmap(net.init)(jax.random.split(key, 3))
    assert np.std(many["embed"]["embedding"], 0).min() > 0 and net.shape is module


def trained_in_flax(kind, module, params, loss=lambda out, targets: jnp.mean(own_loss(out, targets))):
    """Twenty steps as a user makes them: a TrainState in linen, an Optimizer in nnx."""
    if kind == "linen":
        state = TrainState.create(apply_fn=module.apply, params=params, tx=TX)

        @jax.jit
        def step(state, inputs, targets):
            gradient = jax.grad(lambda p: loss(state.apply_fn({"params": p}, inputs), targets))(state.params)
            return state.apply_gradients(grads=gradient)

        for i in range(20):
            state = step(state, *window(i))
        return state.params
    model = module(rngs=nnx.Rngs(0))
    nnx.update(model, params)
    model.eval()
    optimizer = nnx.Optimizer(model, TX, wrt=nnx.Param)

    @nnx.jit
    def update(model, optimizer, inputs, targets):
        captured = nnx.capture(lambda m: loss(m(inputs), targets), nnx.Intermediate)  # else what is sown would grow with the steps
        optimizer.update(model, nnx.grad(lambda m: captured(m)[0])(model))

    for i in range(20):
        update(model, optimizer, *window(i))
    return nnx.to_pure_dict(nnx.state(model, nnx.Param))


def trained_here(net, params):
    """Twenty steps of language.make_step."""
    step = language.make_step(net, TX, 5)
    (state,) = train.segments(step, train.init(TX, params), until=20, every=20, data=(jnp.asarray(COLUMNS), jax.random.key(0)))
    return state.params


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "name"), USERS)
def test_a_module_is_trained_to_the_weights_of_flax_and_of_ours(kind, name, x64):
    """The same windows and optimizer: a user's loop, the module as a network, and the transformer."""
    module, shape, ours, net = users(kind, name, "float64", rate=0.0)
    own = trained_in_flax(kind, module, theirs(ours, kind))
    close(trained_here(net, theirs(ours, kind)), own, 1e-11)
    end = trained_here(nn.network(shape), ours)
    close(theirs(end, kind), own, 1e-9)
    assert np.max(np.abs(end["embed"] - ours["embed"])) > 0.05


@pytest.mark.thinned
@pytest.mark.parametrize("kind", ["linen", "nnx"])
def test_dropout_is_by_key(kind):
    module, _, ours, net = users(kind, "gpt2")
    params, apply = theirs(ours, kind), jax.jit(net.apply)
    plain, a, again, b = (np.asarray(apply(params, tokens(), key=k)) for k in (None, *map(jax.random.key, (1, 1, 2))))
    np.testing.assert_array_equal(a, again)
    assert min(np.abs(a - b).max(), np.abs(a - plain).max()) > 1e-2
    if kind == "linen":
        own = module.apply({"params": params}, tokens(), train=True, rngs={"dropout": jax.random.key(1)})
        np.testing.assert_allclose(a, own, atol=1e-6)


class Drops(nnx.Module):
    """Two dropouts of ones; the second keeps its draws in two streams."""

    def __init__(self, *, rngs):
        self.weight = nnx.Param(jnp.ones(400))
        self.drops = nnx.List([nnx.Dropout(0.5, rngs=rngs) for _ in range(2)])

    def __call__(self, tokens):
        for drop in self.drops:
            self.sow(nnx.Intermediate, "dropped", drop(self.weight[...]))
        return self.weight * tokens[..., None]


def test_dropouts_of_an_nnx_module_have_draws_of_their_own():
    net = from_nnx(Drops)
    _, seen = net.apply(net.init(jax.random.key(0)), tokens(), key=jax.random.key(1), observe=("dropped",))
    first, second = np.asarray(seen["dropped"])
    assert set(np.unique(first)) == {0, 2} and abs(first.mean() - 1) < 0.2 and abs((first == second).mean() - 0.5) < 0.15


@pytest.mark.thinned
@pytest.mark.parametrize("kind", ["nnx", "linen"])
def test_what_a_module_sows_is_observed(kind):
    _, shape, ours, net = users(kind, "encoder_lm")
    logits, seen = jax.jit(lambda p: net.apply(p, tokens(), observe=("active",)))(theirs(ours, kind))
    hidden = nn.network(shape).apply(ours, tokens(), observe=("hidden",))[1]["hidden"]
    np.testing.assert_allclose(seen["active"], np.mean(hidden > 0, (1, 2, 3)), atol=1e-6)
    np.testing.assert_allclose(logits, net.apply(theirs(ours, kind), tokens()), atol=1e-6)
    with pytest.raises(UsageError, match="cannot observe entropy: this module sows active"):
        net.apply(theirs(ours, kind), tokens(), observe=("active", "entropy"))


class Deep(flax.linen.Module):
    """A dozen layers, which sow their numbers, and two shapes under one name."""

    @flax.linen.compact
    def __call__(self, tokens, deterministic):
        for i in range(12):
            Number(i, name=f"Layer_{i}")()
        self.sow("intermediates", "odd", jnp.zeros(2))
        self.sow("intermediates", "odd", jnp.zeros(3))
        return flax.linen.Embed(V, V)(tokens) + jnp.asarray(deterministic, jnp.float32)


class Number(flax.linen.Module):
    """Sows its number."""

    number: int

    def __call__(self):
        self.sow("intermediates", "number", jnp.asarray(self.number))


def test_observations_are_in_the_order_of_layers_and_of_one_shape():
    net = from_linen(Deep())
    params = net.init(jax.random.key(0))
    off, seen = net.apply(params, tokens(), observe=("number",))
    np.testing.assert_array_equal(seen["number"], np.arange(12))
    np.testing.assert_allclose(off - net.apply(params, tokens(), key=jax.random.key(0)), 1, atol=1e-6)
    with pytest.raises(UsageError, match=r"cannot observe odd: it is sown in the shapes \(2,\), \(3,\)"):
        net.apply(params, tokens(), observe=("odd",))


def test_a_module_is_evaluated_as_a_language_model():
    _, shape, ours, net = users("linen", "gpt2")
    a = jax.jit(lambda p: language.evaluate(net, p, COLUMNS, 5))(theirs(ours, "linen"))
    b = jax.jit(lambda p: language.evaluate(nn.network(shape), p, COLUMNS, 5))(ours)
    np.testing.assert_allclose(a.loss, b.loss, rtol=1e-5)
    assert a.entropy.shape == (0,) and b.entropy.shape == (2,)
    assert text.windows_in(COLUMNS, 5) == 20
    with pytest.raises(UsageError, match="11 in columns is not allowed: it is a number from 0 to 10"):
        language.evaluate(net, theirs(ours, "linen"), COLUMNS + 1, 5)
    with pytest.raises(UsageError, match="this network has no trunk"):
        net.trunk(theirs(ours, "linen"), tokens())


# Our transformer as a module of flax's


@pytest.mark.thinned
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("name", VARIANTS)
def test_our_modules_have_our_parameters_and_logits(name, dtype, x64):
    shape = dataclasses.replace(VARIANTS[name], dtype=dtype)
    net, params, t = nn.network(shape), weights(shape), tokens()
    wanted = jax.jit(net.apply)(params, t)
    linen = LinenTransformer(shape)
    assert jax.tree.map(jnp.shape, jax.eval_shape(linen.init, jax.random.key(0), t)["params"]) == jax.tree.map(jnp.shape, params)
    np.testing.assert_allclose(jax.jit(linen.apply)({"params": params}, t), wanted, atol=TOLERANCE[dtype])
    model = NnxTransformer(shape, rngs=nnx.Rngs(0))
    assert jax.tree.map(jnp.shape, nnx.to_pure_dict(nnx.state(model, nnx.Param))) == jax.tree.map(jnp.shape, params)
    nnx.update(model, params)
    model.eval()
    np.testing.assert_allclose(nnx.jit(lambda m, t: m(t))(model, t), wanted, atol=TOLERANCE[dtype])
    for back in (from_linen(linen), from_nnx(functools.partial(NnxTransformer, shape))):
        np.testing.assert_allclose(jax.jit(back.apply)(params, t), wanted, atol=TOLERANCE[dtype])


@pytest.mark.thinned
@pytest.mark.parametrize("kind", ["linen", "nnx"])
@pytest.mark.parametrize("name", VARIANTS)
def test_our_modules_are_trained_by_flax_to_our_weights(kind, name, x64):
    shape = dataclasses.replace(VARIANTS[name], dtype="float64", dropout=0.0)
    params = weights(shape)
    module = LinenTransformer(shape) if kind == "linen" else functools.partial(NnxTransformer, shape)
    close(trained_in_flax(kind, module, params), trained_here(nn.network(shape), params), 1e-10)


@pytest.mark.slow
def test_our_modules_drop_by_streams_and_are_observed():
    params, t, net = weights(GPT2), tokens(), nn.network(GPT2)
    linen, model = LinenTransformer(GPT2), NnxTransformer(GPT2, rngs=nnx.Rngs(0, dropout=jax.random.key(3)))
    nnx.update(model, params)
    a, b = (linen.apply({"params": params}, t, deterministic=False, rngs={"dropout": jax.random.key(k)}) for k in (1, 2))
    again = linen.apply({"params": params}, t, deterministic=False, rngs={"dropout": jax.random.key(1)})
    np.testing.assert_array_equal(a, again)
    c, d, plain = model(t), model(t), net.apply(params, t)
    assert min(np.abs(x - y).max() for x, y in ((a, b), (c, d), (a, plain), (c, plain))) > 1e-2
    e, f = (model(t, rngs=nnx.Rngs(dropout=7)) for _ in range(2))
    np.testing.assert_array_equal(e, f)
    np.testing.assert_allclose(model(t, deterministic=True), plain, atol=1e-6)
    model.eval()
    for (logits, seen), x in (
        (linen.apply({"params": params}, t, observe=("entropy",)), linen.apply({"params": params}, t, method="trunk")),
        (model(t, observe=("entropy",)), model.trunk(t)),
    ):
        np.testing.assert_allclose(logits, plain, atol=1e-6)
        np.testing.assert_allclose(seen["entropy"], net.apply(params, t, observe=("entropy",))[1]["entropy"], atol=1e-6)
        np.testing.assert_allclose(x, net.trunk(params, t), atol=1e-6)


class Classifier(flax.linen.Module):
    """A user's module with our transformer in it."""

    @flax.linen.compact
    def __call__(self, tokens):
        return flax.linen.Dense(3)(jnp.mean(LinenTransformer(GPT2, name="body").trunk(tokens), -2))


def test_our_linen_module_is_part_of_others():
    module = Classifier()
    params = module.init(jax.random.key(0), tokens())["params"]
    assert params["Dense_0"]["kernel"].shape == (WIDTH, 3)
    x = nn.network(GPT2).trunk(params["body"], tokens())
    own = np.mean(x, 1) @ params["Dense_0"]["kernel"] + params["Dense_0"]["bias"]
    np.testing.assert_allclose(module.apply({"params": params}, tokens()), own, atol=1e-6)
    assert abs(np.std(params["body"]["blocks"]["q"]) / 0.4 - 1) < 0.2 and np.std(params["body"]["embed"]) > 0
    created = module.apply({}, tokens(), mutable=["params"], rngs={"params": jax.random.key(0)})[1]["params"]
    close(created, params, 1e-6)


class Normed(flax.linen.Module):
    """A batch norm keeps means."""

    @flax.linen.compact
    def __call__(self, tokens):
        return flax.linen.BatchNorm(use_running_average=True)(flax.linen.Embed(V, V)(tokens))


class Always(flax.linen.Module):
    """Drops unless it is told otherwise, by an argument of a name of its own; its input is not tokens."""

    @flax.linen.compact
    def __call__(self, x, on=True):
        return flax.linen.Dropout(0.5, deterministic=not on)(flax.linen.Dense(3)(x))


class NormedNnx(nnx.Module):
    """As :class:`Normed`."""

    def __init__(self, *, rngs):
        self.norm = nnx.BatchNorm(4, rngs=rngs)


class AlwaysNnx(nnx.Module):
    """Drops at all times, by its own stream, if none is given."""

    def __init__(self, *, rngs):
        self.layer, self.drop = nnx.Linear(2, 3, rngs=rngs), nnx.Dropout(0.5, rngs=rngs)

    def __call__(self, x, rngs=None):
        return self.drop(self.layer(x), deterministic=False, rngs=rngs)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: from_linen(Linen), "module=Linen is not allowed: it is a flax.linen module"),
        (lambda: from_linen(Drops(rngs=nnx.Rngs(0))), "module=Drops is not allowed: it is a flax.linen module"),
        (lambda: from_linen(Normed()), "module=Normed is not allowed: it has variables .*: batch_stats"),
        (lambda: from_nnx(Drops(rngs=nnx.Rngs(0))), "build=Drops is not allowed: it makes a flax.nnx module from rngs"),
        (lambda: from_nnx(3), "build=int is not allowed: it makes a flax.nnx module from rngs"),
        (lambda: from_nnx(lambda rngs: rngs), "build=<lambda> is not allowed: it made Rngs, which is no flax.nnx module"),
        (
            lambda: from_nnx(NormedNnx),
            "build=NormedNnx is not allowed: .*: BatchStat norm/mean, BatchStat norm/var",
        ),
        (lambda: LinenTransformer(3).init(jax.random.key(0), tokens()), "shape=3 is not allowed: it is a jaxdyn.nn.Transformer"),
        (lambda: NnxTransformer("gpt2", rngs=nnx.Rngs(0)), "shape='gpt2' is not allowed: it is a jaxdyn.nn.Transformer"),
    ],
)
def test_other_modules_are_refused_in_words(make, words):
    with pytest.raises(UsageError, match=words):
        make()


@pytest.mark.parametrize("kind", ["linen", "nnx"])
def test_a_call_of_ones_own_and_dropout_without_a_key(kind):
    """A layer on other data than tokens, in which the call skips dropout where there is no key."""
    x = jnp.ones((5, 2))
    if kind == "linen":
        unable = from_linen(Always(), example=x)
        net = from_linen(Always(), example=x, call=lambda m, x, key: m(x, key is not None))
    else:
        unable = from_nnx(AlwaysNnx)
        net = from_nnx(AlwaysNnx, call=lambda m, x, key: m.layer(x) if key is None else m(x, rngs=nnx.Rngs(key)))
    params = net.init(jax.random.key(0))
    with pytest.raises(UsageError, match="this module draws random numbers without a key"):
        jax.jit(unable.apply)(params, x)
    assert set(np.unique(unable.apply(params, x, key=jax.random.key(1)) == 0)) == {False, True}
    plain, a, b = (net.apply(params, x, key=k) for k in (None, *map(jax.random.key, (1, 2))))
    (layer,) = params.values()
    np.testing.assert_allclose(plain, x @ layer["kernel"] + layer["bias"], atol=1e-6)
    for dropped in (a, b):
        np.testing.assert_allclose(dropped, np.where(dropped == 0, 0, 2 * plain), atol=1e-6)
    assert np.any(a != b)


@pytest.mark.thinned
@pytest.mark.parametrize("kind", ["nnx", "linen"])
def test_weights_of_another_module_are_refused(kind):
    net, ours = users(kind, "gpt2")[3], users(kind, "encoder_lm")[2]
    with pytest.raises(
        UsageError, match=r"these weights are of another network: of blocks.0/attention/key/bias they have shape \(1, 8\)"
    ):
        net.apply(theirs(ours, kind), tokens())
    with pytest.raises(UsageError, match="of embed/embedding they have none, the module has shape \\(11, 8\\)"):
        net.apply({n: w for n, w in net.init(jax.random.key(0)).items() if n != "embed"}, tokens())


@pytest.mark.slow
def test_networks_are_imported_without_flax():
    code = "import sys, jaxdyn.nn\nassert 'flax' not in sys.modules\nimport jaxdyn.nn.adapters\nassert 'flax' in sys.modules\n"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
