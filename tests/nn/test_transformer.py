"""The transformer against its formulas in NumPy, its symmetries, dropout, observables, precision and sizes."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import checkify

from jaxdyn.errors import UsageError
from jaxdyn.nn import OBSERVABLES, Shape, count, encoder_lm, gpt2, network, read_out, tree_network
from tests.nn.plain_transformer import forward, random_params

SMALL = {"vocabulary": 11, "width": 8, "hidden": 12, "layers": 2, "heads": 2, "dtype": "float64"}
TOKENS = np.random.default_rng(5).integers(0, 11, (2, 6)).astype(np.int32)
PRESETS = {
    "encoder_lm": encoder_lm(11, width=8, hidden=12, layers=2, dtype="float64"),
    "gpt2": gpt2(11, width=8, layers=2, heads=2, length=7, dtype="float64"),
    "tree_network": tree_network(11, 3, width=8, hidden=10, dtype="float64"),
}
CHOICES = {
    "rotary": Shape(**SMALL, position="rotary", norm="pre", activation="gelu"),
    "bare": Shape(**SMALL, norm="none", activation="linear", project=False, attention_bias=False, head_bias=False),
    "exp": Shape(**SMALL, attention="exp", position="learned", length=6, tied=True, causal=False),
    "sink": Shape(**SMALL, position="alibi", attention="sink_bias", norm="pre"),
    "linear": Shape(**(SMALL | {"width": 9, "heads": 1}), attention="linear", norm="none", position="sinusoidal", scale=0.3),
}


def built(s, size=0.4):
    net = network(s)
    return net, random_params(net.init, size=size, dtype=s.dtype)


@pytest.mark.thinned
@pytest.mark.parametrize("name", [*PRESETS, *CHOICES])
def test_logits_and_observables_are_those_of_the_formulas(x64, name):
    s = (PRESETS | CHOICES)[name]
    net, params = built(s)
    of_weights = ("stable_rank", "cosine") if name in ("encoder_lm", "gpt2") else ()
    watched = ("attention", "inputs", "hidden", *of_weights, *(["entropy"] if s.attention == "softmax" else []))
    logits, seen = jax.jit(lambda p, t: net.apply(p, t, observe=watched))(params, TOKENS)
    expected, inputs, units, attention = forward(s, params, TOKENS)
    np.testing.assert_allclose(logits, expected, rtol=1e-10, atol=1e-11)
    np.testing.assert_allclose(seen["inputs"], inputs, rtol=1e-10, atol=1e-11)
    np.testing.assert_allclose(seen["hidden"], units, rtol=1e-10, atol=1e-11)
    np.testing.assert_allclose(seen["attention"], attention, rtol=1e-10, atol=1e-12)
    n, depth = TOKENS.shape[1], s.layers
    assert logits.shape == (2, n, s.logits) and seen["attention"].shape == (depth, 2, s.heads, n, n)
    assert seen["inputs"].shape == (depth + 1, 2, n, s.width) and seen["hidden"].shape == (depth, 2, n, s.hidden)
    if s.attention == "softmax":
        positive = np.where(attention > 0, attention, 1)
        np.testing.assert_allclose(seen["entropy"], -np.sum(positive * np.log(positive), -1), rtol=1e-9, atol=1e-12)
    for layer in range(depth if of_weights else 0):
        sizes = np.linalg.svd(params["blocks"]["inner"][layer], compute_uv=False)
        np.testing.assert_allclose(seen["stable_rank"][layer], np.sum(sizes**2) / sizes[0] ** 2, rtol=1e-10)
    for i, rows in enumerate([params["embed"], *params["blocks"]["outer"]] if of_weights else []):
        unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        cosines = np.abs(unit @ unit.T)[~np.eye(len(unit), dtype=bool)]
        np.testing.assert_allclose(seen["cosine"][i], cosines.mean(), rtol=1e-10)


@pytest.fixture(scope="module")
def plain():
    """One compiled network for many tests."""
    with jax.enable_x64(True):
        net, params = built(CHOICES["rotary"])
        return net, params, jax.jit(net.apply)


def test_asking_for_nothing_gives_bare_logits_also_without_jit(x64):
    s = dataclasses.replace(CHOICES["bare"], layers=1)
    net, params = built(s)
    logits = net.apply(params, TOKENS)
    assert isinstance(logits, jax.Array)
    np.testing.assert_allclose(logits, forward(s, params, TOKENS)[0], rtol=1e-10, atol=1e-11)


def test_unknown_observables_are_refused_in_words(plain):
    net, params, _ = plain
    with pytest.raises(UsageError, match="cannot observe logits, loss: it is among attention, entropy, inputs, hidden"):
        net.apply(params, TOKENS, observe=("loss", "entropy", "logits"))


def test_trunk_and_read_out_are_apply(x64):
    for s in (CHOICES["rotary"], CHOICES["bare"], CHOICES["exp"]):
        net, params = built(s)
        matrix, shift = read_out(params)
        expected, inputs, *_ = forward(s, params, TOKENS)
        assert matrix.shape == (11, 8) and shift.shape == (11,) and (matrix is params["embed"]) == s.tied
        np.testing.assert_allclose(inputs[-1] @ matrix.T + shift, expected, rtol=1e-12, atol=1e-12)
        if s is CHOICES["exp"]:
            np.testing.assert_allclose(jax.jit(net.trunk)(params, TOKENS), inputs[-1], rtol=1e-10, atol=1e-11)


def test_a_later_token_leaves_earlier_logits_alone(x64, plain):
    _, params, run = plain
    other = TOKENS.copy()
    other[:, 4] = (other[:, 4] + 3) % 11
    before, after = run(params, TOKENS), run(params, other)
    np.testing.assert_allclose(before[:, :4], after[:, :4], rtol=1e-12, atol=1e-13)
    assert np.all(np.abs(before[:, 4:] - after[:, 4:]).max(-1) > 1e-6)


@pytest.mark.parametrize("position", ["none", "rotary"])
def test_without_positions_and_mask_logits_move_with_their_tokens(x64, position):
    net, params = built(Shape(**SMALL, causal=False, position=position, length=6))
    run, order = jax.jit(net.apply), np.array([3, 0, 5, 1, 4, 2])
    difference = np.abs(np.asarray(run(params, TOKENS[:, order])) - np.asarray(run(params, TOKENS))[:, order]).max()
    assert difference < 1e-12 if position == "none" else difference > 1e-3


def test_vmap_over_weights_is_the_loop(x64):
    s = CHOICES["bare"]
    net = network(s)
    many = [random_params(net.init, seed) for seed in range(3)]
    together = jax.jit(jax.vmap(net.apply, (0, None)))(jax.tree.map(lambda *a: np.stack(a), *many), TOKENS)
    for logits, params in zip(together, many, strict=True):
        np.testing.assert_allclose(logits, forward(s, params, TOKENS)[0], rtol=1e-10, atol=1e-11)


@pytest.mark.slow
def test_vmap_over_seeds_is_the_loop():
    net = network(encoder_lm(11, width=8, hidden=12, layers=2))

    def run(seed):
        params = net.init(jax.random.fold_in(jax.random.key(0), seed))
        return params, net.apply(params, TOKENS)

    together = jax.jit(jax.vmap(run))(jnp.arange(2))
    alone = jax.jit(run)
    for seed in range(2):
        for many, one in zip(jax.tree.leaves(together), jax.tree.leaves(alone(seed)), strict=True):
            np.testing.assert_allclose(many[seed], one, rtol=2e-6, atol=2e-6)
    assert np.abs(together[1][0] - together[1][1]).max() > 0.01


def size(s):
    return count(jax.eval_shape(network(s).init, jax.random.key(0)))


def test_numbers_of_weights_are_those_counted_by_hand():
    assert size(gpt2(50_257)) == 124_439_808
    v, d = 28_782, 200
    attention, mlp, norms = d * 3 * d + 3 * d + d * d + d, d * d + d + d * d + d, 2 * 2 * d
    assert size(encoder_lm(v)) == v * d + attention + mlp + norms + d * v + v == 11_783_582
    assert size(encoder_lm(v, layers=5)) == 2 * v * d + v + 5 * (attention + mlp + norms)
    v, d, m, classes = 20, 16, 80, 5
    layer = d * 3 * d + d * m + m + m * d + d + 2 * 2 * d
    assert size(tree_network(v, classes, width=d)) == v * d + 3 * layer + d * classes + classes


def test_learned_positions_end():
    net = network(Shape(**(SMALL | {"dtype": "float32"}), position="learned", length=1))
    params = jax.eval_shape(net.init, jax.random.key(0))
    assert jax.eval_shape(net.apply, params, TOKENS[:, :1]).shape == (2, 1, 11)
    with pytest.raises(UsageError, match=r"learned 1 positions \(length\), got 6 tokens"):
        jax.eval_shape(net.apply, params, TOKENS)


@pytest.mark.parametrize("call", ["apply", "trunk"])
def test_known_numbers_that_are_no_tokens_are_refused_and_traced_ones_found_by_checkify(x64, call):
    net, params = built(dataclasses.replace(CHOICES["bare"], layers=1))
    run = getattr(net, call)
    for wrong, words in (
        (TOKENS + 3, "11 in tokens is not allowed: it is a number from 0 to 10"),
        (TOKENS - 5, "-5 in tokens is not allowed"),
        (TOKENS * 1.0, r"tokens=float64\[2,6\] is not allowed: it is an array of whole numbers"),
        (TOKENS > 3, r"tokens=bool\[2,6\] is not allowed: it is an array of whole numbers"),
        (TOKENS[:, :0], "its last axis has a length of 1 or more"),
        (TOKENS[0, 0], "it has one axis or more"),
    ):
        with pytest.raises(UsageError, match=words):
            run(params, wrong)
    looked = jax.jit(checkify.checkify(lambda t: run(params, t), errors=checkify.index_checks))
    assert looked(TOKENS)[0].get() is None and "index 13 is out of bounds" in looked(np.where(TOKENS == 8, 13, TOKENS))[0].get()


@pytest.mark.thinned
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"layers": 3}, "they have 3 layers, layers=2"),
        ({"vocabulary": 12}, r"embed.*\(12, 8\)"),
        ({"hidden": 5}, r"inner.*\(8, 5\)"),
        ({"tied": True}, "head"),
    ],
)
def test_weights_of_another_network_are_refused(x64, change, words):
    s = CHOICES["rotary"]
    _, params = built(dataclasses.replace(s, **change))
    with pytest.raises(UsageError, match=f"^these weights are of another network: .*{words}") as error:
        network(s).apply(params, TOKENS)
    assert "\n" not in str(error.value) and "http" not in str(error.value)


def test_uniform_attention_of_35_tokens_has_the_known_mean_entropy(x64):
    net, params = built(encoder_lm(11, width=8, hidden=4, dtype="float64"))
    for name in ("qkv", "qkv_bias"):
        params["blocks"][name] = np.zeros_like(params["blocks"][name])
    tokens = np.random.default_rng(0).integers(0, 11, (2, 35))
    _, seen = jax.jit(lambda p, t: net.apply(p, t, observe=("entropy",)))(params, tokens)
    assert float(jnp.mean(seen["entropy"])) == pytest.approx(np.log(np.arange(1, 36)).sum() / 35, rel=1e-12)
    assert float(jnp.mean(seen["entropy"])) == pytest.approx(2.6325, abs=5e-5)
    np.testing.assert_allclose(seen["entropy"][0, 1, 0], np.log(np.arange(1, 36)), atol=1e-12)


DROP = Shape(**(SMALL | {"layers": 1}), norm="none", activation="linear", dropout=0.25)


def keyed(s, params, keys):
    """Last residual streams of one sequence under many keys, and without one."""
    net = network(s)
    return np.asarray(jax.jit(lambda p: jax.lax.map(lambda k: net.trunk(p, TOKENS[:1], key=k)[0], keys))(params))


@pytest.mark.thinned
@pytest.mark.parametrize("place", ["attention", "residual", "mlp"])
def test_dropout_keeps_the_mean(x64, place):
    """Without norm and activation the stream is affine in what is dropped, so its mean over keys is the stream without dropout."""
    _, params = built(DROP)
    streams = keyed(dataclasses.replace(DROP, drops=(place,)), params, jax.random.split(jax.random.key(1), 3000))
    error = streams.mean(0) - forward(DROP, params, TOKENS[:1])[1][-1, 0]
    z = error / (streams.std(0) / 3000**0.5)
    assert streams.std(0).min() > 1e-3 and np.abs(z).max() < 5


def test_dropout_after_the_embedding_scales_what_it_keeps(x64):
    """All weights that write are zero, so that the last stream is the dropped embedding."""
    _, params = built(DROP)
    silent = params | {"blocks": jax.tree.map(np.zeros_like, params["blocks"])}
    streams = keyed(dataclasses.replace(DROP, drops=("embedding",)), silent, jax.random.split(jax.random.key(2), 400))
    kept = streams != 0
    np.testing.assert_allclose(streams[kept], np.broadcast_to(params["embed"][TOKENS[0]] / 0.75, streams.shape)[kept], rtol=1e-12)
    assert abs(kept.mean() - 0.75) < 5 * (0.75 * 0.25 / kept.size) ** 0.5


def test_dropout_is_a_function_of_its_key(x64):
    """Without a key there is none: the presets have dropout, and their logits above are those of the formulas."""
    assert all(PRESETS[name].dropout > 0 for name in ("gpt2", "encoder_lm"))
    net, params = built(dataclasses.replace(PRESETS["gpt2"], dropout=0.5))
    run = jax.jit(lambda p, k: net.apply(p, TOKENS, key=k))
    one, again, two = (np.asarray(run(params, jax.random.key(i))) for i in (0, 0, 1))
    assert np.array_equal(one, again) and np.abs(one - two).min() > 0


def test_every_layer_and_branch_drops_by_itself(x64):
    """Each branch writes 1: the stream minus the embedding counts those kept, 4 in 2 layers, as a binomial law does."""
    s = dataclasses.replace(DROP, layers=2, dropout=0.5, drops=("residual",))
    _, params = built(s)
    blocks = jax.tree.map(np.zeros_like, params["blocks"])
    blocks |= {name: np.ones_like(blocks[name]) for name in ("out_bias", "outer_bias")}
    streams = keyed(s, params | {"blocks": blocks}, jax.random.split(jax.random.key(3), 500))
    kept = (streams - params["embed"][TOKENS[0]]) / 2
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
@pytest.mark.parametrize("name", ["encoder_lm", "gpt2", "exp"])
def test_single_precision_stays_single_inside_x64(x64, name):
    """No array of start, run with dropout, gradient and observables is float64 (scalars may be)."""
    s = dataclasses.replace((PRESETS | CHOICES)[name], dtype="float32", dropout=0.1)
    net = network(s)

    def everything(key):
        def loss(p):
            logits, seen = net.apply(p, TOKENS, key=key, observe=tuple(OBSERVABLES))
            return jnp.mean(jax.nn.logsumexp(logits, -1)), seen

        params = net.init(key)
        return params, jax.grad(loss, has_aux=True)(params)

    jaxpr, out = jax.make_jaxpr(everything, return_shape=True)(jax.random.key(0))
    wide = [e for e in walk(jaxpr.jaxpr) for v in e.outvars if getattr(v.aval, "dtype", None) == np.float64 and v.aval.ndim]
    assert not wide
    assert all(leaf.dtype == np.float32 for leaf in jax.tree.leaves(out))
