"""The loss, greedy answers and embeddings on small networks, and judges on networks that solve everything or nothing."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

import jaxdyn as jd
from jaxdyn.data import graphs
from jaxdyn.errors import UsageError
from jaxdyn.theories.sln import model_paths, sequences
from jaxdyn.theories.sln.model_paths import Learning, trial

SMALL = {"largest": 5, "width": 8, "heads": 2, "batch": 2, "steps": 12, "problems": 6, "looked": 2, "orders": 3}


@pytest.mark.slow  # a verification runs the same trial, at its full size
def test_a_trial():
    ds = jd.sweep(trial, jd.grid(Learning, **SMALL), 1)
    assert float(ds.curve[..., -1].max()) < float(ds.curve[..., 0].min())
    assert set(np.unique(ds.measured_right)) <= {0.0, 1.0}
    assert not ds.embedding.where(ds["real"] == 0, 0).any()
    assert float(abs(ds.embedding - ds.unlearned).max()) > 0


def test_graphs_are_parted():
    s = Learning(**SMALL)
    found = model_paths.listed(s)
    assert len(found.trained) + len(found.held) == 2 + 6 + 21 and found.most == 10
    looked = model_paths.table(s)
    assert looked.shape == (2, 5, 5)
    inside = {a.tobytes() for a in np.asarray(found.trained)}
    assert looked[0].tobytes() not in inside


@pytest.mark.slow
def test_loss_and_answers_by_hand():
    """The loss is that of the path's tokens alone; answers are the likeliest tokens, one after the other."""
    s = Learning(**SMALL)
    net = model_paths.network(s)
    params = jax.jit(net.init)(jax.random.key(0))
    held = model_paths.listed(s).held
    p = jax.device_get(jax.jit(lambda key: model_paths.sample_problem(s, held, key, 4))(jax.random.key(1)))
    apply = jax.jit(lambda tokens: jax.nn.log_softmax(net.apply(params, tokens)))
    logits = np.asarray(apply(p.tokens))
    each = [-logits[b, i - 1, p.tokens[b, i]] for b in range(4) for i in np.flatnonzero(p.learned[b])]
    np.testing.assert_allclose(jax.jit(lambda p: model_paths.loss(net, params, p))(p), np.mean(each), rtol=1e-5)
    answers = np.asarray(jax.jit(lambda p: model_paths.solve(net, params, p))(p))
    size = p.tokens.shape[1] + answers.shape[1]
    for b in range(4):
        tokens = p.tokens[b, : p.start[b] + 1].tolist()
        for token in answers[b]:
            row = np.pad(tokens, (0, size - len(tokens)))  # what follows is not seen
            assert token == np.argmax(np.asarray(apply(row[None]))[0, len(tokens) - 1])
            tokens.append(int(token))


@pytest.mark.slow
def test_an_embedding_is_the_residual_stream_of_its_edge():
    """With one order and one layer: read at the <e> of the edge, wherever it stands."""
    s = Learning(**(SMALL | {"orders": 1}))
    net = model_paths.network(s)
    params = jax.jit(net.init)(jax.random.key(0))
    graph = jnp.asarray(graphs.connected(5)[9])
    h = np.asarray(jax.jit(lambda key: model_paths.embedded(s, net, params, graph, key))(jax.random.key(3)))
    pairs = jax.jit(lambda key: sequences.edge_tokens(jax.random.split(key, 1)[0], graph, 10)[0])(jax.random.key(3))
    tokens = [5 + sequences.BOS, *(t for u, v in np.asarray(pairs).tolist() for t in (u, v, 5 + sequences.EDGE))]
    stream = np.asarray(jax.jit(lambda p: net.trunk(p, np.array([tokens]), observe=("inputs",))[1]["inputs"])(params))[1, 0]
    edges = jax.device_get(jax.jit(graphs.edges_of, static_argnums=1)(graph, 10))
    for place, pair in enumerate(np.sort(np.asarray(pairs), 1)[: int(edges.real.sum())].tolist()):
        number = np.asarray(edges.ends).tolist().index(pair)
        np.testing.assert_allclose(h[number], stream[3 + 3 * place], atol=1e-6)


def test_settings_that_are_refused():
    with pytest.raises(UsageError, match="least is at most largest"):
        Learning(least=7)
    with pytest.raises(UsageError, match="graphs to look at"):
        model_paths.table(Learning(looked=500))


def data(weights, noise=0.0):
    """Two runs on four graphs, embedded by their modes with weights of the eigenvalues."""
    rng = np.random.default_rng(0)
    table = [a for a in graphs.connected(5) if a.sum() // 2 == 7][:4]
    each = {"embedding": [], "vectors": [], "values": [], "squared": []}
    for a in table:
        ends = np.argwhere(np.triu(a))
        share = (ends[:, None, :, None] == ends[None, :, None, :]).any((2, 3)) & ~np.eye(7, dtype=bool)
        root = share.sum(1) ** -0.5
        values, vectors = np.linalg.eigh(np.eye(7) - root[:, None] * share * root)
        h = vectors[:, 1:] * weights(values[1:])
        each["embedding"].append(h + noise * rng.normal(size=h.shape))
        each["vectors"].append(vectors)
        each["values"].append(values)
        each["squared"].append(((h[:, None] - h) ** 2).sum(-1)[None])
    axes = {
        "embedding": "graph edge unit",
        "vectors": "graph edge mode",
        "values": "graph mode",
        "squared": "graph metric edge other",
    }
    both = {name: (("seed", *axes[name].split()), np.stack([np.stack(x)] * 2)) for name, x in each.items()}
    ds = xr.Dataset(both).assign_coords(seed=[0, 1])
    return ds.assign(real=xr.ones_like(ds.embedding.isel(unit=0)), unlearned=ds.embedding * 0 + rng.normal(size=ds.embedding.shape))


def test_an_embedding_by_the_spectrum_is_matched():
    ds = data(lambda v: 1 / v)
    assert float(model_paths.distance_correlations(ds).min()) > 0.999
    rho, limit, share = (model_paths.each_graph(ds, ds.embedding).isel(quantity=i) for i in range(3))
    assert float(rho.mean()) > 0.9 and float(share.min()) > 0.6
    names = [c.name for c in model_paths.judge_embedding(ds)]
    assert len(set(names)) == 4
    moved = model_paths.each_graph(ds, jd.swap(embedding=model_paths.permuted)(ds).embedding).isel(quantity=0)
    assert float(moved.mean()) < float(rho.mean()) - 0.1 and float(limit.max()) <= 1


def test_accuracy_apart_by_distance():
    right = xr.DataArray(np.ones((2, 400)), dims=("seed", "problem"), coords={"seed": [0, 1]})
    distance = xr.DataArray(np.tile([1.0, 2.0], (2, 200)), dims=("seed", "problem"))
    ds = xr.Dataset({"measured_right": right, "distance": distance})
    assert [c.value for c in model_paths.judge_accuracy(ds.assign(measured_right=right.where(distance == 1, 0)))] == [1, 0]
    assert [c.value for c in model_paths.judge_accuracy(ds)] == [1, 1]


def test_claims_are_measured_and_have_opponents():
    assert all(c.expected == "measured" and c.controls and c.rivals for c in model_paths.CLAIMS)
    assert all(isinstance(c, jd.Claim) for c in model_paths.CLAIMS)
