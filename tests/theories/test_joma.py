"""JoMA: the one-block network and its letters against NumPy, runs to convergence, and extrapolation in the step size."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import scipy.special
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxdyn as jd
from jaxdyn import nn
from jaxdyn.instruments.moment import Batch
from jaxdyn.nn.attention import weights
from jaxdyn.theories.joma import convergence, model
from jaxdyn.theories.joma.extrapolation import extrapolated, halving_steps
from jaxdyn.theories.joma.letters import letters, lower, places
from tests.theories.joma.helpers import inside

KINDS, PHIS = model.ATTENTIONS, model.ACTIVATIONS
SOFTMAX = jd.Code.of("softmax", KINDS)
N, M, Q, D, K, O = 6, 4, 2, 7, 3, 2  # noqa: E741


def attention(x, z, kind, tau, a):
    e = x * np.exp(z / tau)
    return {"exp": e / a, "linear": x * z, "softmax": e / e.sum(-1, keepdims=True)}[kind]


def phi_and_slope(y, kind):
    cdf = 0.5 * (1 + scipy.special.erf(y / np.sqrt(2)))
    density = np.exp(-(y**2) / 2) / np.sqrt(2 * np.pi)
    index = PHIS.index(kind)
    values = [y, np.maximum(y, 0), np.tanh(y), y * cdf]
    slopes = [np.ones_like(y), (y > 0) * 1.0, 1 - np.tanh(y) ** 2, cdf + y * density]
    return values[index], slopes[index]


def example(seed, kind, phi, tau=0.7, normalizer=1.3):
    rng = np.random.default_rng(seed)
    tokens, queries = np.split(np.linalg.qr(rng.normal(size=(D, M + Q)))[0], [M], 1)
    params = model.Params(rng.normal(size=(D, K)), 0.5 + 0.3 * rng.normal(size=(Q, M)), rng.normal(size=(K, O)))
    x = rng.random((N, M))
    weight = rng.random(N)
    batch = model.Batch(x, rng.integers(0, Q, N), rng.normal(size=(N, O)), weight / weight.sum())
    block = model.Block(jnp.asarray(tokens), jnp.asarray(queries), jd.Code.of(kind, KINDS), jd.Code.of(phi, PHIS), tau, normalizer)
    return jax.tree.map(jnp.asarray, params), block, jax.tree.map(jnp.asarray, batch)


@pytest.mark.parametrize("kind", KINDS)
def test_attention_is_the_formula(x64, kind):
    rng = np.random.default_rng(KINDS.index(kind))
    x, z = jnp.asarray(rng.random((N, M))), jnp.asarray(rng.normal(size=(N, M)))
    want = attention(x, z, kind, 0.5, 1.7)
    assert np.allclose(model.attention(x, z, jd.Code.of(kind, KINDS), 0.5, 1.7), want, rtol=1e-14)
    traced = jax.jit(model.attention)(x, z, jd.Code.of(kind, KINDS), 0.5, 1.7)
    assert np.allclose(traced, want, rtol=1e-14)


@pytest.mark.slow
def test_softmax_attention_of_absent_tokens(x64):
    """Absent tokens get no attention, even with a huge logit, and the gradient stays finite."""
    x, z = jnp.array([0.0, 0.3, 0.7]), jnp.array([900.0, 1.0, -1.0])
    b = model.attention(x, z, SOFTMAX, 0.5)
    want = np.array([0.0, 0.3 * np.exp(2), 0.7 * np.exp(-2)])
    assert np.allclose(b, want / want.sum(), rtol=1e-14)
    slope = jax.jacobian(lambda z: model.attention(x, z, SOFTMAX, 0.5))(z)
    assert np.allclose(slope, (np.diag(b) - np.outer(b, b)) / 0.5, atol=1e-14)


@pytest.mark.parametrize("kind", PHIS)
def test_activations(x64, kind):
    y = np.linspace(-3, 3, 7)
    assert np.allclose(model.activation(jnp.asarray(y), jd.Code.of(kind, PHIS)), phi_and_slope(y, kind)[0], atol=1e-15)
    assert np.allclose(jax.jit(model.activation)(jnp.asarray(y), jd.Code.of(kind, PHIS)), phi_and_slope(y, kind)[0], atol=1e-15)


@jax.jit
def both(params, block, batch):
    grad = jax.grad(model.squared_loss)(params, block, batch)
    return grad, model.pre_activations(params, block, batch.x, batch.query), model.projected(params, block)


@settings(deadline=None, max_examples=12)
@given(kind=st.sampled_from(KINDS), phi=st.sampled_from(PHIS), seed=st.integers(0, 10**6))
def test_descent_directions_are_those_of_the_paper(kind, phi, seed):
    """The flow is dv = E[G b], dxi = E[G], dz = E[J_b^T sum_k G_k v_k], each query from its own samples."""
    with jax.enable_x64(True):
        params, block, batch = example(seed, kind, phi)
        grad, pre, v = both(params, block, batch)
        grad, pre, v, params, block, batch = jax.tree.map(np.asarray, (grad, pre, v, params, block, batch))
    b = attention(batch.x, params.z[batch.query], kind, block.tau, block.normalizer)
    assert np.allclose(v, block.tokens.T @ params.w)
    assert np.allclose(pre, b @ v + (block.queries.T @ params.w)[batch.query])
    h, slope = phi_and_slope(pre, phi)
    g = (batch.target - h @ params.a) @ params.a.T * slope
    assert np.allclose(-block.tokens.T @ grad.w, b.T @ (batch.weight[:, None] * g), atol=1e-12)
    want_z = np.zeros((Q, M))
    for i in range(N):
        whole = np.diag(b[i]) / block.tau
        softmax = whole - np.outer(b[i], b[i]) / block.tau
        jacobian = {"exp": whole, "linear": np.diag(batch.x[i]), "softmax": softmax}[kind]
        want_z[batch.query[i]] += batch.weight[i] * jacobian.T @ (v @ g[i])
    assert np.allclose(-grad.z, want_z, atol=1e-12)
    want_xi = np.stack([(batch.weight[:, None] * g)[batch.query == m].sum(0) for m in range(Q)])
    assert np.allclose(-block.queries.T @ np.asarray(grad.w), want_xi, atol=1e-12)


def test_weight_decay_adds_its_gradient(x64):
    params, block, batch = example(1, "exp", "tanh")
    gradient = jax.jit(jax.grad(model.squared_loss))
    plain, decayed = (gradient(params, block, batch, decay) for decay in (0.0, 0.3))
    assert np.allclose(decayed.w - plain.w, 0.3 * params.w) and np.allclose(decayed.z - plain.z, 0.3 * params.z)
    assert np.allclose(decayed.a, plain.a)


def test_cross_entropy_and_its_node_gradients(x64):
    params, block, batch = example(3, "softmax", "tanh")
    params = params._replace(a=None)
    target = np.eye(K)[np.arange(N) % K]
    batch = batch._replace(target=jnp.asarray(target))
    logits = np.tanh(np.asarray(jax.jit(model.pre_activations)(params, block, batch.x, batch.query)))
    p = scipy.special.softmax(logits, -1)
    loss = -(batch.weight * np.log(p[target == 1])).sum()
    assert np.isclose(jax.jit(model.cross_entropy)(params, block, batch), loss, rtol=1e-13)
    want = (target - p) * (1 - logits**2)
    assert np.allclose(jax.jit(model.node_gradients)(params, block, batch), want, atol=1e-13)
    b = attention(batch.x, params.z[batch.query], "softmax", 0.7, 1.0)
    assert np.allclose(jax.jit(model.mean_attention)(params, block, batch), batch.weight @ b)


@pytest.mark.parametrize("kind", ["softmax", "exp", "linear"])
def test_a_backward_pass_is_its_parts(x64, kind):
    params, block, batch = example(4, kind, "tanh")
    with pytest.raises(jd.UsageError, match="without upper layers has a=None"):
        model.backward(params, model.projected(params, block), block, batch)
    params, target = params._replace(a=None), np.random.default_rng(0).dirichlet(np.ones(K), N)
    batch = batch._replace(target=jnp.asarray(target))
    found = jax.jit(model.backward)(params, model.projected(params, block), block, batch)
    gradient = jax.jit(jax.grad(model.cross_entropy))(params, block, batch)
    chex.assert_trees_all_close(found.gradient, gradient, rtol=1e-11, atol=1e-14)
    np.testing.assert_allclose(found.b, jax.jit(model.attend)(params, block, batch.x, batch.query), rtol=1e-12)
    np.testing.assert_allclose(found.nodes, jax.jit(model.node_gradients)(params, block, batch), rtol=1e-12)


def test_embeddings_that_are_none_are_columns_of_the_identity(x64):
    params, block, batch = example(5, "softmax", "tanh")
    params = params._replace(a=None)
    batch = batch._replace(target=jnp.asarray(np.random.default_rng(1).dirichlet(np.ones(K), N)))
    frame = jnp.eye(D, M + Q)
    passed = [
        jax.jit(model.backward)(params, model.projected(params, b), b, batch)
        for b in (block._replace(tokens=frame[:, :M], queries=frame[:, M:]), block._replace(tokens=None, queries=None))
    ]
    assert D > M + Q and passed[1].gradient.w.shape == (D, K)
    chex.assert_trees_all_close(*passed, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize(
    ("name", "reference"), [("gd", optax.sgd(0.1)), ("momentum", optax.sgd(0.1, momentum=0.9)), ("adam", optax.adam(0.1))]
)
def test_optimizers_are_those_of_optax(x64, name, reference):
    """With a ratio of 2 the logits' steps are twice as long; without an upper layer nothing is trained there."""
    start = model.Params(jnp.ones((2, 2)), jnp.ones((1, 3)))
    tx = model.make_tx(jd.Code.of(name, model.OPTIMIZERS), 0.1, model.Params(1.0, 2.0))

    def run(tx):
        params, state, update = start, tx.init(start), jax.jit(tx.update)
        for i in range(4):
            gradient = jax.tree.map(lambda p, i=i: np.sin(np.asarray(p) + i), start)
            updates, state = update(gradient, state, params)
            params = optax.apply_updates(params, updates)
        return params

    ours, theirs = run(tx), run(reference)
    assert np.allclose(ours.w, theirs.w, rtol=1e-12) and ours.a is None
    assert np.allclose(ours.z - start.z, 2 * (theirs.z - start.z), rtol=1e-12)


def test_embeddings(x64):
    tokens, queries = model.embed(jax.random.key(0), 8, 5, 2)
    u = np.concatenate([tokens, queries], 1)
    assert tokens.shape == (8, 5) and queries.shape == (8, 2)
    assert np.allclose(u.T @ u, np.eye(7), atol=1e-14)
    noisy = np.concatenate(model.embed(jax.random.key(0), 8, 5, 2, 0.3), 1)
    assert 0.1 < np.std(noisy - u) < 0.5
    with pytest.raises(jd.UsageError, match="dim=6 is not allowed: .* need dim >= 7"):
        model.embed(jax.random.key(0), 6, 5, 2)


def test_normals_are_slices_of_one_array(x64):
    a, b = model.normals(jax.random.key(1), (2, 3), (4,))
    assert a.shape == (2, 3) and b.shape == (4,) and a.dtype == jnp.float64
    assert np.array_equal(np.concatenate([a.ravel(), b]), jax.random.normal(jax.random.key(1), (10,), jnp.float64))


@pytest.mark.parametrize("upper", model.UPPERS)
def test_upper_layers_in_use(x64, upper):
    """The outputs of as many further layers as the depth says, an activation below each; cross-entropy takes targets' softmax."""
    params, block, batch = example(2, "exp", "tanh")
    c = np.random.default_rng(1).normal(size=(2, O, O))
    act = {"tanh": np.tanh, "relu": lambda y: np.maximum(y, 0), "id": lambda y: y}[upper]
    out = np.tanh(np.asarray(model.pre_activations(params, block, batch.x, batch.query))) @ np.asarray(params.a)
    for depth in range(3):
        at = block._replace(upper=jd.Code.of(upper, model.UPPERS), depth=float(depth))
        squared, entropy = (
            model.training_loss(jd.Code.of(kind, model.LOSSES), params._replace(c=jnp.asarray(c)), at, batch)
            for kind in model.LOSSES
        )
        weight, target = np.asarray(batch.weight), np.asarray(batch.target)
        assert float(squared) == pytest.approx(0.5 * weight @ ((out - target) ** 2).sum(1), rel=1e-12)
        nll = -(scipy.special.softmax(target, 1) * scipy.special.log_softmax(out, 1)).sum(1)
        assert float(entropy) == pytest.approx(weight @ nll, rel=1e-12)
        out = act(out) @ c[depth] if depth < 2 else out


VOCABULARY, LENGTH = 7, 5
TOKENS = np.asarray([[0, 1, 1, 3, 6], [2, 0, 3, 3, 6], [5, 2, 1, 0, 6]], np.int32)
FIELDS = [
    {"norm": "none", "position": "none", "mlp": "plain"},
    {"norm": "rms", "heads": 2, "mlp": "gated", "attention": "sigmoid"},
    {"norm": "layer", "heads": 4, "groups": 2, "query_key_norm": True, "position": "learned", "length": LENGTH, "mlp": "plain"},
    {"norm": "rms", "norm_place": "post", "heads": 2, "output_gate": True, "sees_itself": False, "skip": 0.5, "residual": 2.0},
    {"norm": "none", "project": False, "attention": "linear", "position": "none", "mlp": "plain"},
]


def drawn(**fields):
    """A network, its weights, and sequences of which the last query counts, not all alike."""
    shape = nn.Transformer(vocabulary=VOCABULARY, width=8, layers=1, hidden=6, std=0.5, dtype="float64", **fields)
    counted = np.zeros(TOKENS.shape)
    counted[:, -1] = [0.5, 0.2, 0.3]
    return shape, nn.network(shape).init(jax.random.key(0)), Batch(jnp.asarray(TOKENS), jnp.zeros_like(TOKENS), counted, {})


def normed(shape, w, name, x):
    if name not in w:
        return x
    y = x - x.mean(-1, keepdims=True) if shape.norm == "layer" else x
    y = y / np.sqrt((y**2).mean(-1, keepdims=True) + 1e-6) * w[name]
    return y + w[f"{name}_bias"] if shape.norm == "layer" else y


def turned(shape, x, place):
    """Rotary positions of one vector."""
    if shape.position != "rotary":
        return x
    half = x.size // 2
    angle = place * 10_000.0 ** (-np.arange(half) / half)
    a, b = x[:half], x[half:]
    return np.concatenate([a * np.cos(angle) - b * np.sin(angle), a * np.sin(angle) + b * np.cos(angle)])


def by_hand(shape, params, batch):
    """Mean scores, attention, and writings of every head and token."""
    p = jax.tree.map(np.asarray, params)
    w = {name: value[0] for name, value in p["blocks"].items()}
    h, e, last = shape.heads, shape.entries, LENGTH - 1
    z, b, u = np.zeros((h, VOCABULARY)), np.zeros((h, VOCABULARY)), np.zeros((h, VOCABULARY, shape.width))
    count, scale, gates, rows = np.zeros(VOCABULARY), 0.0, np.zeros(h * e), []
    for tokens, weight in zip(TOKENS, np.asarray(batch.weights)[:, -1], strict=True):
        stream = p["embed"][tokens] + (p["position"][:LENGTH] if shape.position == "learned" else 0)
        x = normed(shape, w, "attention_norm", stream) if shape.norm_place == "pre" else stream
        q, k, v = ((x @ w[name]).reshape(LENGTH, -1, e) for name in "qkv")
        if shape.query_key_norm:
            q, k = (y / np.sqrt((y**2).mean(-1, keepdims=True) + 1e-6) for y in (q, k))
        keys = [m for m in range(LENGTH) if shape.sees_itself or m != last]
        for m in keys:
            count[tokens[m]] += weight
        mixed = np.zeros((h, e))
        for head in range(h):
            own = head // (h // shape.key_heads)
            score = np.asarray([turned(shape, q[last, head], last) @ turned(shape, k[m, own], m) for m in keys]) / np.sqrt(e)
            attention = np.asarray(weights(jnp.asarray(score)[None], shape.attention))[0]
            for m, s, a in zip(keys, score, attention, strict=True):
                z[head, tokens[m]] += weight * s
                b[head, tokens[m]] += weight * a
                rows.append((head, tokens[m], weight, v[m, own]))
                mixed[head] += a * v[m, own]
        gate = 1 / (1 + np.exp(-x[last] @ w["output_gate"])) if shape.output_gate else np.ones(h * e)
        written = (gate * mixed.ravel()) @ (w["o"] if shape.project else np.eye(8)) * float(shape.residual)
        joined = float(shape.skip) * stream[last] + written
        joined = joined - joined.mean() if shape.norm == "layer" else joined
        scale += weight / np.sqrt((joined**2).mean() + 1e-6)
        gates += weight * gate
    for head, token, weight, value in rows:
        part = np.zeros((h, e))
        part[head] = value * gates.reshape(h, e)[head]
        out = part.ravel() @ (w["o"] if shape.project else np.eye(8)) * float(shape.residual)
        if shape.norm != "none":
            gain = w["mlp_norm" if shape.norm_place == "pre" else "attention_norm"]
            out = (out - out.mean() if shape.norm == "layer" else out) * scale * gain
        u[head, token] += weight * out
    some = np.where(count > 0, count, 1)
    return z / some, b, u / some[:, None], count


@pytest.mark.parametrize("fields", FIELDS, ids=str)
def test_letters_are_those_of_plain_numpy(fields):
    with jax.enable_x64(True):
        shape, params, batch = drawn(**fields)
        found = letters(shape, params, batch)
        z, b, u, count = by_hand(shape, params, batch)
        np.testing.assert_allclose(found.z[0], z, atol=1e-12)
        np.testing.assert_allclose(found.b[0], b, atol=1e-12)
        np.testing.assert_allclose(found.u[0], u, atol=1e-12)
        np.testing.assert_allclose(places(shape, batch, "float64").share, count / count.sum(), atol=1e-12)
        assert found.w.shape == (1, 8, 12 if shape.mlp == "gated" else 6)
        assert np.array_equal(found.w, lower(shape, params["blocks"]))


@pytest.mark.parametrize("fields", FIELDS[:3], ids=str)
def test_the_rate_is_the_square_of_the_slope_in_queries_and_keys(fields):
    """Exactly where a token has one place for one query: its score is one number, whose slopes in both matrices are known."""
    with jax.enable_x64(True):
        shape, params, batch = drawn(**fields)
        tokens = jnp.asarray([[0, 1, 2, 3, 6]], jnp.int32)
        batch = Batch(tokens, tokens, jnp.zeros((1, LENGTH)).at[0, -1].set(1.0), {})

        def score(w):
            return letters(shape, params | {"blocks": params["blocks"] | w}, batch).z[0]

        slopes = jax.jacrev(score)({name: params["blocks"][name] for name in "qk"})
        square = sum(np.sum(np.square(slope), (2, 3, 4)) for slope in slopes.values())
        seen = [0, 1, 2, 3]  # the query sees itself, too: there both matrices read one token
        np.testing.assert_allclose(letters(shape, params, batch).rate[0][:, seen], square[:, seen], rtol=1e-9)


def test_a_sink_token_is_the_last_of_the_tokens():
    with jax.enable_x64(True):
        shape, params, batch = drawn(norm="none", position="none", mlp="plain", sink_token=True)
        found, at = letters(shape, params, batch), places(shape, batch, "float64")
        assert found.z.shape == (1, 1, VOCABULARY + 1) and float(at.share[-1]) == pytest.approx(1 / (LENGTH + 1))
        embed = np.asarray(params["embed"])
        q, k = (np.asarray(params["blocks"][name][0]) for name in "qk")
        expected = (embed[6] @ q) @ (np.asarray(params["sink_token"]) @ k) / np.sqrt(8)
        assert float(found.z[0, 0, -1]) == pytest.approx(expected, rel=1e-9)


def test_the_ratio_of_the_rates_is_known_of_orthogonal_matrices():
    """Vectors have length sqrt d all along, so that R = 2 d, and r = 2 over the squared factor on what is written: it is not 1."""
    fields = {"norm": "none", "position": "none", "mlp": "plain", "start": "orthogonal", "residual": 0.5}
    with jax.enable_x64(True):
        shape, params, batch = drawn(**fields)
        found = letters(shape, params, batch)
        seen = places(shape, batch, "float64").share > 0
        np.testing.assert_allclose(found.rate[0, 0][seen], 2 * 8, rtol=1e-9)
        np.testing.assert_allclose(jnp.sum(found.u**2, -1)[0, 0][seen], 0.25 * 8, rtol=1e-9)


ONE = {"context": "one", "attention": "exp", "activation": "id", "queries": 1.0, "residual": 0.0, "eta": 0.04, "span": 0.8}


@pytest.mark.slow
def test_rows_of_one_token_samples_converge_at_the_closed_rate(x64):
    """And the limit's smallest eigenvalue is the slowest row's, up to the error of the step."""
    s = inside(convergence.Converge(**(ONE | {"eta": 0.01}), late=1e-6, low=0.8, high=1.5, tokens=3, nodes=2, samples=24))
    out = jax.jit(convergence.trial)(s, jax.random.key(0))
    speed, predicted = (np.asarray(side["speed"].value) for side in (out.measured, out.predicted))
    np.testing.assert_allclose(speed, predicted, rtol=0.05)
    assert float(out.recorded["slowest"].value) == pytest.approx(speed.min(), rel=0.05)
    assert float(out.assumed["unconverged"].value) < 1e-10


def test_every_sample_has_one_token_or_all_of_them(x64):
    one, many = (
        jax.jit(convergence.build)(inside(s), jax.random.key(1))[2].x for s in (convergence.Converge(**ONE), convergence.Converge())
    )
    np.testing.assert_array_equal(np.sort(one, 1)[:, -1], 1.0)
    np.testing.assert_allclose(many.sum(1), 1.0)
    assert float(many.min()) > 0


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"queries": 3.0}, "queries is at most max_queries"),
        ({"span": 1.0}, "whole multiple"),
        ({"low": 2.0}, "low is at most high"),
    ],
)
def test_wrong_settings_are_named(fields, message):
    with pytest.raises(jd.UsageError, match=message):
        convergence.Converge(**fields)


def values(eta):
    """A quantity with errors of first and second order in the step size."""
    eta = xr.DataArray(eta, dims="eta", coords={"eta": eta})
    return xr.Dataset({"y": 3.0 - 2.0 * eta + 5.0 * eta**2})


def test_limit_is_exact_for_a_quadratic_error():
    ds = halving_steps(values([0.01, 0.04, 0.08, 0.02]))
    np.testing.assert_array_equal(ds.eta, [0.04, 0.02, 0.01])
    assert float(extrapolated(ds.y)) == pytest.approx(3.0, abs=1e-13)


@pytest.mark.parametrize(
    ("eta", "words"), [([0.1, 0.05], "at least 3 values of eta"), ([0.1, 0.05, 0.03], "half of the one before")]
)
def test_other_step_sizes_decide_nothing(eta, words):
    with pytest.raises(jd.Inconclusive, match=words):
        halving_steps(values(eta))
