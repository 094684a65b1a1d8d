"""Superposition: the transformer, sets in its thoughts, the construction of its weights, and trained models."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

import jaxdyn as jd
from jaxdyn.data import digraphs
from jaxdyn.engine.judging.check import all_passed, holds
from jaxdyn.theories.coc.training import KINDS, ORDERS
from jaxdyn.theories.sup import construction, dynamics, model, supports, trained
from jaxdyn.theories.sup.graph_search import Search, instance, think, trial

# The transformer at random weights: against NumPy, and in one pass, with a cache, and by reading everything again.

D, K, F, U, N, T = 6, 4, 3, 9, 5, 9
forward, step = jax.jit(model.forward), jax.jit(model.step)  # as one program each: by itself every operation would be compiled
read = jax.jit(lambda params, x: model.forward(params, model.inputs(params, x, jnp.arange(x.shape[1])))[0][-1])


def random_params(rotary):
    rng = np.random.default_rng(0)
    layer = lambda h, turned: model.Layer(  # noqa: E731
        *(rng.normal(size=s) for s in ((h, D, K), (h, D, K), (h, D, F), (h, F, D), (D, U), (U, D))), np.float64(0.2), turned
    )
    turned = model.Rotary(np.float64(50.0), np.float64(1.0)) if rotary else None
    return model.Params(
        rng.normal(size=(7, D)), rng.normal(size=(T, D)), (layer(3, turned), layer(1, None)), rng.normal(size=(D, 7))
    )


def plain(params, x):
    """Outputs position by position."""
    for layer in params.layers:
        h = x.copy()
        for i in range(len(x)):
            for head in range(len(layer.query)):
                scores = np.array([(x[i] @ layer.query[head]) @ (x[j] @ layer.key[head]) for j in range(i + 1)])
                b = np.exp(scores - scores.max())
                h[i] += (b / b.sum()) @ (x[: i + 1] @ layer.value[head]) @ layer.out[head]
        y = (h @ layer.inner >= layer.threshold).astype(float) @ layer.outer
        x = y / np.linalg.norm(y, axis=1, keepdims=True)
    return x


def test_against_numpy(x64):
    params = random_params(False)
    x = np.random.default_rng(1).normal(size=(N, D))
    outputs, caches, maps = forward(params, jnp.asarray(x))
    np.testing.assert_allclose(outputs[-1], plain(params, x), atol=1e-12)
    assert caches[0].key.shape == (N, 3, K) and maps[0].shape == (3, N, N) and len(outputs) == 2
    np.testing.assert_allclose(np.sum(maps[0], -1), 1)


@pytest.mark.slow
@pytest.mark.parametrize("rotary", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_thoughts_by_cache_in_one_pass_and_by_reading_again_are_equal(rotary, x64):
    params = jax.tree.map(jnp.asarray, random_params(rotary))
    x = jnp.asarray(np.random.default_rng(2).normal(size=(2, N, D)))
    count = T - N

    @jax.jit
    def cached(x):
        past = model.forward(params, model.inputs(params, x[:, :-1], jnp.arange(N - 1)))[1]
        recent, thought, thoughts = model.empty(past, count + 1), x[:, -1:], []
        for c in range(count):
            new = model.inputs(params, thought, N - 1 + jnp.arange(c, c + 1))
            thought, recent, maps = model.step(params, past, recent, new, jnp.asarray(c))
            thoughts.append(thought)
        assert maps[0].shape == (2, 3, 1, N - 1 + count + 1)
        return jnp.concatenate(thoughts, 1)

    thoughts = cached(x)
    again = np.asarray(x)
    for _ in range(count):
        again = np.concatenate([again, np.asarray(read(params, again))[:, -1:]], 1)
    np.testing.assert_allclose(thoughts, again[:, N:], atol=1e-12)
    whole = np.concatenate([x, np.asarray(thoughts)[:, :-1]], 1)
    np.testing.assert_allclose(thoughts, np.asarray(read(params, whole))[:, N - 1 :], atol=1e-12)


def test_two_inputs_at_once_and_a_place_that_is_overwritten(x64):
    params, x = jax.tree.map(jnp.asarray, random_params(False)), np.random.default_rng(3).normal(size=(N, D))
    past = forward(params, x[:3])[1]
    both, recent, _ = step(params, past, model.empty(past, 3), x[3:], jnp.asarray(0))
    np.testing.assert_allclose(both, np.asarray(forward(params, x)[0][-1])[3:], atol=1e-12)
    other = np.concatenate([x[:4], -x[4:]])
    last, _, _ = step(params, past, recent, other[4:], jnp.asarray(1))
    np.testing.assert_allclose(last, np.asarray(forward(params, other)[0][-1])[4:], atol=1e-12)


def test_an_output_of_size_zero_stays_zero(x64):
    params = jax.tree.map(jnp.asarray, random_params(False))
    high = params._replace(layers=tuple(layer._replace(threshold=np.float64(1e9)) for layer in params.layers))
    assert not np.any(forward(high, np.ones((N, D)))[0][-1])


# Reachable sets and copies.

# Outputs of layer 1 and the places of its heads, by hand on one edge list.

SIZES = construction.Sizes(names=6, edges=9, thoughts=2, width=4)


S, E, Q, R, A = range(6, 11)


def test_places_and_outputs(x64):
    prompt = jax.jit(construction.prompt, static_argnums=0)
    tokens = prompt(SIZES, np.array([[0, 1], [1, 2]] + [[3, 4]] * 7), np.array([2, 4]), np.asarray(0))
    places = np.asarray(jax.jit(dynamics.places, static_argnums=0)(SIZES, tokens))
    listed = [*np.asarray(tokens).tolist(), -1, -1, A]
    for head, (token, back) in enumerate(((E, 2), (E, 1), (R, 2), (R, 1), (A, 1))):
        assert places[head].tolist() == [i - back if t == token else 0 for i, t in enumerate(listed)]
    held = np.array([[1, 1, 0, 0, 0, 0], [1, 1, 1, 0, 0, 0]], bool)
    out = np.asarray(jax.jit(dynamics.outputs, static_argnums=0)(SIZES, tokens, held))
    np.testing.assert_allclose(np.sum(out**2, (1, 2)), 1)
    third = 3**-0.5
    assert np.argwhere(out[3]).tolist() == [[0, E], [1, 0], [2, 1]] and np.allclose(out[3][out[3] > 0], third)
    assert np.argwhere(out[SIZES.prompt - 2]).tolist() == [[0, R], [2, 2], [2, 4]]
    assert np.argwhere(out[SIZES.prompt]).tolist() == [[0, 0], [0, 1]]
    assert np.argwhere(out[-1]).tolist() == [[0, A], [1, 0], [1, 1], [1, 2]] and np.allclose(out[-1][out[-1] > 0], 0.5)
    assert np.argwhere(out[1]).tolist() == [[0, 0]]


# Sets by weights against breadth-first search and counts by hand.

by_weights = jax.jit(dynamics.by_weights, static_argnums=(3, 4))  # as one program: by itself every operation would be compiled


def test_a_small_threshold_gives_breadth_first_search(x64):
    rng = np.random.default_rng(0)
    for _ in range(30):
        edges = rng.integers(0, 12, (14, 2))
        root = int(edges[0, 0])
        found = np.asarray(by_weights(edges, root, np.array([1, 2]), 12, 5, 1 / 56))
        away = digraphs.distances(edges, root)
        for c in range(6):
            assert set(np.flatnonzero(found[c]).tolist()) == {v for v, d in away.items() if d <= c}


def test_a_vertex_below_the_threshold_is_lost(x64):
    edges = jnp.array([[0, 1]] * 9 + [[0, 2]])  # vertex 2 has a tenth of the edges
    for threshold, kept in ((0.9 / 10 / 3**0.5, True), (1.1 / 10 / 3**0.5, False)):
        found = by_weights(edges, jnp.asarray(0), jnp.array([1, 2]), 4, 1, jnp.asarray(threshold))
        assert bool(found[1, 2]) is kept and bool(found[1, 1])


def test_without_an_exit_attention_is_uniform(x64):
    edges = jnp.array([[1, 2]] * 3 + [[3, 4]])  # 3 edges into 2, one into 4; 18 places; candidates 4 and 5
    for count, kept in ((0.99, [0, 2, 4, 5]), (1.01, [0, 2, 4]), (1.99, [0, 2, 4]), (2.01, [0, 2]), (2.99, [0, 2])):
        found = by_weights(edges, jnp.asarray(0), jnp.array([4, 5]), 6, 1, jnp.asarray(count / 18 / 3**0.5))
        assert np.flatnonzero(found[1]).tolist() == kept
    found = by_weights(edges, jnp.asarray(0), jnp.array([4, 5]), 6, 4, jnp.asarray(3.1 / 18 / 3**0.5))
    assert all(np.flatnonzero(row).tolist() == [0] for row in found)  # each thought is one more place: 18, 19, 20, 21


def test_without_an_exit_edges_into_the_root_do_not_count(x64):
    into, others = [[v, 0] for v in range(1, 8)], [[3, 4], [4, 5]]  # 9 edges, 8 vertices
    for more, kept in (([], [0]), ([[6, 5]], [0, 5])):
        edges = jnp.array(into + others + more)
        found = by_weights(edges, jnp.asarray(0), jnp.array([1, 2]), 8, 1, jnp.asarray(1 / (4 * len(edges))))
        assert np.flatnonzero(found[1]).tolist() == kept


def test_thoughts_and_margins(x64):
    held = jnp.array([[True, False, False, False], [True, True, True, True]])
    np.testing.assert_allclose(dynamics.thoughts(held, 6), [[1, 0, 0, 0, 0, 0], [0.5, 0.5, 0.5, 0.5, 0, 0]])
    np.testing.assert_allclose(dynamics.margins(held, jnp.asarray(2)), [0, 1 / 3])


# The weights: published sizes of their numbers, rotations of positions, prompts, and blocks of fewer numbers.

CONSTRUCTED = construction.Sizes(names=8, edges=9, thoughts=3, width=6)

# One program each: by itself every operation would be compiled.
build, prompt = jax.jit(construction.build, static_argnums=0), jax.jit(construction.prompt, static_argnums=0)
orthogonal = jax.jit(construction.orthogonal, static_argnums=1)


@pytest.mark.slow
def test_numbers_of_the_published_size(x64):
    knobs = construction.safe(construction.Sizes(names=23, edges=36, thoughts=22, width=32))
    assert construction.Sizes(names=23, edges=36, thoughts=22, width=32).places == 137
    assert float(knobs.eta) == pytest.approx(39, abs=0.5) and float(knobs.xi) == pytest.approx(282, abs=1)
    assert float(knobs.tau) == pytest.approx(161, abs=0.5)
    turned = construction.safe(CONSTRUCTED, model.Rotary(jnp.asarray(50.0), jnp.asarray(1.0)))
    assert float(turned.xi) > float(construction.safe(CONSTRUCTED).xi)


def test_the_rotation_moves_positions_on(x64):
    rates = construction.position_rates(CONSTRUCTED, "float64")
    at = np.asarray(construction.sinusoids(jnp.arange(1.0, 9.0), rates))
    rotation = jax.jit(construction.rotation)
    for places in (1, 2, 5):
        np.testing.assert_allclose(at[:-places] @ np.asarray(rotation(rates, places)), at[places:], atol=1e-12)


def test_a_prompt():
    edges = np.array([[0, 1], [1, 2]] * 4 + [[5, 6]])
    tokens = prompt(CONSTRUCTED, edges, np.array([2, 6]), np.asarray(0)).tolist()
    s, e, q, r, a = range(8, 13)
    assert tokens[:7] == [s, 0, 1, e, 1, 2, e] and tokens[-8:] == [5, 6, e, q, 2, 6, r, 0] and a not in tokens
    assert len(tokens) == CONSTRUCTED.prompt == 33 and CONSTRUCTED.places == 37


def test_weights_of_layers(x64):
    u = np.asarray(orthogonal(jax.random.key(0), CONSTRUCTED.tokens))
    np.testing.assert_allclose(u.T @ u, np.eye(13), atol=1e-12)
    params = jax.device_get(build(CONSTRUCTED, u, construction.safe(CONSTRUCTED)))
    first, second = params.layers
    d = 3 * 13 + 6
    assert first.query.shape == (5, d, 12) and second.query.shape == (1, d, 13) and params.embed.shape == (13, d)
    assert not np.any(params.position[:, :39]) and not np.any(params.embed[:, 13:])
    np.testing.assert_allclose((params.embed @ first.value[0])[8], 0, atol=1e-12)  # the start's token copies nothing
    assert first.rotary is None


def test_fewer_numbers_as_zeros_and_as_a_smaller_matrix(x64):
    u = np.asarray(jax.jit(construction.narrow)(np.random.default_rng(1).normal(size=(13, 13)), np.asarray(7.0)))
    np.testing.assert_allclose(np.linalg.norm(u, axis=0), 1)
    knobs = construction.safe(CONSTRUCTED)
    tokens = prompt(CONSTRUCTED, np.array([[0, 1], [1, 2]] * 4 + [[5, 6]]), np.array([2, 6]), np.asarray(0))

    @jax.jit
    def logits(matrix):
        params = construction.build(CONSTRUCTED, matrix, knobs)
        x = model.inputs(params, params.embed[tokens], jnp.arange(CONSTRUCTED.prompt))
        return model.forward(params, x)[0][-1] @ params.head

    decoded = [logits(matrix) for matrix in (u, u[:7])]
    np.testing.assert_allclose(decoded[0], decoded[1], atol=1e-9)


# Thoughts of the construction on a few graphs, in float32 and against a queue; settings that do not fit.

SMALL = {"names": 14, "edges": 18, "thoughts": 4, "width": 8, "graphs": 6, "rows": 19.0}


@pytest.mark.slow
def test_thoughts_in_float32():
    kinds = ["random", "tree", "cycle", "dense"]
    ds = jd.sweep(trial, jd.grid(Search, kind=kinds, nodes=[7.0, 14.0], dtype="float32", **SMALL), 2)
    assert float(abs(ds.measured_thought - ds.predicted_thought).max()) < 1e-6
    assert float(abs(ds.measured_margin - ds.predicted_margin).max()) < 1e-6
    assert bool((ds.measured_steps == ds.predicted_steps).all())


@pytest.mark.slow
def test_predicted_sets_by_a_queue(x64):
    s = Search(kind="tree", nodes=14.0, **SMALL)
    one = instance(s, jax.random.key(5))
    thoughts, logits = jax.jit(think)(s, one, jax.random.key(6))
    assert thoughts.shape == (2, 5, 6, 19) and logits.shape == (2, 5, 6, 19)
    edges, root = np.asarray(one.graphs.edges), np.asarray(one.graphs.root)
    for g in range(6):
        away = digraphs.distances(edges[g], int(root[g]))
        for c in range(4):
            assert set(np.flatnonzero(thoughts[0, c, g] > 0.1).tolist()) == {v for v, d in away.items() if d <= c + 1}


@pytest.mark.parametrize(("fields", "reason"), [({"nodes": 60.0}, "nodes is at most names"), ({"width": 5}, "width is even")])
def test_refused_settings(fields, reason):
    with pytest.raises(jd.UsageError, match=reason):
        Search(**fields)


# Sets in thoughts by hand.


def test_sets_errors_and_the_rival():
    expected = xr.DataArray(np.array([[1.0, 0, 0, 0], [0.5**0.5, 0.5**0.5, 0, 0]]), dims=("thought", "token"))
    measured = expected.copy(data=[[1.0, 0, 0, 0.2], [0.9, 0.2, 0.3, 0]])
    ds = xr.Dataset({"predicted_thought": expected, "measured_thought": measured, "status": ((), 0)})
    assert supports.members(measured).values.tolist() == [[True, False, False, False], [True, False, True, False]]
    assert supports.wrong(ds).values.tolist() == [0, 2]
    (nothing,) = supports.STILL.values()
    assert nothing(ds).predicted_thought.values.tolist() == [[1, 0, 0, 0]] * 2
    assert np.isnan(supports.wrong(ds.assign(status=1))).all()


WAVE = np.array([0.01, -0.01, 0.005, -0.005])


def thoughts(gaps, looks=None, answered=0.95):
    """Runs with these differences, of nodes and of edges, by thought and order."""
    value = np.asarray(gaps, float) + WAVE[:, None, None]
    edges = value if looks is None else np.asarray(looks, float) + WAVE[:, None, None]
    data = {
        "measured_gaps": (("seed", "thought", "order"), value),
        "measured_looks": (("seed", "thought", "order"), edges),
        "measured_answered": (("seed", "inputs"), np.full((4, 3), answered)),
    }
    return xr.Dataset(data, {"seed": range(4), "thought": [1, 2], "order": list(ORDERS), "inputs": range(3)})


def methods(wave=WAVE, **means):
    data = np.array([m + wave * (1 + k) for k, m in enumerate(means.values())])
    return xr.Dataset({"measured_accuracy": (("recipe", "seed"), data)}, {"recipe": list(means), "seed": range(4)})


def trained_read(answers):
    return {r.name: r for r in answers[1:]}


CLEAR = [[0.9, 0.8, 0.7], [0.6, 0.5, 0.4]]


def test_differences_are_means_over_networks():
    seen = trained_read(trained.judge_frontier(thoughts(CLEAR)))
    for i in (1, 2):
        for o, gap in zip(ORDERS, CLEAR[i - 1], strict=True):
            assert seen[f"{o}, thought {i}"].value == pytest.approx(gap)
    low, high = seen[f"{ORDERS[0]}, thought 1"].interval
    assert 0.87 < low < 0.9 < high < 0.93


def test_frontier_and_reachable_edges_are_the_same_at_step_1_and_not_compared():
    seen = trained_read(trained.judge_frontier(thoughts(CLEAR, [[9, 0, 7], [9, 8, 7]])))
    assert sum("attention" in name for name in seen) == 5


def test_rivals_speak_of_what_is_read():
    names = set(trained_read(trained.judge_frontier(thoughts(CLEAR))))
    assert set(trained.NOTHING) == names and set(trained.ONE_NODE) < names
    assert not any(ORDERS[0] in name for name in trained.ONE_NODE)


def test_networks_that_did_not_learn_do_not_count():
    ds = thoughts(CLEAR)
    ds.measured_answered[0] = 0.5
    ds.measured_gaps[0] = -5.0
    gate, *_ = answers = trained.judge_frontier(ds)
    assert gate.passed and trained_read(answers)[f"{ORDERS[0]}, thought 1"].value > 0.8
    ds.measured_answered[1:3] = 0.5
    assert not trained.judge_frontier(ds)[0].passed


def walks(products, t):
    wave = WAVE[:, None, None] * np.array([1, 2])[:, None]
    data = {
        "measured_walk": (("seed", "kind", "early"), np.asarray(products, float) + wave),
        "measured_walk_t": (("seed", "kind", "early"), np.asarray(t, float) + WAVE[:, None, None]),
        "measured_answered": (("seed", "inputs"), np.full((4, 3), 0.95)),
    }
    return xr.Dataset(data, {"seed": range(4), "kind": list(KINDS), "early": [1, 2], "inputs": range(3)})


def test_walks_and_distances_are_distinguished():
    ds = walks([[-0.3, 2.0], [3.0, 1.5]], [[-40, 20], [0, 15]])
    seen = {name: r.value for name, r in trained_read(trained.judge_walks(ds)).items()}
    assert seen == {trained.HELD: pytest.approx(3), trained.ABOVE: 1, trained.LOWER: pytest.approx(0.5)}
    assert trained.UNREAD[trained.HELD](ds) == pytest.approx(-0.3)
    assert trained_read(trained.judge_walks(walks([[0, 0], [0, 0]], [[0, 0], [0, 2]])))[trained.ABOVE].value == 0


def test_accuracies_are_read_with_their_interval():
    seen = trained_read(trained.judge_accuracy(methods(coconut=0.95, cot=0.6, no_cot=0.5)))
    assert seen["accuracy of Coconut minus that of cot"].value == pytest.approx(0.35)
    assert seen["accuracy of no_cot"].value == pytest.approx(0.5)
    wide = trained_read(trained.judge_accuracy(methods(WAVE * 10, coconut=0.95, cot=0.8)))["accuracy of Coconut minus that of cot"]
    assert wide.interval[0] < 0.1 < wide.interval[1]
    assert not trained.judge_accuracy(methods(coconut=0.5, cot=0.6))[0].passed


def test_passed_nodes():
    low = np.array([[1.5, 4.5, -2.4], [4.9, 0.5, -0.6]]) + WAVE[:, None, None]
    ds = thoughts(CLEAR).assign(measured_apart=(("seed", "thought", "order"), low))
    checks = trained.judge_apart(ds)
    assert all_passed(checks) is True
    alike = {name: says(ds) for name, says in trained.CONSTRUCTION.items()}
    np.testing.assert_allclose(list(alike.values()), (2.1, -0.1), atol=1e-12)
    assert holds(checks[1].bound, alike[checks[1].name]) is False
