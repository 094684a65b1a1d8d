"""Coconut: training on small graphs, what is measured of thoughts and paths, and judges on made-up runs.

Groups of nodes and edges, walks and shortcuts against plain Python; attention and hidden states against the cached pass.

Tables of methods, and the objective of each against a text that is read as a whole.
"""

import json

import jax
import jax.numpy as jnp
import networkx as nx
import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure
from scipy.special import logsumexp

import jaxdyn as jd
from jaxdyn.data import prosqa, reachability
from jaxdyn.engine.claims.edits import Off
from jaxdyn.engine.judging.check import all_passed, holds
from jaxdyn.errors import UsageError
from jaxdyn.nn import Transformer, thoughts
from jaxdyn.nn.transformer import apply as transformer_apply
from jaxdyn.nn.transformer import init
from jaxdyn.theories.coc import curriculum, latent_thoughts, model, outcomes, published, released, training
from jaxdyn.theories.coc.model import Posed
from jaxdyn.theories.coc.prosqa_graphs import FORMS, STATISTICS, TOLERANCE, Graphs, Rule, described, grow, judge, searched
from jaxdyn.theories.coc.training import AMONG, EDITS, WAYS, Training, marks, sample_problems, shape, trial
from tests.data.test_prosqa import RELEASED, needs_files
from tests.nn.drawn import weights

# A short training by every method in one program; stages; rates; groups of nodes by hand.

TINY_FIELDS = {"width": 8, "hidden": 8, "batch": 4, "samples": 2, "every": 2.0, "graphs": 12}


@pytest.mark.slow  # a verification runs the same trial, at its full size
def test_every_method_runs_in_one_program():
    ds = jd.sweep(trial, jd.grid(Training, recipe=list(model.METHODS), **TINY_FIELDS), 2)
    assert bool(np.isfinite(ds.loss).all()) and ds.measured_ablated.dims[-1] == "way"
    none = {"no_thoughts", "icot", "no_cot"}
    for name in model.METHODS:
        run = ds.sel(recipe=name)
        own = run.measured_answered.isel(inputs=0 if name in none else -1)
        np.testing.assert_array_equal(run.measured_accuracy, own)
    ablated = ds.sel(recipe="pause_as_thought").measured_ablated
    for way in ("another's", "pause"):  # a pause is the same in all examples
        np.testing.assert_array_equal(ablated.sel(way="kept"), ablated.sel(way=way))


def test_stages():
    s = Training(every=10.0, samples=10, first=0.4)
    steps = jnp.asarray([0, 39, 40, 69, 71, 99, 150])
    assert [int(training.stage(s, i)) for i in steps] == [0, 0, 1, 1, 2, 2, 2]


def test_the_rate_rises_and_falls():
    s = Training(lr=1.0, every=100.0, samples=10)
    rates = [float(training.rate(s, jnp.int32(i))) for i in (0, 24, 49, 750, 875, 999)]
    np.testing.assert_allclose(rates, [0.02, 0.5, 1, 1, 0.5, 0.1], atol=1e-6)


def test_gaps_by_hand():
    s = Training(graphs=3)
    posed = jax.device_get(jax.jit(lambda key: training.sample_problems(s, key, 3))(jax.random.key(0)))
    products = np.random.default_rng(0).normal(size=(2, 3, training.sizes(s).nodes)).astype(np.float32)
    got = np.asarray(jax.jit(model.gaps)(products, posed))
    for i in (1, 2):
        for g in range(3):
            away, best = posed.away[g], posed.problem.path[g, i]
            nodes = np.arange(away.size)
            front, near, far = away == i, away < i, away > i
            nested = [nodes == best, front, front | near, far]
            disjoint = [nodes == best, front & (nodes != best), near, far]
            for kind, groups in enumerate((nested, disjoint)):
                means = [products[i - 1, g][group].mean() for group in groups]
                np.testing.assert_allclose(got[kind, i - 1, :, g], -np.diff(means), rtol=1e-4, atol=1e-5)


# What is read of methods, on made-up accuracies.

CURRICULUM_WAVE = np.array([0.002, -0.002, 0.001, -0.001])


def made_curricula(**means):
    data = np.array([m + CURRICULUM_WAVE * (1 + k) for k, m in enumerate(means.values())])
    return xr.Dataset({"measured_accuracy": (("recipe", "seed"), data)}, {"recipe": list(means), "seed": range(4)})


def read(ds):
    return {r.name: r for r in curriculum.judge_curriculum(ds)}


def test_each_method_is_compared_with_coconut_start_by_start():
    readings = read(made_curricula(coconut=0.95, no_curriculum=0.5, pause=0.7))
    gap = readings["accuracy of Coconut minus that of no_curriculum"]
    assert gap.value == pytest.approx(0.45) and gap.interval[0] > 0.44
    assert readings["accuracy of Coconut minus that of pause"].value == pytest.approx(0.25)
    assert readings["accuracy of no_curriculum"].value == pytest.approx(0.5)


def test_starts_from_which_coconut_learned_nothing_count():
    ds = made_curricula(coconut=0.95, no_curriculum=0.5)
    ds.measured_accuracy[0, 0] = 0.5
    readings = read(ds)
    gap = readings["accuracy of Coconut minus that of no_curriculum"]
    assert gap.value < 0.36 and gap.interval[0] < 0


def test_starts_of_which_none_learned_are_read_as_well():
    """The reading is not of lucky starts alone."""
    readings = read(made_curricula(coconut=0.5, no_curriculum=0.2))
    assert readings["accuracy of Coconut"].value == pytest.approx(0.5)


def test_methods_that_are_compared_are_needed():
    with pytest.raises(jd.Inconclusive, match="no_curriculum"):
        curriculum.judge_curriculum(made_curricula(coconut=0.95))


# The figure of right answers along long trainings.

RULES = {"short": {"file": 60.0, "balanced": 90.0}, "long": {"file": 80.0, "balanced": 50.0}}


def run(method, steps, shift):
    accuracy = [shift + float(x) for x in range(len(steps))]
    return {"method": method, "steps": steps, "accuracy": accuracy, "balanced": [x / 2 for x in accuracy]}


def test_two_lines_per_run_one_label_per_method_and_the_best_rule_on_the_file():
    ax = Figure().subplots()
    courses = [run("coconut", [0, 5, 10], 1.0), run("cot", [0, 5], 20.0), run("coconut", [0, 5, 10], 40.0), {"method": "no_cot"}]
    released.along(ax, courses, RULES)
    *lines, rule = ax.lines
    assert len(lines) == 6 and set(np.asarray(rule.get_ydata())) == {80.0}
    for one, (solid, dotted) in zip(courses, zip(lines[::2], lines[1::2], strict=True), strict=False):
        assert list(solid.get_xdata()) == list(dotted.get_xdata()) == one["steps"]
        assert list(solid.get_ydata()) == one["accuracy"] and list(dotted.get_ydata()) == one["balanced"]
        assert solid.get_color() == dotted.get_color() and dotted.get_linestyle() == ":"
    assert lines[0].get_color() == lines[4].get_color() != lines[2].get_color()
    labels = [line.get_label() for line in lines if not line.get_label().startswith("_")]
    assert labels == ["coconut", "coconut, balanced problems", "cot", "cot, balanced problems"]


# Graphs of ProsQA grown in JAX: rules of growth, distances and paths by hand, and the statistics of the generator in numpy.

NAMES = dict(zip(STATISTICS, ("nodes", "edges", "length", "paths"), strict=True))


def rule(form, nodes=28.0):
    derived = float(form == "derived")
    return Rule(derived, nodes - 2 * (1 - derived), 1.5, 1.5)


@pytest.mark.parametrize("form", FORMS)
def test_labels_and_depths_follow_from_the_edges(form):
    with jax.enable_x64(True):
        grown = jax.vmap(lambda k: grow(k, rule(form, 20.0), 20))(jax.random.split(jax.random.key(3), 20))
    last = 20 if form == "derived" else 18
    for edges, label, depth in zip(*map(np.asarray, grown), strict=True):
        assert not np.tril(edges).any() and not edges[:, last:].any() and not edges[:, :2].any()
        assert np.all((label >= 0) == (np.arange(20) < last)) and label[:2].tolist() == [1, 2]
        for node in range(2, last):
            parents = np.flatnonzero(edges[:, node])
            assert label[node] == np.bitwise_or.reduce(label[parents], initial=0)
            assert depth[node] == (1 + depth[parents].min() if parents.size else 0)


def test_steps_and_paths_by_hand():
    edges = np.zeros((6, 6), bool)
    for a, b in ((0, 2), (0, 3), (2, 4), (3, 4), (1, 5), (0, 4)):
        edges[a, b] = True
    with jax.enable_x64(True):
        away, paths = searched(jnp.asarray(edges), 0)
        assert away.tolist() == [0, 6, 1, 1, 1, 6] and paths.tolist() == [1, 0, 1, 1, 1, 0]
        away, paths = searched(jnp.asarray(edges & ~(np.arange(6) == 4) | edges & (np.arange(6) > 0)[:, None]), 0)
        assert away.tolist() == [0, 6, 1, 1, 2, 6] and paths[4] == 2


@pytest.mark.slow
@pytest.mark.parametrize(("form", "variant"), [("printed", "printed"), ("derived", "released")])
def test_statistics_are_those_of_the_generator(form, variant):
    with jax.enable_x64(True):
        keys = jax.random.split(jax.random.key(0), 2000)
        numbers, taken = map(np.asarray, jax.jit(jax.vmap(lambda k: described(k, rule(form), 28)))(keys))
    theirs = prosqa.statistics(prosqa.draw(11, 600, variant))
    for column, name in enumerate(NAMES.values()):
        ours = numbers[taken, column]
        error = np.hypot(ours.std() / len(ours) ** 0.5, theirs[name].std() / 600**0.5)
        assert abs(ours.mean() - theirs[name].mean()) < 3.5 * error, name
    assert 0.2 < taken.mean() < 0.95


# Judges of thoughts on made-up runs.

THOUGHTS_WAVE = np.array([0.01, -0.01, 0.005, -0.005])[:, None]


def made_thoughts(
    ablated=(0.95, 0.1, 0.1, 0.1, 0.02, 0.3), answered=(0.02, 0.1, 0.95), edited=(0.9, 0.8), fall=(0.3, 0.2), error=0.02
):
    rows = {
        "ablated": (ablated, "way"),
        "answered": (answered, "inputs"),
        "edited": (edited, "edit"),
        "fall": (fall, "among"),
    }
    data = {f"measured_{name}": (("seed", dim), np.array(values) + THOUGHTS_WAVE) for name, (values, dim) in rows.items()}
    data["measured_lost_error"] = (("seed", "way"), np.full((4, len(WAYS)), error))
    coords = {"seed": range(4), "way": list(WAYS), "edit": list(EDITS), "inputs": range(3), "among": list(AMONG)}
    return xr.Dataset(data, coords)


CHECKED = (latent_thoughts.judge_ablation, latent_thoughts.judge_count, latent_thoughts.judge_edit)
READ = (latent_thoughts.judge_order, latent_thoughts.judge_entropy)


def readings_by_name(judge, ds):
    return {r.name: r for r in judge(ds)[1:]}


def test_all_hold_where_thoughts_carry_the_answer():
    ds = made_thoughts()
    assert all(all_passed(judge(ds)) is True for judge in CHECKED)
    lost = readings_by_name(latent_thoughts.judge_order, ds)[latent_thoughts.EXCHANGED]
    np.testing.assert_allclose(lost.value, 0.65)
    fall = readings_by_name(latent_thoughts.judge_entropy, ds)
    np.testing.assert_allclose([reading.value for reading in fall.values()], 0.3)


def test_rivals_speak_of_checks_and_readings_and_differ_from_them():
    ds = made_thoughts()
    for claim in latent_thoughts.CLAIMS[:5]:
        seen = {c.name: c for c in claim.judge(ds)}
        for rival in claim.rivals.values():
            says = rival.rival if isinstance(rival, Off) else rival
            numbers = {name: value(ds) if callable(value) else value for name, value in says.items()}
            assert set(numbers) <= set(seen)
            if claim.expected == "upheld":
                assert any(holds(seen[name].bound, value) is False for name, value in numbers.items())


def test_what_is_left_of_the_answer_without_the_edit():
    np.testing.assert_allclose([says(made_thoughts()) for says in latent_thoughts.UNEDITED.values()], 0.06)


def test_pauses_fed_for_thoughts_lose_nothing_when_thoughts_are_changed():
    ds = made_thoughts()
    assert all_passed(latent_thoughts.judge_ablation(latent_thoughts.PAUSED(ds))) is False
    np.testing.assert_array_equal(latent_thoughts.PAUSED(ds).measured_ablated.sel(way="kept"), ds.measured_ablated.sel(way="pause"))


def test_one_way_that_costs_nothing_is_enough():
    assert all_passed(latent_thoughts.judge_ablation(made_thoughts(ablated=(0.95, 0.9, 0.1, 0.1, 0.1, 0.1)))) is False
    assert all_passed(latent_thoughts.judge_count(made_thoughts(answered=(0.02, 0.9, 0.95)))) is False
    assert all_passed(latent_thoughts.judge_edit(made_thoughts(edited=(0.9, 0.1)))) is False


def test_what_few_graphs_leave_open_is_undecided():
    ds = made_thoughts(ablated=(0.95, 0.65, 0.1, 0.1, 0.1, 0.1))
    assert all_passed(latent_thoughts.judge_ablation(ds)) is True
    assert all_passed(latent_thoughts.judge_ablation(ds.assign(measured_lost_error=ds.measured_lost_error * 3))) is None


def test_the_gate_asks_for_a_network_that_answers():
    assert latent_thoughts.judge_count(made_thoughts(answered=(0.0, 0.1, 0.5)))[0].passed is False


# The gate on networks that learned the task, at its threshold.


def made_learned(*last):
    data = np.stack([np.zeros(len(last)), np.array(last)], 1)
    return xr.Dataset({"measured_answered": (("seed", "inputs"), data)}, {"seed": range(len(last)), "inputs": range(2)})


def test_networks_at_the_threshold_count():
    gate, flags = training.able(made_learned(0.79, 0.8, 1.0))
    assert gate.passed is True and flags.values.tolist() == [False, True, True]
    np.testing.assert_array_equal(training.learners(made_learned(0.79, 0.8, 1.0)), flags)


def test_one_network_is_not_enough():
    assert training.able(made_learned(0.79, 0.95))[0].passed is False


def test_where_fewer_than_two_learned_all_count():
    two, one = made_learned(0.79, 0.8, 1.0), made_learned(0.79, 0.5, 1.0)
    assert training.among_learners(two.seed, training.learners(two)).notnull().values.tolist() == [False, True, True]
    assert training.among_learners(one.seed, training.learners(one)).notnull().values.tolist() == [True, True, True]


def test_figures_show_networks_that_learned_or_all():
    assert training.shown(made_learned(0.79, 0.8, 1.0)).seed.values.tolist() == [1, 2]
    assert training.shown(made_learned(0.1, 0.2)).sizes["seed"] == 2


# Classes of written paths by hand, the loss of a stage against plain sums, and what greedy writing feeds back.

TINY_TRAINING = Training(width=8, hidden=8, heads=1, graphs=4, batch=4, every=2.0, samples=2)


def posed(count):
    """The same graph ``count`` times: 0 -> 1, 2; 1 -> 3, 4; the other family 5 -> 6 -> 7."""
    edges = np.array([(0, 1), (0, 2), (1, 3), (1, 4), (5, 6), (6, 7)])
    away = np.array([0, 1, 1, 2, 2, 3, 3, 3])
    problem = reachability.Problem(edges, np.array([0, 5]), np.array([3, 7]), np.array(True), np.array([0, 1, 3]))
    problem, away = jax.tree.map(lambda x: jnp.asarray(np.stack([x] * count)), (problem, away))
    return Posed(problem, jnp.zeros((count, 1), jnp.int32), away)


@pytest.mark.parametrize(
    ("thoughts", "nodes", "answers", "classes"),
    [
        (0, [(1, 3), (1, 4), (2, 3), (6, 7), (3, 3)], [7] * 5, [0, 1, 2, 2, 2]),
        (1, [(9, 3), (9, 4), (9, 2), (9, 7), (0, 1)], [7] * 5, [0, 1, 2, 2, 2]),
        (2, [(0, 0), (0, 0)], [3, 7], [0, 1]),
    ],
)
def test_classes_by_hand(thoughts, nodes, answers, classes):
    found = outcomes.classified(jnp.asarray(nodes).T, jnp.asarray(answers), posed(len(nodes)), jnp.int32(thoughts))
    assert [outcomes.CLASSES[k] for k in found.tolist()] == [outcomes.CLASSES[k] for k in classes]


@pytest.mark.slow
@pytest.mark.parametrize("now", [0, 1, 2])
def test_the_loss_is_of_what_is_left_to_write(now):
    params = init(shape(TINY_TRAINING), jax.random.key(0))
    asked = sample_problems(TINY_TRAINING, jax.random.key(1), 4)
    path = np.asarray(asked.problem.path)

    def feed(hidden, j):
        return hidden if int(j) < now else params["embed"][path[:, min(int(j) + 1, 2)]]

    with jax.disable_jit():
        out = model.outputs(shape(TINY_TRAINING), params, asked.tokens, feed, TINY_TRAINING.hops, marks(TINY_TRAINING)[0])
    nats = lambda logits, node: -np.asarray(jax.nn.log_softmax(logits))[np.arange(4), node]  # noqa: E731
    each = [nats(out.logits[j], path[:, j + 1]) for j in range(now, 2)] + [nats(out.answer[-1], path[:, -1])]
    np.testing.assert_allclose(float(outcomes.loss(TINY_TRAINING, params, jnp.int32(now), asked)), np.mean(each), rtol=1e-4)


@pytest.mark.slow
def test_what_is_written_is_fed_back():
    params = init(shape(TINY_TRAINING), jax.random.key(0))
    asked = sample_problems(TINY_TRAINING, jax.random.key(1), 4)
    nodes, answer = outcomes.written(TINY_TRAINING, params, asked, jnp.int32(0))
    fed = lambda hidden, j: params["embed"][nodes[jnp.minimum(j, 1)]]  # noqa: E731
    again = model.outputs(shape(TINY_TRAINING), params, asked.tokens, fed, TINY_TRAINING.hops, marks(TINY_TRAINING)[0])
    assert nodes.shape == (2, 4) and int(nodes.max()) < reachability.Sizes().nodes
    np.testing.assert_array_equal(jnp.argmax(again.logits[:2, :, : reachability.Sizes().nodes], -1), nodes)
    np.testing.assert_array_equal(jnp.argmax(again.answer[-1], -1), answer)


# Statistics of ProsQA: the judge on numbers made by hand, the printed numbers, and the released files where they are.


def data(factors):
    """Means that are these multiples of the printed ones, with a spread of a thousandth over eight seeds."""
    printed = np.array(list(published.GRAPHS.values()))
    spread = 1 + 1e-3 * np.linspace(-1, 1, 8)[:, None]
    coords = {"statistic": list(STATISTICS)}
    return xr.Dataset(
        {
            "predicted_statistic": (("seed", "statistic"), printed * np.array(factors) * spread),
            "measured_statistic": (("seed", "statistic"), np.broadcast_to(printed, (8, 4))),
        },
        coords,
    )


def test_each_statistic_has_its_tolerance():
    assert [c.passed for c in judge(data([1.0] * 4))] == [True] * 4
    for place, off in enumerate(TOLERANCE):
        for factor in (1 - 1.5 * off, 1 + 1.5 * off):
            factors = [1.0] * 4
            factors[place] = factor
            assert [c.passed for c in judge(data(factors))] == [i != place for i in range(4)]


def test_graphs_fit_their_matrix():
    with pytest.raises(UsageError, match="nodes is at most largest"):
        Graphs(nodes=30.0)


@needs_files
def test_released_files_have_the_printed_sizes_and_statistics():
    sizes = [len(json.loads((RELEASED / f"{name}.json").read_text(encoding="utf-8"))) for name in ("valid", "test")]
    assert tuple(sizes) == published.SETS["ProsQA"][1:]
    theirs = prosqa.statistics(prosqa.load(RELEASED / "valid.json") + prosqa.load(RELEASED / "test.json"))
    for (name, printed), off in zip(published.GRAPHS.items(), TOLERANCE, strict=True):
        assert abs(theirs[name].mean() / printed - 1) < off, name


SIZES = [reachability.Sizes(2, 2), reachability.Sizes(3, 2), reachability.Sizes(3, 3)]
COUNT = 12


def sampled(sizes, seed=0):
    keys = jax.random.split(jax.random.key(seed), COUNT)
    return jax.device_get(jax.jit(lambda k: model.pose(jax.vmap(lambda one: reachability.draw(one, sizes))(k), sizes))(keys))


def one(problem, g):
    return jax.tree.map(lambda x: x[g], problem)


def graph(edges):
    return nx.DiGraph(np.asarray(edges).tolist())


def ends(edges, root, steps):
    """Ends of walks of 0 to ``steps`` edges, from all walks written out."""
    out = [[root]]
    for _ in range(steps):
        out.append([b for at in out[-1] for a, b in edges.tolist() if a == at])
    return [set(at) for at in out]


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [*SIZES[:1], *(pytest.param(s, marks=pytest.mark.slow) for s in SIZES[1:])])
def test_walks_of_trees_end_at_their_length_and_shortcuts_part_the_two(sizes):
    of = sampled(sizes)
    cut, nodes = jax.device_get(model.shortcut(of))
    for g in range(COUNT):
        for problem, parted in ((one(of.problem, g), False), (one(cut, g), True)):
            root, node = int(problem.roots[0]), int(nodes[g])
            found = np.asarray(model.walks(problem, sizes, sizes.hops))
            away = np.asarray(reachability.levels(problem, sizes))
            assert [set(np.flatnonzero(at)) for at in found] == ends(problem.edges, root, sizes.hops)
            by_distance = [set(np.flatnonzero(away == i)) for i in range(sizes.hops + 1)]
            same = [set(np.flatnonzero(at)) == level for at, level in zip(found, by_distance, strict=True)]
            assert all(same) is not parted
            if parted:
                assert away[node] == 1 and found[2, node] and node not in by_distance[2]


@pytest.mark.thinned
@pytest.mark.parametrize("sizes", SIZES)
def test_a_shortcut_replaces_one_idle_edge_of_the_other_family(sizes):
    of = sampled(sizes, 1)
    cut, nodes = jax.device_get(model.shortcut(of))
    for g in range(COUNT):
        old, new = (set(map(tuple, p.edges[g].tolist())) for p in (of.problem, cut))
        (gone,), (added,) = old - new, new - old
        root, other = of.problem.roots[g].tolist()
        assert added == (root, nodes[g]) and nodes[g] not in of.problem.path[g] and of.away[g, nodes[g]] == 2
        assert of.away[g, gone[0]] == of.away[g, gone[1]] == sizes.hops + 1
        negative = int(of.problem.candidates[g, 1])
        assert negative in nx.descendants(graph(cut.edges[g]), other)


def test_groups_of_edges_by_hand():
    sizes = reachability.Sizes(3, 2)
    of = sampled(sizes)
    groups = np.asarray(jnp.stack(model.edge_groups(of, 3)))
    values = np.random.default_rng(0).normal(size=(3, COUNT, sizes.edges))
    differences = np.asarray(model.between(jnp.asarray(values, jnp.float32), tuple(jnp.asarray(x) for x in groups)))
    for i in (1, 2, 3):
        for g in range(COUNT):
            edges, path = of.problem.edges[g].tolist(), of.problem.path[g].tolist()
            lengths = nx.single_source_shortest_path_length(graph(edges), path[0])
            away = [lengths.get(a, 9) for a, _ in edges]
            expected = [
                [e == path[i - 1 : i + 1] for e in edges],
                [a == i - 1 for a in away],
                [a <= i - 1 for a in away],
                [a > i - 1 for a in away],
            ]
            np.testing.assert_array_equal(groups[:, i - 1, g], expected)
            means = [values[i - 1, g][np.array(group)].mean() for group in expected]
            np.testing.assert_allclose(differences[i - 1, :, g], -np.diff(means), atol=1e-5)


@pytest.mark.slow
def test_one_pass_gives_the_hidden_states_of_the_cached_one_and_attention_by_edge():
    sizes = reachability.Sizes(2, 2)
    shape = Transformer(
        vocabulary=sizes.vocabulary, width=8, layers=2, heads=2, hidden=8, tied=True, scan=False, base=64.0, std=0.5
    )
    params, of = init(shape, jax.random.key(3)), sampled(sizes)
    hidden = thoughts.think(shape, params, of.tokens, 2)
    x = jnp.concatenate([params["embed"][of.tokens], jnp.moveaxis(hidden[:2], 0, 1)], 1)
    out, maps = model.passed(shape, params, x)
    np.testing.assert_allclose(out[:, -3:], jnp.moveaxis(hidden, 0, 1), atol=1e-5)
    seen = model.edges_seen(maps[-1], sizes.edges, 2)
    last = sizes.prompt - 1
    assert int(of.tokens[0, last]) == int(of.problem.roots[0, 0])
    for i in (0, 1):
        for e in range(sizes.edges):
            np.testing.assert_array_equal(of.tokens[:, 1 + 3 * e : 3 + 3 * e], of.problem.edges[:, e])
            by_hand = np.asarray(maps[-1])[:, :, last + i, 1 + 3 * e : 4 + 3 * e].sum(-1).mean(1)
            np.testing.assert_allclose(seen[i, :, e], by_hand, rtol=1e-5)


def test_open_children_is_the_entropy_among_the_nodes_at_a_distance():
    of = sampled(reachability.Sizes(2, 2))
    products = np.random.default_rng(1).normal(size=(2, COUNT, 10)).astype(np.float32)
    found = np.asarray(model.open_children(products, of))
    for i in (1, 2):
        for g in range(COUNT):
            p = np.exp(products[i - 1, g][of.away[g] == i])
            p /= p.sum()
            np.testing.assert_allclose(found[i - 1, g], -(p * np.log(p)).sum(), rtol=1e-4)


SHAPE = Transformer(vocabulary=9, width=8, layers=2, heads=2, hidden=6, std=0.5, tied=True, dtype="float64", scan=False)
TOKENS = np.asarray([[1, 4, 2, 6, 3], [0, 0, 5, 2, 1], [3, 2, 1, 1, 0]])
PATH = np.asarray([[3, 1, 2], [1, 0, 4], [0, 5, 1]])
ASK, PAUSE, HOPS = 7, 8, 2

# One program each: by itself every operation would be compiled.
whole = jax.jit(thoughts.whole, static_argnums=(0, 3))
transformer_apply = jax.jit(transformer_apply, static_argnums=0)
objectives = jax.jit(model.objective, static_argnums=(0, 6))


@pytest.fixture
def params(x64):
    return weights(SHAPE)


def arrays(name, mixing=0.0):
    return jax.tree.map(jnp.asarray, model.method(name, HOPS, mixing))


def nats(logits, target):
    return logsumexp(logits, -1) - np.take_along_axis(np.asarray(logits), np.asarray(target)[..., None], -1)[..., 0]


@pytest.mark.parametrize("name", model.METHODS)
@pytest.mark.parametrize("mixing", [0.0, 0.3, 1.0])
def test_weights_of_a_stage_sum_to_one(name, mixing):
    how = model.method(name, 3, mixing)
    np.testing.assert_allclose(how.node.sum((1, 2)) + how.answer.sum(1), 1)


def test_mixing_spreads_over_the_stages_so_far():
    how = model.method("coconut", 2, 0.3)
    np.testing.assert_allclose(how.node[1], [[0.15, 0], [0, 0.85], [0, 0]])
    np.testing.assert_allclose(how.answer[2], [0, 0, 0.8])


def objective(params, name, stage):
    return float(objectives(SHAPE, params, arrays(name), np.int32(stage), TOKENS, PATH, (ASK, PAUSE)))


def text(params, *columns):
    """Logits at the end and before each of these further columns of tokens."""
    more = [np.full(len(TOKENS), c) if isinstance(c, int) else c for c in columns]
    logits = transformer_apply(SHAPE, params, np.concatenate([TOKENS, *(c[:, None] for c in more)], 1))
    return np.asarray(logits)[:, TOKENS.shape[1] - 1 :]


@pytest.mark.slow
def test_chains_of_text(params):
    logits = text(params, PATH[:, 1], PATH[:, 2], ASK)
    expected = (nats(logits[:, 0], PATH[:, 1]) + nats(logits[:, 1], PATH[:, 2]) + nats(logits[:, 3], PATH[:, 2])).mean() / 3
    assert objective(params, "cot", 2) == pytest.approx(float(expected))
    logits = text(params, PATH[:, 2], ASK)
    expected = (nats(logits[:, 0], PATH[:, 2]) + nats(logits[:, 2], PATH[:, 2])).mean() / 2
    assert objective(params, "icot", 1) == pytest.approx(float(expected))


@pytest.mark.parametrize(("name", "stage"), [("no_cot", 0), ("no_thoughts", 2), ("icot", 2)])
def test_answers_without_inputs(params, name, stage):
    expected = nats(text(params, ASK)[:, 1], PATH[:, 2]).mean()
    assert objective(params, name, stage) == pytest.approx(float(expected))


@pytest.mark.parametrize(("name", "stage"), [("pause", 0), ("pause", 2), ("pause_as_thought", 2)])
def test_pauses(params, name, stage):
    expected = nats(text(params, PAUSE, PAUSE, ASK)[:, 3], PATH[:, 2]).mean()
    assert objective(params, name, stage) == pytest.approx(float(expected))


def test_thoughts_of_each_stage(params):
    hidden = np.asarray(whole(SHAPE, params, TOKENS, HOPS))
    for stage in range(HOPS):
        expected = nats(hidden[stage] @ params["embed"].T, PATH[:, stage + 1]).mean()
        assert objective(params, "coconut", stage) == pytest.approx(float(expected))
    embed = np.asarray(params["embed"])
    asked = np.broadcast_to(embed[ASK], (len(TOKENS), 1, 8))
    x = np.concatenate([embed[TOKENS], np.moveaxis(hidden[:HOPS], 0, 1), asked], 1)
    last = np.asarray(jax.jit(lambda p: thoughts.forward(SHAPE, p, x))(params))[:, -1]
    expected = nats(last @ embed.T, PATH[:, 2]).mean()
    for name, stage in (("coconut", 2), ("no_curriculum", 0)):
        assert objective(params, name, stage) == pytest.approx(float(expected))
