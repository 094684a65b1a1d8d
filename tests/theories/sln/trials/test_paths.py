"""The loss, greedy answers and embeddings on small networks, and what is refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.data import graphs
from jaxdyn.errors import UsageError
from jaxdyn.theories.sln import sequences
from jaxdyn.theories.sln.trials import paths
from jaxdyn.theories.sln.trials.paths import Learning, trial

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
    found = paths.listed(s)
    assert len(found.trained) + len(found.held) == 2 + 6 + 21 and found.most == 10
    looked = paths.table(s)
    assert looked.shape == (2, 5, 5)
    inside = {a.tobytes() for a in np.asarray(found.trained)}
    assert looked[0].tobytes() not in inside


def test_loss_and_answers_by_hand():
    """The loss is that of the path's tokens alone; answers are the likeliest tokens, one after the other."""
    s = Learning(**SMALL)
    net = paths.network(s)
    params = jax.jit(net.init)(jax.random.key(0))
    held = paths.listed(s).held
    p = jax.device_get(jax.jit(lambda key: paths.drawn(s, held, key, 4))(jax.random.key(1)))
    apply = jax.jit(lambda tokens: jax.nn.log_softmax(net.apply(params, tokens)))
    logits = np.asarray(apply(p.tokens))
    each = [-logits[b, i - 1, p.tokens[b, i]] for b in range(4) for i in np.flatnonzero(p.learned[b])]
    np.testing.assert_allclose(jax.jit(lambda p: paths.loss(net, params, p))(p), np.mean(each), rtol=1e-5)
    answers = np.asarray(jax.jit(lambda p: paths.solve(net, params, p))(p))
    size = p.tokens.shape[1] + answers.shape[1]
    for b in range(4):
        tokens = p.tokens[b, : p.start[b] + 1].tolist()
        for token in answers[b]:
            row = np.pad(tokens, (0, size - len(tokens)))  # what follows is not seen
            assert token == np.argmax(np.asarray(apply(row[None]))[0, len(tokens) - 1])
            tokens.append(int(token))


def test_an_embedding_is_the_residual_stream_of_its_edge():
    """With one order and one layer: read at the <e> of the edge, wherever it stands."""
    s = Learning(**(SMALL | {"orders": 1}))
    net = paths.network(s)
    params = jax.jit(net.init)(jax.random.key(0))
    graph = jnp.asarray(graphs.connected(5)[9])
    h = np.asarray(jax.jit(lambda key: paths.embedded(s, net, params, graph, key))(jax.random.key(3)))
    pairs = jax.jit(lambda key: sequences.edge_tokens(jax.random.split(key, 1)[0], graph, 10)[0])(jax.random.key(3))
    tokens = [5 + sequences.BOS, *(t for u, v in np.asarray(pairs).tolist() for t in (u, v, 5 + sequences.EDGE))]
    stream = np.asarray(jax.jit(lambda p: net.trunk(p, np.array([tokens]), observe=("inputs",))[1]["inputs"])(params))[1, 0]
    edges = jax.device_get(jax.jit(graphs.edges_of, static_argnums=1)(graph, 10))
    for place, pair in enumerate(np.sort(np.asarray(pairs), 1)[: int(edges.real.sum())].tolist()):
        number = np.asarray(edges.ends).tolist().index(pair)
        np.testing.assert_allclose(h[number], stream[3 + 3 * place], atol=1e-6)


def test_settings_that_are_refused():
    for fields, why in (
        ({"largest": 9}, "least <= largest"),
        ({"steps": 5}, "steps is at least"),
        ({"lr": 0.0}, "both are positive"),
    ):
        with pytest.raises(UsageError, match=why):
            Learning(**fields)
    with pytest.raises(UsageError, match="graphs to look at"):
        paths.table(Learning(looked=500))
