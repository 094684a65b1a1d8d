"""Long trainings: a run that is killed and resumed ends with the bits of one that was not; stages; sizes; refusals."""

import dataclasses
import functools
import json

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jaxdyn import train
from jaxdyn.data import prosqa
from jaxdyn.errors import StoreError, UsageError
from jaxdyn.nn.transformer import init
from jaxdyn.theories.coc import released
from jaxdyn.theories.coc.released import Long, Phase

TINY = Long(width=32, batch=2, problems=6, steps=6, every=2, warm=2)


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """Four problems in the form of a released file."""
    entries = [
        {
            "root": p.root,
            "target": p.target,
            "neg_target": p.negative,
            "edges": p.edges.tolist(),
            "idx_to_symbol": list(range(p.nodes)),
        }
        for p in prosqa.draw(9, 4)
    ]
    path = tmp_path_factory.mktemp("prosqa") / "test.json"
    path.write_text(json.dumps(entries), encoding="utf-8")
    return path


def same(a, b):
    jax.tree.map(np.testing.assert_array_equal, (a.records, a.state), (b.records, b.state))


@pytest.mark.slow
def test_a_killed_run_resumes_to_the_same_bits(file, tmp_path, monkeypatch):
    whole = released.run(tmp_path / "whole.run", TINY, 3, file, save_seconds=0.0)
    kinds = {prefix + name for prefix in ("", "balanced_", "tree_") for name in ("accuracy", "next")}
    assert set(whole.records) == kinds and whole.steps.tolist() == [0, 2, 4, 6]
    assert all(values.shape == (4, 7) for values in whole.records.values())
    advance = released.longrun.train.segments

    def killed(*args, **options):
        for count, state in enumerate(advance(*args, **options)):
            if count == 2:
                raise KeyboardInterrupt
            yield state

    with monkeypatch.context() as patch:
        patch.setattr(released.longrun.train, "segments", killed)
        with pytest.raises(KeyboardInterrupt):
            released.run(tmp_path / "cut.run", TINY, 3, file, save_seconds=0.0)
    same(released.run(tmp_path / "cut.run", TINY, 3, file, save_seconds=0.0), whole)
    with pytest.raises(StoreError, match="differs in seed"):
        released.run(tmp_path / "cut.run", TINY, 4, file)


SHORT = (Phase("edges", 0.2, 0, 0), Phase("trees", 0.1, 0, 0), Phase("trees", 0.3, 1, 3, 0.1), Phase("full", 0.4, 6, 6, 0.5))


def test_stages_by_phase():
    s = Long(steps=100, schedule=SHORT)
    at = [0, 19, 20, 29, 30, 39, 40, 50, 59, 60, 99, 200]
    assert [int(released.phase(s, jnp.int32(i))) for i in at] == [0, 0, 1, 1, 2, 2, 2, 2, 2, 3, 3, 3]
    assert [int(released.stage(s, jnp.int32(i))) for i in at] == [0, 0, 0, 0, 1, 1, 2, 3, 3, 6, 6, 6]


def test_the_schedule_ends_with_the_whole_method_on_full_graphs():
    last = released.SCHEDULE[-1]
    assert (last.graphs, last.first, last.last) == ("full", released.HOPS, released.HOPS)
    assert [one.graphs for one in released.SCHEDULE] == sorted((one.graphs for one in released.SCHEDULE), key=released.GRAPHS.index)


@pytest.mark.parametrize(("name", "hops", "count"), [("trees", 3, 12), ("wide", 4, 24)])
def test_trees_are_problems_with_room(name, hops, count):
    packed = released.trees(jax.random.key(0), 50, released.TREES[name])
    for edges, root, candidates, path in zip(*(np.asarray(x) for x in packed), strict=True):
        there = [tuple(e) for e in edges.tolist() if e[0] >= 0]
        assert len(there) == count and len(edges) == released.CAPS[-1]
        steps = list(zip(path[:hops], path[1 : hops + 1], strict=True))
        assert path[0] == root and all(step in there for step in steps) and set(path[hops:]) == {candidates[0]}
        assert candidates[1] not in path and candidates[1] in edges[:, 1]


INPUTS = {"coconut": (1, 2, 7), "cot": (7, 7, 7), "no_cot": (1, 1, 1), "pause": (7, 7, 7)}


@functools.cache
def objective(shape):
    return jax.jit(functools.partial(released.model.objective, shape, marks=(released.ASK, released.PAUSE)))


@pytest.mark.thinned
@pytest.mark.parametrize("method", INPUTS)
@pytest.mark.parametrize(("at", "last"), [(0, 0), (1, 1), (2, 6)])
def test_a_table_without_inputs_that_have_no_loss_has_the_loss_of_the_whole(method, at, last):
    s = dataclasses.replace(TINY, method=method)
    params = released.init(s.shape, jax.random.key(0))
    prompt = released.rendered(jax.random.key(1), released.fitting(2, 6))[0]

    def loss(how):
        return objective(s.shape)(params, jax.tree.map(jnp.asarray, how), jnp.int32(last), prompt.tokens, prompt.path)

    how = released.model.method(method, released.HOPS, 0.1)
    short = released.brief(how, last)
    np.testing.assert_allclose(loss(short), loss(how), rtol=1e-5)
    assert short.node.shape[1] == INPUTS[method][at]


def test_inputs_before_the_answer():
    assert [released.inputs(Long(method=m)) for m in ("coconut", "pause", "cot", "icot", "no_cot")] == [6, 6, 6, 0, 0]


@pytest.mark.slow
def test_training_begins_with_pointing_whatever_the_method():
    params = released.init(TINY.shape, jax.random.key(0))
    problems, key = released.by_edges(released.fitting(2, 20)), jax.random.key(1)

    def after(method, number):
        tx = released.optax.sgd(0.1)
        state = released.train.init(tx, params)._replace(step=jnp.int32(number))
        s = dataclasses.replace(TINY, method=method, steps=100, schedule=SHORT)
        return jax.jit(released.make_step(s, tx))(state, problems, key).params

    for number, alike in ((5, True), (19, True), (20, False), (80, False)):
        pair = [jax.tree.leaves(after(method, number)) for method in ("coconut", "cot")]
        assert all(np.array_equal(a, b) for a, b in zip(*pair, strict=True)) == alike


def test_pointing_keeps_six_edges_and_asks_for_one_of_them():
    packed = released.fitting(5, 20)
    keys = jax.random.split(jax.random.key(2), len(packed.root))
    point = jax.jit(jax.vmap(released.point))
    few = point(keys, packed)
    for before, edges, root, path in zip(packed.edges, few.edges, few.root, few.path, strict=True):
        few_edges = {tuple(e) for e in np.asarray(edges).tolist() if e[0] >= 0}
        assert len(few_edges) == released.FEW and few_edges <= {tuple(e) for e in np.asarray(before).tolist()}
        assert (int(root), int(path[1])) in few_edges and int(path[0]) == int(root) and len(set(np.asarray(path[1:]).tolist())) == 1
    again = point(jax.random.split(jax.random.key(3), len(keys)), packed)
    assert np.mean(np.any(np.asarray(few.edges) != np.asarray(again.edges), (1, 2))) > 0.9  # not always the same edges


@pytest.mark.slow
def test_accuracy_over_blocks_is_that_over_all_problems(monkeypatch):
    blocks = released.rendered(jax.random.key(0), released.fitting(4, 30))
    assert len(blocks) >= 3
    monkeypatch.setattr(released, "accuracy", lambda s, params, one: {"accuracy": jnp.mean(one.path[:, 1:] == params, 0)})
    whole = np.concatenate([one.path for one in blocks])[:, 1:] == 5
    found = released.judged(TINY, jnp.int32(5), blocks)["accuracy"]
    np.testing.assert_allclose(found, whole.mean(0), rtol=1e-6)


def test_problems_have_room():
    packed = released.fitting(0, 30)
    assert packed.edges.shape[1:] == (60, 2) and packed.path.shape[1] == 7 and len(packed.root) >= 24


def shape(p):
    """A number that graphs share which are the same up to names: colours refined by those of the neighbours."""
    colors = np.zeros(p.nodes, int).tolist()
    for _ in range(5):
        ends = p.edges.tolist(), p.edges[:, ::-1].tolist()
        near = [[tuple(sorted(colors[b] for a, b in side if a == v)) for side in ends] for v in range(p.nodes)]
        colors = [hash((color, *sides)) for color, sides in zip(colors, near, strict=True)]
    return hash(tuple(sorted(colors)))


@pytest.mark.slow
def test_balanced_problems_have_no_graph_of_the_training_problems():
    trained = {shape(p) for p in prosqa.draw(0, 60)}
    assert trained & {shape(p) for p in prosqa.draw(0, 60, "balanced")}  # with one seed the variants share graphs
    assert not trained & {shape(p) for p in prosqa.draw(released.APART, 60, "balanced")}


def test_problems_are_sorted_by_edges():
    packed = released.fitting(1, 60)
    edges, begins, packed = (np.sum(np.asarray(packed.edges)[:, :, 0] >= 0, -1), *reversed(released.by_edges(packed)))
    found = np.sum(np.asarray(packed.edges)[:, :, 0] >= 0, -1)
    assert np.array_equal(found, np.sort(edges)) and begins[0] == 0 and begins[-1] == len(edges)
    for cap, a, b in zip(released.CAPS, begins[:-1], begins[1:], strict=True):
        assert np.all(found[a:b] <= cap) and np.all(found[b:] > cap)


@pytest.mark.slow
def test_the_cut_takes_padding_only():
    problems = released.by_edges(released.fitting(2, 40))
    prompts = released.render(jax.random.split(jax.random.key(0), len(problems.packed.root)), problems.packed)
    begins = problems.begins.tolist()
    for cap, a, b in zip(released.CAPS, begins[:-1], begins[1:], strict=True):
        short = released.cut(jax.tree.map(lambda x, a=a, b=b: x[a:b], prompts), cap).tokens
        assert short.shape == (b - a, 3 * cap + 5)
        dropped = np.asarray(prompts.tokens[a:b, : -short.shape[1]])
        eos = released.token(released.NAMES, "<eos>")
        assert np.all(dropped == eos) and np.all(short[:, 0] == eos)


@pytest.mark.slow
def test_each_size_is_sampled_as_often_as_it_occurs(monkeypatch):
    def counted(loss, tx, batch, parts):
        return lambda state, *data: state._replace(opt=state.opt.at[batch(state.step, *data)[1].tokens.shape[1]].add(1))

    monkeypatch.setattr(released.train, "make_step", counted)
    problems, draws = released.by_edges(released.fitting(3, 200)), 4000
    schedule = (Phase("edges", 0.1, 0, 0), Phase("trees", 0.2, 0, 0), Phase("trees", 0.1, 1, 3), Phase("full", 0.6, 0, 6))
    step, key = released.make_step(dataclasses.replace(TINY, steps=1000, schedule=schedule), optax.identity()), jax.random.key(0)
    lengths = [released.prosqa_tokens.prompt_length(cap) for cap in (released.FEW, released.TREES["trees"].edges, *released.CAPS)]

    def one(i, opt):
        return step(released.train.State(None, opt, i), problems, key).opt

    found = jax.jit(lambda: jax.lax.fori_loop(0, draws, one, jnp.zeros(max(lengths) + 1, jnp.int32)))()[jnp.asarray(lengths)]
    shares = np.diff(problems.begins) / int(problems.begins[-1])
    assert found[:2].tolist() == [100, 300] and found.sum() == draws
    assert np.all(np.abs(found[2:] / (draws - 400) - shares) < 4 * np.sqrt(shares * (1 - shares) / draws))


@pytest.mark.slow
def test_a_step_by_parts_is_that_of_the_whole_batch(monkeypatch):
    s = dataclasses.replace(TINY, batch=4, schedule=(Phase("trees", 1.0, 1, 1, 0.5),))
    tx = optax.sgd(1.0)
    data = released.by_edges(released.fitting(0, 6)), jax.random.key(2)
    start = train.init(tx, init(s.shape, jax.random.key(1)))

    def change(part):
        monkeypatch.setattr(released, "PART", part)
        after = jax.jit(released.make_step(s, tx))(start, *data).params
        return jax.tree.map(jnp.subtract, after, start.params)

    whole, parts = change(4), change(1)
    most = max(float(jnp.abs(x).max()) for x in jax.tree.leaves(whole))
    assert most > 1e-3
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5 * most), parts, whole)


def test_the_rate_rises_and_falls():
    s = Long(steps=1000, warm=10, lr=2.0, width=64)
    at = [float(released.rate(s, jnp.float32(i))) for i in (0, 9, 749, 875, 999)]
    np.testing.assert_allclose(at, [0.2, 2, 2, 1, 0.2], rtol=1e-2)


def test_refused_trainings():
    with pytest.raises(UsageError, match="method is one of"):
        Long(method="other")
    with pytest.raises(UsageError, match="batch is at least 1"):
        Long(batch=0)
    with pytest.raises(UsageError, match="width is a multiple of 32"):
        Long(width=48)
    with pytest.raises(UsageError, match="sum to 1"):
        Long(schedule=SHORT[:-1])
    for wrong in (Phase("forest", 1.0, 0, 0), Phase("full", 1.0, 2, 7), Phase("full", 1.0, 2, 1), Phase("full", 1.0, 0, 6, 1.5)):
        with pytest.raises(UsageError, match="phases have graphs of edges, trees, wide, full, and stages from 0 to 6"):
            Long(schedule=(wrong,))
