"""Walks on graphs: equations and problems against networkx, networks and their paths, judges on made-up runs."""

import functools
import itertools

import jax
import jax.numpy as jnp
import networkx as nx
import numpy as np
import pytest
import xarray as xr

import jaxdyn as jd
from jaxdyn.data import graphs
from jaxdyn.errors import UsageError
from jaxdyn.theories.sln import alignment, dynamics, model, model_paths, sequences
from jaxdyn.theories.sln import sequences as q
from jaxdyn.theories.sln.exact import Atlas, collection, counterexamples, trial
from jaxdyn.theories.sln.linegraph import Line
from jaxdyn.theories.sln.model_paths import Learning
from jaxdyn.theories.sln.model_paths import trial as model_paths_trial
from jaxdyn.theories.sln.rates import BEST, LITERAL, UNWEIGHTED, Random, judge_any
from jaxdyn.theories.sln.rates import trial as rates_trial

# Line graphs against networkx, spectra and embeddings against plain numpy, cuts that complete clusters.

MOST = 12


edges_of = jax.jit(graphs.edges_of, static_argnums=1)  # as one program each: by itself every operation would be compiled


spectrum, squared_distances = jax.jit(dynamics.spectrum, static_argnums=1), jax.jit(dynamics.squared_distances, static_argnums=1)


SMALL = [a for a in graphs.connected(5) if a.sum() // 2 <= 10]


def edges(a):
    return edges_of(jnp.asarray(graphs.stacked((a,), 6)[0]), MOST)


@pytest.mark.parametrize("index", [0, 7, 20])
def test_line_graph(index):
    a = SMALL[index]
    e = edges(a)
    ends = [tuple(x) for x in np.asarray(e.ends)[np.asarray(e.real)].tolist()]
    expected = nx.to_numpy_array(nx.line_graph(nx.from_numpy_array(a)), nodelist=ends, dtype=bool)
    ours = np.asarray(dynamics.adjacency(e, 6))
    assert np.array_equal(ours[: len(ends), : len(ends)], expected) and not ours[len(ends) :].any()


def plain(a, walk, power, k, complete=True):
    """Squared distances from the definition: unpadded, eigenvectors one by one."""
    g = nx.line_graph(nx.from_numpy_array(a))
    order = sorted(tuple(sorted(e)) for e in g)
    adj = nx.to_numpy_array(g, nodelist=[e if e in g else e[::-1] for e in order])
    d = adj.sum(1)
    values, vectors = np.linalg.eigh(np.eye(len(d)) - adj / np.sqrt(np.outer(d, d)))
    stop = min(k, len(d) - 1)
    while complete and stop + 1 < len(d) and values[stop + 1] - values[stop] < 1e-8:
        stop += 1
    x = vectors[:, 1 : stop + 1] * values[1 : stop + 1] ** -power
    x = x / np.sqrt(d)[:, None] if walk else x
    return ((x[:, None] - x) ** 2).sum(-1)


@pytest.mark.thinned
@pytest.mark.parametrize("name", dynamics.EMBEDDINGS)
def test_embeddings(name):
    e = dynamics.EMBEDDINGS[name]
    with jax.enable_x64(True):
        squared = jax.jit(lambda x: dynamics.squared_distances(dynamics.spectrum(x, 6), e))
        for a in SMALL:
            m = a.sum() // 2
            ours = np.asarray(squared(edges(a)))[:m, :m]
            np.testing.assert_allclose(ours, plain(a, e.walk, e.power, int(min(e.vectors, 99))), atol=1e-10)


def test_a_cut_within_a_cluster_depends_on_the_labels():
    square = np.roll(np.eye(4, dtype=bool), 1, 0) | np.roll(np.eye(4, dtype=bool), -1, 0)
    with jax.enable_x64(True):
        s = spectrum(edges(square), 6)
        whole = np.asarray(squared_distances(s, dynamics.Embedding(0.0, 0.0, 1.0)))[:4, :4]
        cut = np.asarray(squared_distances(s, dynamics.Embedding(0.0, 0.0, 1.0, 0.0)))[:4, :4]
    np.testing.assert_allclose(np.unique(np.round(whole, 12)), [0, 1, 2])
    assert not np.allclose(cut, np.asarray(whole))


def test_resistance_of_a_path():
    """Resistances of the line graph of a path, itself a path, are the numbers of steps."""
    with jax.enable_x64(True):
        path = np.eye(6, k=1, dtype=bool) | np.eye(6, k=-1, dtype=bool)
        e = edges_of(jnp.asarray(path), 5)
        d = squared_distances(spectrum(e, 6), dynamics.EMBEDDINGS["rw, 1/sqrt, all"])
    np.testing.assert_allclose(d, abs(np.subtract.outer(range(5), range(5))), atol=1e-12)


# Navigation, its exact probability and the baseline, against plain recursions and sampling.

SIZE, NAVIGATE_MOST = 7, 21


SOME = [a for n in (4, 5, 6) for a in graphs.connected(n)][::9]


def navigate_edges(a):
    return graphs.edges_of(jnp.asarray(graphs.stacked((a,), SIZE)[0]), NAVIGATE_MOST)


def plain_next(a, between, ends, i, t):
    """Tied next vertices, by loops."""
    number = {tuple(e): k for k, e in enumerate(ends)}
    edge = lambda u, v: number[min(u, v), max(u, v)]  # noqa: E731
    cost = {int(j): min(between[edge(i, j), edge(k, t)] for k in np.flatnonzero(a[t])) for j in np.flatnonzero(a[i])}
    least = min(cost.values())
    return [j for j, c in cost.items() if c <= least + 1e-9]


def plain_success(a, choices):
    away = dict(nx.all_pairs_shortest_path_length(nx.from_numpy_array(a)))

    @functools.cache
    def p(i, t):
        js = choices(i, t) if i != t else []
        return 1.0 if i == t else float(np.mean([p(j, t) if away[j][t] == away[i][t] - 1 else 0.0 for j in js]))

    return np.array([[p(i, t) for t in range(len(a))] for i in range(len(a))])


@pytest.mark.thinned
@pytest.mark.parametrize("name", ["sym, 1, 3", "sym, 1, all", "rw, 1/lam, all"])
def test_success(name):
    with jax.enable_x64(True):

        @jax.jit
        def ours(e, g):
            between = dynamics.squared_distances(dynamics.spectrum(e, SIZE), dynamics.EMBEDDINGS[name])
            away = graphs.distances(g)
            return between, *dynamics.success(dynamics.tied(dynamics.costs(between, e, SIZE)), away)

        for a in SOME:
            e = navigate_edges(a)
            n, ends = len(a), np.asarray(e.ends)[np.asarray(e.real)].tolist()
            between, p, worst = map(np.asarray, ours(e, jnp.asarray(graphs.stacked((a,), SIZE)[0])))
            choices = functools.cache(lambda i, t, a=a, b=between, ends=ends: plain_next(a, b, ends, i, t))
            np.testing.assert_allclose(p[:n, :n], plain_success(a, choices), atol=1e-12)
            assert np.all((worst[:n, :n] == 1) == (p[:n, :n] > 1 - 1e-12))


def test_chance():
    a = SOME[4]
    g = jnp.asarray(graphs.stacked((a,), SIZE)[0])
    with jax.enable_x64(True):
        ours = np.asarray(dynamics.chance(g, graphs.distances(g)))
    np.testing.assert_allclose(ours[: len(a), : len(a)], plain_success(a, lambda i, t: np.flatnonzero(a[i]).tolist()), atol=1e-12)


def test_ground_states():
    """Against eigenvectors of each component."""
    with jax.enable_x64(True):
        find = jax.jit(dynamics.ground_states)
        for a in SOME:
            n = len(a)
            cost = np.asarray(find(jnp.asarray(graphs.stacked((a,), SIZE)[0])))[:n, :n, :n]
            laplacian = np.diag(a.sum(1)) - a.astype(float)
            for t in range(n):
                rest = nx.from_numpy_array(a)
                rest.remove_node(t)
                for part in map(sorted, nx.connected_components(rest)):
                    phi = abs(np.linalg.eigh(laplacian[np.ix_(part, part)])[1][:, 0])
                    for i in part:
                        for j, value in zip(part, phi / phi.max(), strict=True):
                            assert cost[i, j, t] == np.inf if not a[i, j] else abs(cost[i, j, t] - value) < 1e-9
                        assert not a[i, t] or cost[i, t, t] == 0


# Resistances against the pseudo-inverse, steps against networkx, and the sum on one tree by hand.

# One program each: by itself every operation would be compiled.
resistance_edges_of, distances = jax.jit(graphs.edges_of, static_argnums=1), jax.jit(graphs.distances)


adjacency, resistances = jax.jit(dynamics.adjacency, static_argnums=1), jax.jit(dynamics.resistances, static_argnums=1)


steps = jax.jit(dynamics.steps)


def test_resistances_and_steps():
    with jax.enable_x64(True):
        for a in graphs.connected(5)[::4]:
            padded = jnp.asarray(graphs.stacked((a,), 6)[0])
            e = resistance_edges_of(padded, 12)
            m = int(np.sum(e.real))
            adj = np.asarray(adjacency(e, 6))[:m, :m].astype(float)
            inverse = np.linalg.pinv(np.diag(adj.sum(1)) - adj)
            d = np.diag(inverse)
            ours = np.asarray(resistances(e, 6))
            np.testing.assert_allclose(ours[:m, :m], d[:, None] + d - 2 * inverse, atol=1e-12)
            assert not ours[m:].any() and not ours[:, m:].any()
            away = np.asarray(steps(e, distances(padded)))
            for i, found in nx.all_pairs_shortest_path_length(nx.from_numpy_array(adj)):
                assert all(away[i, j] == s for j, s in found.items())


def test_sum_along_a_path_of_a_star_with_a_tail():
    """Edges 01, 02, 03 at a vertex of degree 3, and 34: between 01 and 34 lie 0 (degree 3) and 3 (degree 2)."""
    a = np.zeros((5, 5), bool)
    for i, j in ((0, 1), (0, 2), (0, 3), (3, 4)):
        a[i, j] = a[j, i] = True
    g = jnp.asarray(a)
    with jax.enable_x64(True):
        found = np.asarray(jax.jit(dynamics.along)(resistance_edges_of(g, 4), g, distances(g)))
    np.testing.assert_allclose(found[0], [0, 2 / 3, 2 / 3, 2 / 3 + 1], atol=1e-15)


SEQUENCES_SIZE, SEQUENCES_MOST = 6, 15


def problems(count):
    table = [a for n in (3, 5, 6) for a in graphs.connected(n)][::5]
    padded = np.asarray(graphs.stacked(tuple(table), SEQUENCES_SIZE))
    keys = jax.random.split(jax.random.key(0), count)
    make = jax.jit(jax.vmap(lambda k, g: q.problem(k, g, SEQUENCES_MOST)))
    return jax.device_get(make(keys, padded[np.arange(count) % len(padded)]))


@pytest.mark.slow
def test_sequences():
    many = problems(60)
    assert many.tokens.shape == (60, q.length(SEQUENCES_SIZE, SEQUENCES_MOST))
    for i in range(60):
        p = jax.tree.map(lambda x, i=i: np.asarray(x[i]), many)
        tokens, m = p.tokens.tolist(), int(p.graph.sum()) // 2
        assert tokens[0] == SEQUENCES_SIZE + q.BOS
        body = np.reshape(tokens[1 : 1 + 3 * m], (m, 3))
        g = nx.Graph(body[:, :2].tolist())
        assert np.all(body[:, 2] == SEQUENCES_SIZE + q.EDGE) and g.number_of_edges() == m
        assert all(p.graph[u, v] for u, v in g.edges)
        start = 1 + 3 * m
        assert tokens[start] == SEQUENCES_SIZE + q.QUERY and tokens[start + 3] == SEQUENCES_SIZE + q.PATH
        source, target = tokens[start + 1 : start + 3]
        assert (source, target) == tuple(p.ends) and tokens[start + 4] == source and int(p.start) == start + 4
        path = tokens[start + 4 : tokens.index(SEQUENCES_SIZE + q.END)]
        assert path[-1] == target and nx.is_path(g, path) and len(path) == nx.shortest_path_length(g, source, target) + 1
        assert np.flatnonzero(p.learned).tolist() == list(range(start + 5, start + 5 + len(path)))


@pytest.mark.slow
def test_valid_answers():
    many = problems(60)  # as many as above: one program
    padded = np.pad(many.tokens, ((0, 0), (0, SEQUENCES_SIZE)), constant_values=SEQUENCES_SIZE + q.END)
    answer = np.stack([row[s + 1 : s + 1 + SEQUENCES_SIZE] for row, s in zip(padded, many.start, strict=True)])
    check = jax.jit(jax.vmap(q.valid))
    assert np.all(check(many, answer))
    assert not np.any(check(many, np.where(np.arange(SEQUENCES_SIZE) == 0, many.ends[:, :1], answer)))  # stays at the source
    assert not np.any(check(many, np.where(answer == SEQUENCES_SIZE + q.END, 0, answer)))  # never ends
    other = (many.ends[:, 1:] + 1) % SEQUENCES_SIZE
    assert not np.any(check(many, np.where(answer == many.ends[:, 1:], other, answer)))  # ends elsewhere


def test_split():
    inside, outside = q.split((3,) * 2 + (4,) * 6 + (5,) * 21)
    assert sorted(inside + outside) == list(range(29)) and len(outside) == 5
    assert len({i for i in outside if i >= 8}) == 4


@pytest.mark.slow
def test_graphs_of_five_vertices():
    ds = jd.sweep(trial, jd.grid(Atlas, least=5, largest=5), 1)
    assert len(collection(Atlas(least=5, largest=5))) == ds.sizes["graph"] == 21
    assert float(ds["pair"].sum()) == 420
    best = ds.sel(embedding="rw, 1/lam, all")
    assert float((1 - best.measured_success).max()) < 1e-12 and float((1 - best.sure).max()) == 0
    assert float(ds.measured_success.sel(embedding="sym, 1, all").min()) < 0.5
    assert float(abs(ds.measured_success - ds.predicted_success).max()) < 1e-12


def test_collections_that_are_refused():
    with pytest.raises(UsageError, match="graphs is one of"):
        Atlas(graphs="stars")
    with pytest.raises(UsageError, match="counterexamples have 8 vertices"):
        Atlas(graphs="counterexamples")
    with pytest.raises(UsageError, match="3 <= least"):
        Atlas(largest=9)


@pytest.mark.slow
def test_counterexamples_with_eight_vertices():
    """Weights 1/lambda fail on 62 of 11117 graphs, for 119 of 622552 pairs; five of these have 10 edges, none has fewer."""
    ds = jd.sweep(trial, jd.grid(Atlas, least=8, largest=8), 1)
    assert ds.sizes["graph"] == 11117
    unsure = (1 - ds.sure.sel(embedding="rw, 1/lam, all")).sum(("source", "target"))
    failing = (unsure > 0).values.ravel()
    assert failing.sum() == 62 and int(unsure.sum()) == 119
    few = [a for a, bad in zip(collection(Atlas(least=8, largest=8)), failing, strict=True) if bad and a.sum() <= 20]
    assert len(few) == 5 and all(a.sum() == 20 for a in few)
    listed = [nx.from_numpy_array(a) for a in counterexamples(8)]
    assert all(any(nx.is_isomorphic(nx.from_numpy_array(a), g) for g in listed) for a in few)


def test_settings_that_are_refused():
    with pytest.raises(UsageError, match="nodes is at most largest"):
        Line(nodes=20.0)


@pytest.mark.slow
def test_trees_and_forms():
    ds = jd.sweep(rates_trial, jd.grid(Random, kind="tree", nodes=[6.0, 9.0], graphs=6, rows="few", most=12), 2)
    assert float(ds.far.sel(embedding=BEST).min()) > 1 - 1e-12
    assert float(ds.counted.min()) == 1
    assert set(np.unique(ds.walk)) <= {0.0, 1.0}
    best = ds.far.sel(embedding=list(LITERAL)).mean("graph").max("embedding")
    np.testing.assert_allclose(ds.measured_routed.sel(form="printed").mean("graph"), best)
    np.testing.assert_allclose(ds.measured_routed.sel(form="derived"), ds.far.sel(embedding=BEST))
    best = ds.every.sel(embedding=list(UNWEIGHTED)).mean("graph").max("embedding")
    np.testing.assert_allclose(ds.measured_any.sel(form="printed").mean("graph"), best)
    np.testing.assert_allclose(ds.measured_any.sel(form="derived"), ds.every.sel(embedding=BEST))


@pytest.mark.slow
def test_an_own_row_is_that_of_the_table():
    sizes = {"density": 0.5, "graphs": 4, "most": 36}
    own = jd.sweep(rates_trial, jd.grid(Random, rows="own", rw=[0.0, 1.0], power=[0.0, 1.0], **sizes), 1)
    table = jd.sweep(rates_trial, jd.grid(Random, rows="all", **sizes), 1).far
    for (rw, power), name in zip(((1, 1), (0, 1), (0, 0)), (BEST, "sym, 1/lam, all", "sym, 1, all"), strict=True):
        routed = own.measured_routed.sel(form="derived", rw=rw, power=power)
        np.testing.assert_allclose(routed, table.sel(embedding=name), atol=1e-12)


@pytest.mark.slow
def test_graphs_without_room_or_distant_pairs_are_not_counted():
    ds = jd.sweep(rates_trial, jd.grid(Random, nodes=6.0, density=1.0, graphs=2, rows="few", largest=6, most=20), 1)
    assert float(ds.counted.max()) == 0
    assert float(ds.fits.min()) == 1 and float(ds.every.sel(embedding=BEST).min()) == 1, "all are adjacent"
    narrow = jd.sweep(rates_trial, jd.grid(Random, nodes=6.0, density=1.0, graphs=2, rows="few", largest=6, most=14), 1)
    assert float(narrow.fits.max()) == 0


def test_all_pairs_of_small_graphs_are_judged():
    values = xr.DataArray([[[1.0, 1.0, 0.5]], [[0.9, 1.0, 0.0]]], dims=("nodes", "seed", "graph"), coords={"nodes": [9.0, 10.0]})
    values = xr.concat([values] * 4, "seed")
    ds = xr.Dataset({"measured_any": values, "fits": xr.DataArray([1.0, 1.0, 0.0], dims="graph")})
    (check,) = judge_any(ds)
    assert check.passed and check.value == 1, "10 vertices and graphs without room do not count"
    (check,) = judge_any(ds.assign(fits=xr.ones_like(ds.fits)))
    assert not check.passed


def test_rates_settings_that_are_refused():
    for fields, why in (
        ({"nodes": 40.0}, "nodes is at most largest"),
        ({"rows": "none"}, "rows is one of all, few, own"),
        ({"most": 3}, "room"),
    ):
        with pytest.raises(UsageError, match=why):
            Random(**fields)


def modes(rng, edges, count):
    return np.linalg.qr(np.concatenate([np.ones((edges, 1)), rng.normal(size=(edges, count))], 1))[0][:, 1:]


def test_an_embedding_of_modes_matches_them():
    rng = np.random.default_rng(0)
    v = modes(rng, 12, 5)
    h = v * [4.0, 1.0, 3.0, 0.2, 0.1] @ np.linalg.qr(rng.normal(size=(5, 5)))[0] + 7
    components = alignment.principal(h, 3)
    np.testing.assert_allclose(components.T @ components, np.eye(3), atol=1e-12)
    assert alignment.matched(components, v) > 1 - 1e-12
    below = alignment.null(components, v, 200, 1)
    assert below.shape == (200,) and below.max() < 0.99
    np.testing.assert_allclose(alignment.weights(h, v), [16, 1, 9, 0.04, 0.01], atol=1e-8)


def test_matching_is_the_best_of_all():
    rng = np.random.default_rng(2)
    p, v = modes(rng, 9, 3), modes(rng, 9, 4)
    table = abs(p.T @ v)
    best = max(np.mean([table[a, b] for a, b in enumerate(order)]) for order in itertools.permutations(range(4), 3))
    assert abs(alignment.matched(p, v) - best) < 1e-14


def test_square_and_path():
    names = ("sym, 1, all", "rw, 1/lam, all")
    square = np.roll(np.eye(4, dtype=bool), 1, 0) | np.roll(np.eye(4, dtype=bool), -1, 0)
    path = np.eye(4, k=1, dtype=bool) | np.eye(4, k=-1, dtype=bool)
    with jax.enable_x64(True):
        rows = model.stack([dynamics.EMBEDDINGS[name] for name in names])
        for graph in (square, path):
            found = jax.jit(model.routed, static_argnums=2)(jnp.asarray(graph), rows, 6)
            pairs, far = model.targets(jnp.asarray(graph))
            shares = np.asarray(model.share(found.success, pairs))
            assert int(pairs.sum()) == 12 and int(far.sum()) == 12 - graph.sum()
            assert shares[1] == 1 and shares[2] == 1 and bool(jnp.all(found.sure[1] == 1))
            assert abs(shares[3] - 0.5) < 1e-12  # from 0 on the path: 1, 1/2, 1/4; from 1: 1/2, 1/2, 1/4


def test_share_without_pairs():
    assert float(model.share(jnp.zeros((3, 3)), jnp.zeros((3, 3), bool))) == 1


def test_rows():
    with jax.enable_x64(True):
        rows = model.stack(list(dynamics.EMBEDDINGS.values()))
    assert rows.walk.shape == (13,) and model.METHODS[:13] == tuple(dynamics.EMBEDDINGS)
    assert float(rows.power[model.METHODS.index("rw, 1/lam^2, all")]) == 2


MODEL_PATHS_SMALL = {"largest": 5, "width": 8, "heads": 2, "batch": 2, "steps": 12, "problems": 6, "looked": 2, "orders": 3}


@pytest.mark.slow  # a verification runs the same trial, at its full size
def test_a_trial():
    ds = jd.sweep(model_paths_trial, jd.grid(Learning, **MODEL_PATHS_SMALL), 1)
    assert float(ds.curve[..., -1].max()) < float(ds.curve[..., 0].min())
    assert set(np.unique(ds.measured_right)) <= {0.0, 1.0}
    assert not ds.embedding.where(ds["real"] == 0, 0).any()
    assert float(abs(ds.embedding - ds.unlearned).max()) > 0


def test_graphs_are_parted():
    s = Learning(**MODEL_PATHS_SMALL)
    found = model_paths.listed(s)
    assert len(found.trained) + len(found.held) == 2 + 6 + 21 and found.most == 10
    looked = model_paths.table(s)
    assert looked.shape == (2, 5, 5)
    inside = {a.tobytes() for a in np.asarray(found.trained)}
    assert looked[0].tobytes() not in inside


@pytest.mark.slow
def test_loss_and_answers_by_hand():
    """The loss is that of the path's tokens alone; answers are the likeliest tokens, one after the other."""
    s = Learning(**MODEL_PATHS_SMALL)
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
    s = Learning(**(MODEL_PATHS_SMALL | {"orders": 1}))
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


def test_model_paths_settings_that_are_refused():
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
