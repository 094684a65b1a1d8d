"""The one-block network of JoMA against NumPy, and its gradients against the formulas of the paper."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import scipy.special
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxdyn as jd
from jaxdyn.theories.joma import model

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
