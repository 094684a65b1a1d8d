"""The transformer against NumPy, its scan against layers written out, its symmetries, dropout, observables and precision."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import checkify

from jaxdyn import Code
from jaxdyn.errors import UsageError
from jaxdyn.nn import OBSERVABLES, Transformer, count, encoder_lm, gpt2, read_out, tree_network
from jaxdyn.nn.transformer import apply, init, network, parts, placed, trunk
from jaxdyn.text import language
from tests.nn import plain_transformer
from tests.nn.drawn import weights
from tests.nn.families import FAMILIES

SMALL = Transformer(vocabulary=11, width=12, layers=3, heads=3, hidden=10, std=0.7, dtype="float64")
apply = jax.jit(apply, static_argnums=0, static_argnames="observe")  # as one program: by itself every operation would be compiled

KINDS = [  # of attention and positions
    {"position": "alibi", "attention": "sink_bias", "groups": 1},
    {"position": "learned", "length": 9, "attention": "zero_sink"},
    {"position": "none", "attention": "sigmoid", "width": 9},
    {"attention": "relu"},
    {"sink_token": True},
    {"sink_token": True, "position": "learned", "length": 8, "tied": True, "scan": False},
    {"repeats": 2},
    {"repeats": 3, "order": "all", "scan": False, "layers": 2},
    {"norm": "layer", "norm_place": "post", "mlp": "plain", "activation": "linear", "position": "sinusoidal", "scale": 0.3},
    {"norm": "none", "attention": "linear", "project": False, "biases": ("head", "v"), "outputs": 4, "std": 0.2},
    {"attention": "exp", "causal": False, "query_key_norm": True, "activation": "quadratic", "std": 0.3},
    {"causal": False, "position": "alibi", "sees_itself": False, "norm_place": "post"},
    {"sees_itself": False, "output_gate": True, "residual": 0.5, "skip": 0.9},
    {"mlp": "none", "hidden": None, "parallel": False, "window": 3},
    {"parallel": True, "mlp": "plain", "activation": "tanh", "residual": 0.3, "skip": -1.0},
]
PRESETS = {
    "encoder_lm": encoder_lm(11, width=8, hidden=12, layers=2, std=0.4, dtype="float64"),
    "gpt2": gpt2(11, width=8, layers=2, heads=2, length=7, std=0.4, dtype="float64"),
    "tree_network": tree_network(11, 3, width=8, hidden=10, std=0.4, dtype="float64"),
}


def own(shape, params, row):
    """The oracle's logits, streams and attention of one sequence."""
    return plain_transformer.forward(shape, jax.tree.map(np.asarray, params), np.asarray(row))


def tokens(b=2, n=7, v=11):
    return np.random.default_rng(0).integers(0, v, (b, n))


@pytest.mark.thinned
@pytest.mark.parametrize("change", [{}, {"groups": 1}, {"tied": True}, {"heads": 2, "groups": 2}, {"scan": False}, *KINDS])
def test_numpy_forward(change, x64):
    shape = dataclasses.replace(SMALL, **change)
    params = weights(shape)
    ours, seen = apply(shape, params, tokens(), observe=("attention", "inputs"))
    logits, streams, maps = zip(*(own(shape, params, row) for row in tokens()), strict=True)
    np.testing.assert_allclose(ours, logits, atol=1e-10)
    np.testing.assert_allclose(seen["inputs"], np.stack(streams, 1), atol=1e-10)
    np.testing.assert_allclose(seen["attention"], np.stack(maps, 1), atol=1e-10)
    assert np.std(logits) > 0.1


@pytest.mark.thinned
@pytest.mark.parametrize("name", PRESETS)
def test_numpy_forward_of_the_presets(name, x64):
    """Their dropout needs a key: without one, logits are those of the formulas."""
    shape = PRESETS[name]
    params = weights(shape)
    logits = np.stack([own(shape, params, row)[0] for row in tokens()])
    np.testing.assert_allclose(apply(shape, params, tokens()), logits, atol=1e-10)
    matrix, shift = read_out(params)
    streams = jax.jit(network(shape).trunk)(params, tokens())
    np.testing.assert_allclose(streams @ matrix.T + shift, logits, atol=1e-10)
    assert (matrix is params["embed"]) == shape.tied


@pytest.mark.thinned
@pytest.mark.parametrize("name", FAMILIES)
def test_numpy_forward_of_the_families(name, x64):
    shape = dataclasses.replace(SMALL, **{"width": 12, "groups": 1} | FAMILIES[name])
    params = weights(shape)
    ours = apply(shape, params, tokens())
    plain = jax.tree.map(np.asarray, params)
    theirs = np.stack([plain_transformer.logits(shape, plain, row) for row in np.asarray(tokens())])
    np.testing.assert_allclose(ours, theirs, atol=1e-10)
    assert np.std(theirs) > 0.1 and {f"{name}_bias" for name in shape.biases} <= set(params["blocks"])


@pytest.mark.slow
def test_scanned_and_written_out_layers_are_one_network(x64):
    net, plain = network(SMALL), network(dataclasses.replace(SMALL, scan=False))
    params, names = jax.jit(net.init)(jax.random.key(0)), ("attention", "entropy", "inputs")
    (a, seen_a), (b, seen_b) = (jax.jit(lambda p, n=n: n.apply(p, tokens(), observe=names))(params) for n in (net, plain))
    np.testing.assert_allclose(a, b, atol=1e-12)
    for name in names:
        np.testing.assert_allclose(seen_a[name], seen_b[name], atol=1e-12)
    assert seen_a["attention"].shape == (3, 2, 3, 7, 7) and seen_a["inputs"].shape == (4, 2, 7, 12)
    np.testing.assert_allclose(jnp.sum(seen_a["attention"], -1), 1)
    np.testing.assert_array_equal(seen_a["inputs"][0], params["embed"][tokens()])


@pytest.mark.slow
def test_a_sink_token_is_a_trained_token_before_the_text(x64):
    shape = dataclasses.replace(SMALL, sink_token=True)
    params = weights(shape)
    wider = dataclasses.replace(SMALL, vocabulary=12, outputs=11)
    given = {name: x for name, x in params.items() if name != "sink_token"}
    given |= {"embed": np.concatenate([params["embed"], np.asarray(params["sink_token"])[None]])}
    explicit = np.concatenate([np.full((2, 1), 11), tokens()], 1)
    ours, seen = apply(shape, params, tokens(), observe=("attention",))
    theirs, expected = apply(wider, given, explicit, observe=("attention",))
    np.testing.assert_allclose(ours, np.asarray(theirs)[:, 1:], atol=1e-12)
    np.testing.assert_allclose(seen["attention"], expected["attention"], atol=1e-12)
    assert seen["attention"].shape == (3, 2, 3, 8, 8)
    gradient = jax.jit(jax.grad(lambda p: jnp.sum(apply(shape, p, tokens()) ** 2)))(params)
    assert np.max(np.abs(gradient["sink_token"])) > 1e-6, "it is trained"


@pytest.mark.parametrize("change", [{}, {"sink_token": True, "position": "learned", "length": 8}])
def test_the_parts_are_the_whole(change, x64):
    shape = dataclasses.replace(SMALL, **change)
    params = weights(shape)
    enter, block, last = map(jax.jit, parts(shape))
    x = enter(params, tokens())
    for layer in range(shape.layers):
        x = block({name: np.asarray(w)[layer] for name, w in params["blocks"].items()}, x)
    np.testing.assert_allclose(last(params, x), apply(shape, params, tokens()), atol=1e-12)


@pytest.mark.slow
def test_repeated_blocks_are_an_unrepeated_network_with_equal_weights(x64):
    shape = dataclasses.replace(SMALL, repeats=2)
    params = weights(shape)
    assert count(params) == count(weights(SMALL))
    twice = params | {"blocks": jax.tree.map(lambda w: jnp.asarray(np.repeat(w, 2, 0)), params["blocks"])}
    deep = dataclasses.replace(SMALL, layers=6)

    def loss(shape, p):
        return language.loss(network(shape), p, tokens(), tokens())

    (a, da), (b, db) = (jax.jit(jax.value_and_grad(lambda p, s=s: loss(s, p)))(p) for s, p in ((shape, params), (deep, twice)))
    np.testing.assert_allclose(a, b, rtol=1e-12)
    for name, w in da["blocks"].items():
        both = np.asarray(db["blocks"][name]).reshape(w.shape[0], 2, *w.shape[1:]).sum(1)
        np.testing.assert_allclose(w, both, rtol=1e-9, atol=1e-14)
    other = dataclasses.replace(shape, order="all")
    assert np.max(np.abs(np.asarray(apply(shape, params, tokens())) - apply(other, params, tokens()))) > 1e-3
    assert jax.eval_shape(lambda p: language.evaluate(network(shape), p, tokens(), 3), params).entropy.shape == (6,)


def size_of_program(shape):
    params = jax.eval_shape(lambda: init(shape, jax.random.key(0)))
    gradient = jax.grad(lambda p, t: jnp.sum(apply(shape, p, t)))
    return len(jax.jit(gradient).lower(params, jnp.zeros((1, 8), jnp.int32)).as_text())


@pytest.mark.slow
def test_a_scanned_program_is_as_long_for_any_depth():
    shallow, deep = (dataclasses.replace(SMALL, layers=n, dtype="float32") for n in (2, 24))
    assert size_of_program(deep) < 1.05 * size_of_program(shallow)
    written = dataclasses.replace(deep, scan=False)
    assert size_of_program(written) > 5 * size_of_program(deep)


def test_later_tokens_change_nothing_before_them(x64):
    params, t = weights(SMALL), tokens()
    changed = np.where(np.arange(7) == 4, (t + 1) % 11, t)
    a, b = (np.asarray(apply(SMALL, params, x)) for x in (t, changed))
    np.testing.assert_allclose(a[:, :4], b[:, :4], atol=1e-13)
    assert np.min(np.max(np.abs(a - b)[:, 4:], -1)) > 1e-6


def test_the_start_is_gaussian_and_the_precision_the_shapes():
    shape = Transformer(vocabulary=300, width=64, layers=2, heads=4, hidden=160, dtype="bfloat16")
    params = jax.jit(init, static_argnums=0)(shape, jax.random.key(0))
    assert {x.dtype.name for x in jax.tree.leaves(params)} == {"bfloat16"}
    assert jax.eval_shape(lambda p: apply(shape, p, tokens(v=300)), params).dtype == jnp.bfloat16
    for name in ("q", "down"):
        w = np.asarray(params["blocks"][name], np.float32)
        assert abs(w.std() / 0.02 - 1) < 0.03 and abs(w.mean()) < 1e-3
    np.testing.assert_array_equal(params["blocks"]["mlp_norm"], 1)


def test_far_positions_are_told_apart_in_bfloat16():
    shape = Transformer(vocabulary=3, width=8, layers=1, heads=1, hidden=8, std=1.0, dtype="bfloat16")
    params = weights(shape)
    wide = jax.tree.map(lambda x: x.astype(jnp.float32), params)
    t = jnp.zeros((1, 400), jnp.int32).at[0, -3].set(1)
    attention = jax.jit(lambda s, p: trunk(s, p, t, observe=("attention",))[1], static_argnums=0)
    low, high = attention(shape, params), attention(dataclasses.replace(shape, dtype="float32"), wide)
    np.testing.assert_allclose(low["attention"].astype(jnp.float32)[..., -1, :], high["attention"][..., -1, :], atol=0.05)


@pytest.mark.slow
def test_it_serves_as_a_language_model():
    net = network(Transformer(vocabulary=11, width=8, layers=1, heads=2, hidden=12))
    params = jax.jit(net.init)(jax.random.key(0))
    t = tokens()

    @jax.jit
    def both(params):
        logits = jax.nn.log_softmax(net.apply(params, t))
        return language.loss(net, params, t, t), -jnp.mean(jnp.take_along_axis(logits, t[..., None], -1))

    np.testing.assert_allclose(*both(params), rtol=1e-5)
    assert np.isfinite(jax.jit(lambda p: language.evaluate(net, p, t, 3).loss)(params))


def test_known_numbers_that_are_no_tokens_are_refused(x64):
    for change, wrong in (({}, 11), ({}, -1), ({"sink_token": True}, 11)):
        shape = dataclasses.replace(SMALL, layers=1, **change)
        params, t = weights(shape), tokens()
        t[1, 3] = wrong
        for call in (network(shape).apply, network(shape).trunk, lambda p, t, s=shape: parts(s)[0](p, t)):
            with pytest.raises(UsageError, match=f"{wrong} in tokens is not allowed: it is a number from 0 to 10"):
                call(params, t)
    for t in (tokens() * 1.0, tokens() > 3, tokens()[:, :0], np.int64(3)):
        with pytest.raises(UsageError, match="tokens=.* is not allowed"):
            network(SMALL).apply(weights(SMALL), t)


@pytest.mark.parametrize("token", [False, True])
def test_traced_numbers_beyond_the_vocabulary_read_the_last_embedding_and_are_found_by_checkify(token, x64):
    shape = dataclasses.replace(SMALL, layers=1, sink_token=token)
    params, last = weights(shape), np.asarray([[3, 10]])
    run = jax.jit(checkify.checkify(lambda t: network(shape).apply(params, t), errors=checkify.index_checks))
    fine, expected = run(last)
    wrong, clamped = run(last + [[0, 2]])
    assert fine.get() is None and "index 12 is out of bounds" in wrong.get()
    np.testing.assert_allclose(clamped, expected, rtol=1e-12)


@pytest.mark.parametrize(("position", "words"), [(9, "9 in positions"), (-1, "-1 in positions")])
def test_positions_beyond_the_learned_ones_are_refused(position, words, x64):
    shape = dataclasses.replace(SMALL, position="learned", length=9)
    with pytest.raises(UsageError, match=f"{words} is not allowed: it is a number from 0 to 8 \\(length=9\\)"):
        placed(shape, weights(shape), np.asarray([0, position]))


KINDS_OF_WEIGHTS = {  # what a network has more, or others
    "head_bias": {"biases": ("head",)},
    "blocks/output_gate": {"output_gate": True},
    "blocks/k_norm": {"query_key_norm": True},
    "blocks/attention_norm": {"norm": "none"},
    "blocks/attention_norm_bias": {"norm": "layer"},
    "norm": {"norm_place": "post"},
    "blocks/gate": {"mlp": "plain"},
    "blocks/down": {"mlp": "none", "hidden": None},
    "blocks/o": {"project": False},
    "head": {"tied": True},
    "position": {"position": "learned", "length": 9},
    "sink_token": {"sink_token": True},
    "blocks/sink": {"attention": "sink_bias"},
    "blocks/k": {"groups": 1},
    "blocks/up": {"hidden": 7},
    "blocks/q_bias": {"biases": ("q",)},
}


@pytest.mark.parametrize("path", KINDS_OF_WEIGHTS)
def test_weights_of_another_kind_of_network_are_refused_in_both_directions(path, x64):
    other = dataclasses.replace(SMALL, **KINDS_OF_WEIGHTS[path])
    for shape, params in ((SMALL, weights(other)), (other, weights(SMALL))):
        with pytest.raises(UsageError, match="these weights are of another network: of .* they have .*, this one has") as error:
            network(shape).apply(params, tokens())
        assert "\n" not in str(error.value)


def test_entries_of_ones_own_next_to_the_weights_are_left_alone(x64):
    params = weights(SMALL)
    more = params | {"mine": jnp.ones(3), "blocks": params["blocks"] | {"adapter": jnp.ones((3, 2))}}
    np.testing.assert_array_equal(apply(SMALL, more, tokens()), apply(SMALL, params, tokens()))
    for wrong in ({"embed": params["embed"]}, params | {"blocks": 3}, None):
        with pytest.raises(UsageError, match="is not allowed: it is what init gives"):
            network(SMALL).trunk(wrong, tokens())


def test_scores_that_nobody_sees_spoil_no_gradient():
    """ALiBi's term of later keys is positive: its exponential is infinite, where the mask leaves none of it."""
    shape = Transformer(vocabulary=5, width=16, heads=8, hidden=4, position="alibi", attention="exp")
    params = weights(shape)
    t = np.zeros((1, 200), np.int32)
    gradient = jax.jit(jax.grad(lambda p: jnp.mean(network(shape).apply(p, t) ** 2)))(params)
    assert all(np.all(np.isfinite(g)) for g in jax.tree.leaves(gradient))


@pytest.mark.parametrize("kind", ["softmax", "exp", "sigmoid", "relu", "linear", "zero_sink"])
def test_entropies_are_those_of_shares(kind, x64):
    shape = dataclasses.replace(SMALL, attention=kind, layers=1)
    _, seen = apply(shape, weights(shape), tokens(), observe=("attention", "entropy"))
    b = np.asarray(seen["attention"])
    if kind == "linear":
        assert np.all(np.isnan(seen["entropy"]))
        return
    shares = b / np.maximum(b.sum(-1, keepdims=True), 1e-300) if kind != "zero_sink" else b
    np.testing.assert_allclose(seen["entropy"], -(shares * np.log(np.where(shares > 0, shares, 1))).sum(-1), atol=1e-12)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"vocabulary": 20}, r"of embed they have shape \(11, 12\), this one has shape \(20, 12\)"),
        ({"layers": 4}, r"of blocks/attention_norm they have shape \(3, 12\), this one has shape \(4, 12\)"),
        ({"layers": 2, "scan": False}, "of blocks/attention_norm they have shape"),
        ({"length": 12}, "of position they have shape"),
    ],
)
def test_weights_of_another_network_are_refused(change, words, x64):
    shape = dataclasses.replace(SMALL, position="learned", length=9)
    with pytest.raises(UsageError, match=f"these weights are of another network: .*{words}"):
        network(dataclasses.replace(shape, **change)).apply(weights(shape), tokens())


def test_more_tokens_than_learned_positions_are_refused(x64):
    shape = dataclasses.replace(SMALL, position="learned", length=5)
    with pytest.raises(UsageError, match="learned 5 positions"):
        apply(shape, weights(shape), tokens())


def test_unknown_observables_are_refused_in_words(x64):
    with pytest.raises(UsageError, match="cannot observe logits, loss: it is among attention, entropy, inputs, hidden"):
        network(SMALL).apply(weights(SMALL), tokens(), observe=("loss", "entropy", "logits"))


@pytest.mark.parametrize("position", ["none", "rotary"])
def test_without_positions_and_mask_logits_move_with_their_tokens(x64, position):
    shape = dataclasses.replace(SMALL, causal=False, position=position)
    params, order = weights(shape), np.array([3, 0, 5, 1, 6, 4, 2])
    moved, fixed = (np.asarray(apply(shape, params, t)) for t in (tokens()[:, order], tokens()))
    difference = np.abs(moved - fixed[:, order]).max()
    assert difference < 1e-12 if position == "none" else difference > 1e-3


@pytest.mark.slow
def test_vmap_over_seeds_is_the_loop():
    net = network(encoder_lm(11, width=8, hidden=12, layers=2))

    def run(seed):
        params = net.init(jax.random.fold_in(jax.random.key(0), seed))
        return params, net.apply(params, tokens())

    together = jax.jit(jax.vmap(run))(jnp.arange(2))
    alone = jax.jit(run)
    for seed in range(2):
        for many, one in zip(jax.tree.leaves(together), jax.tree.leaves(alone(seed)), strict=True):
            np.testing.assert_allclose(many[seed], one, rtol=2e-6, atol=2e-6)
    assert np.abs(together[1][0] - together[1][1]).max() > 0.01


NUMBERS = {"scale": 1.3, "skip": 0.9, "residual": 0.7, "epsilon": 0.1, "base": 50.0, "std": 0.4, "window": 3, "dropout": 0.25}


def test_traced_numbers_are_the_known_ones(x64):
    """One program serves all values, and so does vmap over them."""
    key = jax.random.key(7)

    def run(numbers):
        shape = dataclasses.replace(SMALL, layers=1, **numbers)
        return network(shape).apply(init(shape, jax.random.key(0)), tokens(), key=key)

    other = {name: value + 1 if name == "window" else value * 0.9 for name, value in NUMBERS.items()}
    both = jax.jit(jax.vmap(run))({name: jnp.asarray([NUMBERS[name], other[name]]) for name in NUMBERS})
    for i, numbers in enumerate((NUMBERS, other)):
        np.testing.assert_allclose(both[i], jax.jit(lambda n=numbers: run(n))(), rtol=1e-9, atol=1e-12)


def test_a_switch_between_kinds_is_each_of_them(x64):
    kinds, activations = ("softmax", "sigmoid", "sink_bias"), ("relu", "quadratic")

    def run(i, j):
        shape = dataclasses.replace(SMALL, layers=1, attention=Code(i, kinds), activation=Code(j, activations))
        return network(shape).apply(params, tokens())

    params = weights(dataclasses.replace(SMALL, layers=1, attention="sink_bias"))
    for i, kind in enumerate(kinds):
        shape = dataclasses.replace(SMALL, layers=1, attention=kind, activation=activations[i % 2])
        own_weights = (
            params if kind == "sink_bias" else params | {"blocks": {n: w for n, w in params["blocks"].items() if n != "sink"}}
        )
        np.testing.assert_allclose(jax.jit(run)(i, i % 2), apply(shape, own_weights, tokens()), rtol=1e-12)


def cubic(x):
    """An activation of one's own."""
    return x**3


def test_an_activation_of_ones_own_is_a_function_of_a_module(x64):
    shape = dataclasses.replace(SMALL, mlp="plain", activation="tests.nn.test_transformer:cubic", layers=1)
    params = weights(shape)
    plain_transformer.ACTIVATIONS["tests.nn.test_transformer:cubic"] = cubic
    np.testing.assert_allclose(apply(shape, params, tokens()[:1])[0], own(shape, params, tokens()[0])[0], rtol=1e-10)


def test_uniform_attention_of_35_tokens_has_the_known_mean_entropy(x64):
    shape = encoder_lm(11, width=8, hidden=4, dtype="float64")
    params = weights(shape)
    for name in ("q", "q_bias"):
        params["blocks"][name] = np.zeros_like(params["blocks"][name])
    text = np.random.default_rng(0).integers(0, 11, (2, 35))
    _, seen = apply(shape, params, text, observe=("entropy",))
    assert float(jnp.mean(seen["entropy"])) == pytest.approx(np.log(np.arange(1, 36)).sum() / 35, rel=1e-12)
    assert float(jnp.mean(seen["entropy"])) == pytest.approx(2.6325, abs=5e-5)
    np.testing.assert_allclose(seen["entropy"][0, 1, 0], np.log(np.arange(1, 36)), atol=1e-12)


BARE = {"norm": "none", "mlp": "plain", "activation": "linear", "biases": ("o", "down")}
DROP = dataclasses.replace(SMALL, **BARE, layers=1, heads=2, position="none", std=0.4, dropout=0.25)


def keyed(s, params, keys):
    """Last residual streams of one sequence under many keys, and without one."""
    net = network(s)
    return np.asarray(jax.jit(lambda p: jax.lax.map(lambda k: net.trunk(p, tokens()[:1], key=k)[0], keys))(params))


@pytest.mark.thinned
@pytest.mark.parametrize("place", ["attention", "residual", "mlp"])
def test_dropout_keeps_the_mean(x64, place):
    """Without norm and activation the stream is affine in what is dropped, so its mean over keys is the stream without dropout."""
    params = weights(DROP)
    streams = keyed(dataclasses.replace(DROP, drops=(place,)), params, jax.random.split(jax.random.key(1), 3000))
    error = streams.mean(0) - own(DROP, params, tokens()[0])[1][-1]
    z = error / (streams.std(0) / 3000**0.5)
    assert streams.std(0).min() > 1e-3 and np.abs(z).max() < 5


def test_dropout_after_the_embedding_scales_what_it_keeps(x64):
    """All weights that write are zero, so that the last stream is the dropped embedding."""
    params = weights(DROP)
    silent = params | {"blocks": jax.tree.map(np.zeros_like, params["blocks"])}
    streams = keyed(dataclasses.replace(DROP, drops=("embedding",)), silent, jax.random.split(jax.random.key(2), 400))
    kept = streams != 0
    np.testing.assert_allclose(streams[kept], np.broadcast_to(params["embed"][tokens()[0]] / 0.75, streams.shape)[kept], rtol=1e-12)
    assert abs(kept.mean() - 0.75) < 5 * (0.75 * 0.25 / kept.size) ** 0.5


def test_dropout_is_a_function_of_its_key(x64):
    assert all(PRESETS[name].dropout > 0 for name in ("gpt2", "encoder_lm"))
    shape = dataclasses.replace(PRESETS["gpt2"], dropout=0.5)
    net, params = network(shape), weights(shape)
    run = jax.jit(lambda p, k: net.apply(p, tokens(), key=k))
    one, again, two = (np.asarray(run(params, jax.random.key(i))) for i in (0, 0, 1))
    assert np.array_equal(one, again) and np.abs(one - two).min() > 0


def test_every_layer_and_branch_drops_by_itself(x64):
    """Each branch writes 1: the stream minus the embedding counts those kept, 4 in 2 layers, as a binomial law does."""
    s = dataclasses.replace(DROP, layers=2, dropout=0.5, drops=("residual",))
    params = weights(s)
    blocks = jax.tree.map(np.zeros_like, params["blocks"])
    blocks |= {name: np.ones_like(blocks[name]) for name in ("o_bias", "down_bias")}
    streams = keyed(s, params | {"blocks": blocks}, jax.random.split(jax.random.key(3), 500))
    kept = (streams - params["embed"][tokens()[0]]) / 2
    shares = [np.mean(np.isclose(kept, k)) for k in range(5)]
    assert sum(shares) == pytest.approx(1)
    np.testing.assert_allclose(shares, np.array([1, 4, 6, 4, 1]) / 16, atol=5 * 0.5 / kept.size**0.5)


def walk(jaxpr):
    """Every equation of a jaxpr, inner ones included."""
    for eqn in jaxpr.eqns:
        yield eqn
        for inner in jax.tree.leaves(list(eqn.params.values()), is_leaf=lambda p: hasattr(p, "eqns") or hasattr(p, "jaxpr")):
            inner = getattr(inner, "jaxpr", inner)
            if hasattr(inner, "eqns"):
                yield from walk(inner)


@pytest.mark.thinned
@pytest.mark.parametrize("name", ["encoder_lm", "gpt2", "llama"])
def test_single_precision_stays_single_inside_x64(x64, name):
    """No array of start, run with dropout, gradient and observables is float64 (scalars may be)."""
    s = dataclasses.replace((PRESETS | {"llama": SMALL})[name], dtype="float32", dropout=0.1)
    net = network(s)

    def everything(key):
        def loss(p):
            logits, seen = net.apply(p, tokens(), key=key, observe=tuple(OBSERVABLES))
            return jnp.mean(jax.nn.logsumexp(logits, -1)), seen

        params = net.init(key)
        return params, jax.grad(loss, has_aux=True)(params)

    jaxpr, out = jax.make_jaxpr(everything, return_shape=True)(jax.random.key(0))
    wide = [e for e in walk(jaxpr.jaxpr) for v in e.outvars if getattr(v.aval, "dtype", None) == np.float64 and v.aval.ndim]
    assert not wide
    assert all(leaf.dtype == np.float32 for leaf in jax.tree.leaves(out))
