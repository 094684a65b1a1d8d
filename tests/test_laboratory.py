"""The laboratory: its data, a run against a loop written by hand, and studies and what they say."""

import concurrent.futures as cf
import dataclasses
import json
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import nn, optim
from jaxdyn.errors import StoreError, UsageError
from jaxdyn.instruments.law import Law, sides
from jaxdyn.instruments.moment import Moment, batch_loss
from jaxdyn.instruments.registry import instruments, laws, watched
from jaxdyn.laboratory import course, results
from jaxdyn.laboratory.lab import order, study
from jaxdyn.laboratory.setting import Bench, asked, method_of, observed, shape_of, task_of, training_of
from jaxdyn.laboratory.tasks import NAMES, ORDER, TASKS
from jaxdyn.laboratory.trial import Lab, trial, watched_of
from jaxdyn.laboratory.variants import VARIANTS
from jaxdyn.report import laboratory as pages
from jaxdyn.status import DIVERGED, OK

SMALL = {"data": "facts", "width": 8, "layers": 1, "steps": 6, "every": 3, "batch": 48, "reading": 48, "lr": 0.1}
NORM = Law(
    name="norm",
    title="The read-out's entries move by the sum of its gradients",
    theory="",
    source="",
    read=lambda moment: {"head": moment.params["head"][:2, :3], "gradient": moment.gradient["head"][:2, :3]},
    own=("head",),
    measure=lambda own: own["head"] - own["head"][:1],
    predict=lambda others: -others["lr"] * jnp.cumsum(jnp.concatenate([0 * others["gradient"][:1], others["gradient"][:-1]]), 0),
    dims="row col",
    bound=1e-4,
)


# data


@pytest.mark.parametrize("name", TASKS)
def test_sequences_are_within_the_vocabulary_and_count_as_one(name):
    task = TASKS[name]
    world = task.world(jax.random.key(1))
    batch = task.batch(world, jax.random.key(2), 16)
    assert batch.tokens.shape == batch.targets.shape == batch.weights.shape == (16, task.length)
    assert 0 <= int(batch.tokens.min()) and int(batch.tokens.max()) < task.vocabulary
    assert 0 <= int(batch.targets.min()) and int(batch.targets.max()) < task.vocabulary
    assert float(batch.weights.sum()) == pytest.approx(1, rel=1e-4) and float(batch.weights.min()) >= 0
    again = task.batch(world, jax.random.key(2), 16)
    jax.tree.map(np.testing.assert_array_equal, batch, again)
    if name != "facts":  # of which every batch has all
        assert not np.array_equal(batch.tokens, task.batch(world, jax.random.key(3), 16).tokens)


def test_sums_of_a_group_and_what_is_held_out():
    world = TASKS["groups"].world(jax.random.key(0))
    batch = TASKS["groups"].batch(world, jax.random.key(1), ORDER**2)
    left, right = np.asarray(batch.tokens[:, 0]), np.asarray(batch.tokens[:, 1])
    assert len(set(zip(left.tolist(), right.tolist(), strict=True))) == ORDER**2
    np.testing.assert_array_equal(batch.targets[:, -1], (left + right) % ORDER)
    held = np.asarray(batch.known["held"])
    assert 0.1 < held.mean() < 0.3
    np.testing.assert_array_equal(np.asarray(batch.weights[:, -1]) == 0, held)


def test_facts_have_partners_both_ways_and_one_way_is_held_out():
    world = TASKS["facts"].world(jax.random.key(0))
    batch = TASKS["facts"].batch(world, jax.random.key(1), 2 * NAMES)
    names, ways = np.asarray(batch.tokens[:, 0]), np.asarray(batch.known["direction"])
    partner = dict(zip(names.tolist(), np.asarray(batch.targets[:, -1]).tolist(), strict=True))
    assert len(partner) == 2 * NAMES and all(partner[partner[name]] == name for name in partner)
    held = np.asarray(batch.known["held"])
    assert held.sum() == NAMES // 3  # one direction of each pair of the last third
    assert np.all(np.asarray(batch.weights[:, -1])[held] == 0) and {0, 1} == set(ways)


def test_a_class_shows_its_own_tokens_and_common_ones():
    from jaxdyn.laboratory.tasks import CLASSES

    task = TASKS["classes"]
    batch = task.batch(task.world(jax.random.key(0)), jax.random.key(1), 256)
    support = CLASSES.support[np.asarray(batch.known["class"])]
    context = np.asarray(batch.tokens[:, :-1])
    assert all(set(row) <= set(allowed) for row, allowed in zip(context, support, strict=True))
    share = (context < CLASSES.common).mean()  # common tokens weigh 1 each, own ones .1, .4, .7 and 1
    assert share == pytest.approx(4 / 6.2, abs=0.03)


# a run


def by_hand(s, key):
    """The same run, step by step."""
    k_method, k_run = jax.random.split(key)
    k_world, k_init, k_read, k_batch, _ = jax.random.split(k_run, 5)
    task, shape, tx = task_of(s), shape_of(s), method_of(s, k_method)
    world = task.world(k_world)
    reading = task.batch(world, k_read, s.reading)
    params = nn.network(shape).init(k_init)
    opt, kept = tx.init(params), []
    for i in range(s.steps + 1):
        if i % s.every == 0:
            kept.append(
                (params, jax.grad(lambda p: batch_loss(shape, p, reading))(params), float(batch_loss(shape, params, reading)))
            )
        batch = reading if s.same else task.batch(world, jax.random.fold_in(k_batch, i), s.batch)
        updates, opt = tx.update(jax.grad(lambda p, b=batch: batch_loss(shape, p, b))(params), opt, params)
        params = jax.tree.map(jnp.add, params, updates)
    return kept


@pytest.mark.parametrize("more", [{}, {"same": True}, {"optimizer": "adam", "lr": 0.01}])
def test_a_run_is_that_of_a_loop_by_hand(more):
    s, key = Bench(**SMALL | more), jax.random.key(5)
    k_method, k_run = jax.random.split(key)
    found = course.run(training_of(s, k_method), [NORM], k_run)
    kept = by_hand(s, key)
    np.testing.assert_allclose(found.loss, [loss for *_, loss in kept], rtol=2e-5)
    heads = np.stack([np.asarray(params["head"][:2, :3]) for params, *_ in kept])
    np.testing.assert_allclose(found.laws["norm"].measured, heads - heads[:1], atol=1e-6)
    np.testing.assert_array_equal(found.step, [0, 3, 6])
    assert int(found.status) == OK


def test_a_law_that_holds_by_construction_does():
    s, key = Bench(**SMALL | {"same": True, "every": 1}), jax.random.key(6)
    found = course.run(training_of(s), [NORM], key)
    np.testing.assert_allclose(found.laws["norm"].predicted, found.laws["norm"].measured, atol=1e-6)


def test_a_run_that_diverges_says_so():
    s = Bench(**SMALL | {"lr": 1e4, "steps": 30})
    found = course.run(training_of(s), [], jax.random.key(0))
    assert int(found.status) == DIVERGED


@pytest.mark.parametrize("name", VARIANTS)
def test_every_variant_is_a_network(name):
    s = Bench(**SMALL | {"width": 16} | VARIANTS[name])
    shape = shape_of(s)
    params = jax.eval_shape(lambda: nn.network(shape).init(jax.random.key(0)))
    assert params["embed"].shape == (TASKS["facts"].vocabulary, 16)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"data": "stories"}, "data=stories is not allowed: data is one of classes"),
        ({"steps": 10, "every": 4}, "every divides steps"),
        ({"optimizer": "lora"}, "lora trains factors"),
        ({"optimizer": "lion"}, "it is one of sgd"),
        ({"heads": 3, "width": 16}, "width is a multiple of heads"),
        ({"attention": "hard"}, "attention='hard' is not allowed"),
        ({"data": "facts", "batch": 47}, "a batch has all 48 facts, or more"),
        ({"data": "facts", "same": True, "reading": 8}, "a batch has all 48 facts, or more"),
    ],
)
def test_what_a_run_refuses(fields, sentence):
    with pytest.raises(UsageError, match=sentence):
        Bench(**fields)


# studies


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    return study("balance", attention=["softmax", "linear"], seeds=3, out=tmp_path_factory.mktemp("lab"), **SMALL)


def test_a_study_has_a_cell_for_each_variant(found):
    assert [cell.variant for cell in found.cells] == ["attention=softmax", "attention=linear"]
    assert set(found.data) == {"attention=softmax", "attention=linear"}
    frame = found.to_frame()
    assert list(frame.law) == ["balance", "balance"] and set(frame.columns) >= {"error", "low", "high", "until", "verdict", "lr"}
    assert "attention=softmax, lr=0.1" in str(found)
    for cell in found.cells:
        errors = results.errors_of(found.laws[0], found.data[cell.variant]).isel(time=-1)
        assert cell.error == pytest.approx(float(errors.mean())) and cell.low < cell.error < cell.high
        assert cell.off == pytest.approx(1.0) and cell.runs == 3 and cell.lost == 0


def test_the_same_study_resumes_with_the_same_bits(found, tmp_path):
    first = study("balance", attention="softmax", seeds=3, out=tmp_path, **SMALL)
    again = study("balance", attention="softmax", seeds=3, out=tmp_path, **SMALL)
    assert first.cells == again.cells
    assert first.cells[0].error == pytest.approx(found.cells[0].error, rel=1e-5)


def test_what_cannot_be_asked_is_said():
    plan = order("edge,balance", variants=["plain", "Adam"], data="markov", same=True)
    assert plan.refused == {("edge", "Adam"): "It is about the optimizer sgd, not adam."}
    assert plan.asked == {"plain": ("edge", "balance"), "Adam": ("balance",)}
    assert plan.grids["Adam"].base.watch == "balance" and plan.grids["plain"].base.watch == "edge,balance"


def test_a_variant_of_ones_own_and_its_own_rate():
    plan = order("balance", variants={"mine": {"heads": 2, "lr": 0.5}, "other": {"norm": "rms"}}, lr=[0.1, 0.2])
    assert plan.grids["mine"].base.heads == 2 and plan.grids["mine"].axes == {"lr": (0.5,)}
    assert plan.grids["other"].axes == {"lr": (0.1, 0.2)}


def test_what_some_variant_reads_and_numbers_of_numpy_are_allowed():
    plan = order("balance", optimizer=["sgd", "momentum"], momentum=np.float32(0.5), lr=np.array([0.1, 0.2]))
    assert [grid.base.momentum for grid in plan.grids.values()] == [0.5, 0.5] and plan.fields["lr"] == [0.1, 0.2]
    assert list(order("balance", heads=np.array([1, 2])).variants) == ["heads=1", "heads=2"]
    assert list(order("balance", '"gated, QK norm, Muon",plain').variants) == ["gated, QK norm, Muon", "plain"]


@pytest.mark.parametrize(
    ("watch", "fields", "sentence"),
    [
        ("", {}, "watch is not allowed: it names at least one law"),
        ("gravity", {}, "watch=gravity is not allowed: laws are "),
        ("balance,balance", {}, "watch='balance' is not allowed: it is named twice"),
        ("balance", {"variants": "fancy"}, "variants='fancy' is not allowed: variants are plain"),
        ("balance", {"depth": 3}, "Lab has no field 'depth'"),
        (3, {}, "watch=3 is not allowed"),
        ("sinks,sinks", {}, "watch='sinks' is not allowed: it is named twice"),
        ("numbers", {}, "watch=numbers is not allowed: it looks for numbers in a tokenizer, and the laboratory has none"),
        ("balance", {"variants": "plain,plain"}, "variants='plain' is not allowed: it is named twice"),
        ("balance", {"variants": {1: {}, "1": {"heads": 2}}}, "variants='1' is not allowed: it is named twice"),
        ("balance", {"variants": {}}, "variants is not allowed: it names at least one"),
        ("balance", {"variants": {"x": 3}}, "variants: x=3 is not allowed: it is a dict of fields"),
        ("balance", {"variants": {"x": {"watch": "edge"}}}, "watch is not allowed in the variant x"),
        ("balance", {"variants": {"x": {"norm": ["none", "rms"]}}}, "norm=.* is not allowed in the variant x"),
        ("balance", {"variants": "RMS norm", "norm": ["none", "rms"]}, "norm is not allowed with several values: the variant RMS"),
        ("balance", {"heads": []}, "heads=.* is not allowed: it is one value, or several that differ"),
        ("balance", {"norm": ["none", "none"]}, "norm=.* is not allowed: it is one value, or several that differ"),
        ("balance", {"momentum": 0.9}, "momentum is not allowed in the variant plain, where nothing reads it"),
        ("balance", {"std": [0.1, 0.2]}, "std is not allowed in the variant plain, where nothing reads it"),
        ("balance", {"variants": {"x": {"std": 0.1}, "y": {"start": "normal"}}}, "std is not allowed in the variant x"),
        ("balance", {"same": True, "batch": 8}, "batch is not allowed in the variant plain, where nothing reads it"),
        ("jaxdyn.train:descend", {}, "jaxdyn.train has no law or instrument 'descend'"),
        ("nowhere.py:LAW", {}, "there is no file nowhere.py"),
    ],
)
def test_what_a_study_refuses(watch, fields, sentence):
    with pytest.raises(UsageError, match=sentence):
        order(watch, **fields)


def dataset(predicted, measured, status=None):
    """Runs of the law called norm, with dimensions seed, time, entry."""
    n, time, _ = predicted.shape
    both = {f"{side}_norm": (("seed", "time", "norm_entry"), x) for side, x in (("predicted", predicted), ("measured", measured))}
    known = {f"known_{name}": (("seed", "time"), np.isfinite(x).all(-1)) for name, (_, x) in both.items()}
    data = {name: (dims, np.nan_to_num(x)) for name, (dims, x) in both.items()} | known
    data |= {
        "speaks_norm": (("seed", "time"), np.ones((n, time), bool)),
        "status": (("seed",), np.zeros(n, int) if status is None else np.asarray(status)),
    }
    return xr.Dataset(data, {"time": np.arange(time) * 10, "seed": np.arange(n)})


def one_cell(predicted, measured, **more):
    (cell,) = results.cells_of(NORM, "plain", dataset(predicted, measured, **more))
    return cell


def course_of(n=4, time=8, entries=3):
    rng = np.random.default_rng(0)
    return np.cumsum(rng.standard_normal((n, time, entries)), 1)


def test_verdicts():
    m = course_of()
    assert one_cell(m, m).verdict == "upheld" and one_cell(m, m).until == 70
    assert one_cell(1.5 * m, m).verdict == "refuted" and one_cell(1.5 * m, m).until is None
    still = np.broadcast_to(m[:, :1], m.shape)
    assert one_cell(still, m).verdict == "refuted"
    half = m.copy()
    half[0] *= 1.01
    assert one_cell(half, m).verdict == "inconclusive"


def test_a_law_that_nothing_could_break_is_toothless():
    rng = np.random.default_rng(1)
    m = np.cumsum(rng.standard_normal((4, 8, 3)), 1)
    constant = np.repeat(m[:, -1:], 8, 1)
    assert one_cell(constant, constant).verdict == "inconclusive"  # nothing has moved: there is no error
    late = constant.copy()
    late[:, 0] = 0
    cell = one_cell(late, late)
    assert cell.verdict == "upheld" and cell.shuffled > NORM.bound


def test_runs_in_which_nothing_moves_count_where_theory_has_movement():
    m = course_of()
    frozen = m.copy()
    frozen[0] = frozen[0, :1]
    cell = one_cell(m, frozen)
    assert (cell.verdict, cell.runs) == ("refuted", 4) and "nothing moves where it has movement" in cell.reason
    assert one_cell(frozen, frozen).runs == 3  # theory has none either


def test_diverged_runs_are_counted_and_left_out():
    m = course_of()
    p = m.copy()
    p[0] = np.nan
    cell = one_cell(p, m, status=[DIVERGED, OK, OK, OK])
    assert (cell.lost, cell.runs, cell.verdict) == (1, 3, "upheld")
    cell = one_cell(p, m, status=[DIVERGED] * 3 + [OK])
    assert (cell.lost, cell.runs, cell.verdict) == (3, 1, "inconclusive")


def test_a_prediction_that_is_no_number_holds_nowhere():
    m = course_of()
    p = m.copy()
    p[0, 5:] = np.nan
    cell = one_cell(p, m)
    assert (cell.verdict, cell.runs, cell.until) == ("refuted", 4, 40) and "no finite number" in cell.reason
    cell = one_cell(m, p)  # what was not measured is not judged
    assert (cell.runs, cell.unknown, cell.verdict) == (3, 1, "inconclusive") and "In 1 run what was measured is no" in cell.reason


def test_a_law_that_fails_is_not_a_run_that_diverges():
    failing = dataclasses.replace(NORM, name="failing", predict=lambda others: NORM.predict(others) / 0)
    s = Bench(**SMALL)
    with jax.enable_x64(True):
        found = observed(s, [NORM, failing], jax.random.key(0))
    assert np.isfinite(found.predicted["failing"].value).all() and int(found.status) == OK
    assert not np.asarray(found.recorded["known_predicted_failing"].value).any()
    assert np.asarray(found.recorded["known_predicted_norm"].value).all()


def swept(predicted, measured, name="lr"):
    """Runs at two values of a swept field, of predictions and measurements for each."""
    both = [dataset(*each) for each in zip(predicted, measured, strict=True)]
    return xr.concat(both, xr.Variable(name, [0.1, 0.2]))


def test_a_cell_does_not_depend_on_those_next_to_it():
    m = course_of()
    late = np.repeat(m[:, -1:], 8, 1)
    late[:, 0] = 0
    same = np.repeat(m[:, -1:], 8, 1)  # predicted all along
    law = dataclasses.replace(NORM, absolute=True, bound=1e9)
    alone = results.cells_of(law, "plain", dataset(same, late))[0]
    first, _ = results.cells_of(law, "plain", swept([same, m], [late, m]))
    assert np.isnan(alone.shuffled) and np.isnan(first.shuffled)


def test_a_swept_field_is_no_dimension_of_a_law_of_its_name():
    m = course_of()
    ds = swept([m, 1.5 * m], [m, m], "norm_decay")
    assert [cell.verdict for cell in results.cells_of(NORM, "plain", ds)] == ["upheld", "refuted"]


def test_the_map_shows_the_worst_of_several_swept_numbers(found):
    cell = found.cells[0]
    lost = dataclasses.replace(cell, error=np.nan, low=np.nan, high=np.nan, runs=0, verdict="inconclusive")
    for cells, mark in ([cell, lost], "?"), ([cell, dataclasses.replace(cell, error=0.0, verdict="toothless")], "△"):
        upheld = [dataclasses.replace(cells[0], error=0.01, verdict="upheld"), cells[1]]
        fig = Figure()
        pages.draw_map(pages.to_json(dataclasses.replace(found, variants={cell.variant: {}}, cells=tuple(upheld))), fig)
        assert [text.get_text() for text in fig.axes[0].texts] == [mark]
    assert "at no time" not in str(dataclasses.replace(found, cells=(dataclasses.replace(lost, until=None),)))


def test_an_infinite_error_is_the_worst(found):
    cells = [dataclasses.replace(found.cells[0], error=error, verdict="refuted") for error in (0.15, np.inf)]
    said = pages.to_json(dataclasses.replace(found, variants={cells[0].variant: {}}, cells=tuple(cells)))
    fig = Figure()
    pages.draw_map(said, fig)
    assert fig.axes[0].collections[0].get_array().ravel().tolist() == [10.0], "the darkest red"
    alone = said | {"cells": said["cells"][1:]}
    assert "| × ∞ |" in pages.with_map(f"{pages.ENDS[0]}{pages.ENDS[1]}", alone)


def test_names_of_variants_are_drawn_as_they_are(found):
    names = ["a$b$c", "_hidden"]
    data = dict(zip(names, found.data.values(), strict=True))
    fig = Figure()
    pages.draw_errors(dataclasses.replace(found, data=data), found.laws[0], names, fig)
    labels = fig.axes[0].get_legend_handles_labels()[1]
    assert labels == [r"a\$b\$c", r"$\_$hidden"]


# laws and Python


def test_every_law_says_what_it_is():
    for name, law in laws().items():
        assert law.title and law.theory and law.source and len(law.title) <= 70, name
        assert law.cost > 0 and law.bound > 0 and not set(law.data) - set(TASKS), name
        assert set(law.optimizers) <= set(optim.METHODS) and watched(name) is law
    assert watched_of("") == []


def test_from_python(tmp_path):
    found = jd.lab("balance", norm=["none", "rms"], seeds=[3, 5], out=tmp_path, **SMALL)
    assert len(found.cells) == 2 and (tmp_path / "index.html").is_file()
    stored = json.loads((tmp_path / "lab.json").read_text(encoding="utf-8"))
    assert stored["laws"][0]["name"] == "balance" and stored["seeds"] == "3, 5"
    facts = (tmp_path / "index.html").read_text(encoding="utf-8")
    facts = re.findall(r'<dt><abbr title="([^"]+)">(\w+)</abbr></dt><dd>(.*?)</dd>', facts)
    assert [shown for _, name, shown in facts if name == "Seeds"] == ["3, 5"]
    assert ("numbers of the residual stream", "width", "8") in facts
    own = {"norm=none": {}, "norm=rms": {"width": 16}}
    assert ">width</abbr></dt><dd>8; norm=rms: 16</dd>" in pages.page(dataclasses.replace(found, variants=own))
    assert callable(trial)
    assert asked(Lab(**SMALL)).data == "facts"


def test_frozen_weights_stay_as_they_are_drawn():
    s = Bench(**SMALL, frozen="embed+v+o", optimizer="adamw", weight_decay=0.1)
    tx, params = method_of(s), nn.network(shape_of(s)).init(jax.random.key(0))
    updates, _ = tx.update(jax.tree.map(jnp.ones_like, params), tx.init(params), params)
    still = {name for tree in (updates, updates["blocks"]) for name, u in tree.items() if name != "blocks" and not np.any(u)}
    assert still == {"embed", "v", "o"}
    with pytest.raises(
        UsageError, match="frozen=embed\\+gate is not allowed: frozen are some of down, embed, head, k, o, q, up, v"
    ):
        Bench(**SMALL, frozen="embed+gate")


# instruments

READ = [one for one in instruments().values() if one.read is not None]


def test_instruments_read_what_they_read_of_a_loop_by_hand():
    s, key = Bench(**SMALL | {"data": "trees", "steps": 2, "every": 1}), jax.random.key(5)
    k_method, k_run = jax.random.split(key)
    found = course.run(training_of(s, k_method), [NORM, *READ], k_run)
    k_world, _, k_read, *_ = jax.random.split(k_run, 5)
    reading = task_of(s).batch(task_of(s).world(k_world), k_read, s.reading)
    params, gradient, _ = by_hand(s, key)[-1]
    now = Moment(shape_of(s), params, reading, gradient, lambda p: batch_loss(shape_of(s), p, reading), None, s.lr, jnp.int32(2))
    assert set(found.readings) == {one.name for one in READ} and set(found.laws) == {"norm"}
    for one in READ:
        for label, value in one.read(now).items():
            curve = found.readings[one.name][label]
            assert curve.shape == (3, *value.shape)
            np.testing.assert_allclose(curve[-1], value, rtol=1e-3, err_msg=f"{one.name}: {label}")


@pytest.fixture(scope="module")
def watching(tmp_path_factory):
    """A law and an instrument, of a network with shares and one without, at two rates of which one diverges."""
    out = tmp_path_factory.mktemp("watching")
    fields = SMALL | {"layers": 2, "lr": [0.1, 1e4], "steps": 30, "every": 15}
    return jd.lab("sinks,balance", attention=["softmax", "linear"], seeds=3, out=out, **fields), out


def test_a_law_and_an_instrument_together(watching):
    found, out = watching
    assert [law.name for law in found.laws] == ["balance"] and [one.name for one in found.instruments] == ["sinks"]
    cells = {(cell.reading, cell.numbers["lr"]): cell for cell in found.cell("sinks", "attention=softmax")}
    ds = found.data["attention=softmax"]
    curve = ds["sinks: weight on the first token"]
    assert curve.dims == ("lr", "seed", "time", "sinks_layer") and ds["sinks: share of heads with a sink"].dims == curve.dims[:-1]
    cell = cells["weight on the first token", 0.1]
    last = curve.isel(time=-1).sel(lr=0.1).mean("sinks_layer")
    assert cell.verdict == "measured" and (cell.runs, cell.lost) == (3, 0) and np.isnan(cell.error)
    assert cell.value == pytest.approx(float(last.mean())) and cell.low < cell.value < cell.high
    assert cell.high - cell.value == pytest.approx(4.303 * float(last.std(ddof=1)) / 3**0.5, rel=1e-3)
    gone = cells["weight on the first token", 1e4]
    assert (gone.runs, gone.lost, gone.reason) == (0, 3, "It is a finite number in no run.") and np.isnan(gone.value)
    (refused,) = found.cell("sinks", "attention=linear")
    assert refused.verdict == "not asked" and "no shares of a whole" in refused.reason
    assert not [name for name in found.data["attention=linear"] if name.startswith("sinks")]


def test_what_was_read_is_in_the_table_the_page_and_the_stored_numbers(watching):
    found, out = watching
    lines = str(found).splitlines()
    assert lines[0].startswith("law ") and [line.split() for line in lines if line.startswith("instrument ")] == [
        ["instrument", "variant", "reading", "at", "the", "end", "95%", "runs", "diverged", "verdict"]
    ]
    (row,) = [line for line in lines if line.startswith("sinks") and "lr=0.1 " in line and "weight on the first token" in line]
    assert row.endswith("measured")
    page, stored = ((out / name).read_text(encoding="utf-8") for name in pages.FILES)
    assert page.count("<svg") == 4 and 'id="sinks"' in page and ">measured<" in page and "weight on the first token" in page
    said = json.loads(stored)
    assert [one["name"] for one in said["instruments"]] == ["sinks"] and [law["name"] for law in said["laws"]] == ["balance"]
    assert {cell["verdict"] for cell in said["cells"] if cell["law"] == "sinks"} == {"measured", "not asked"}
    frame = found.to_frame()
    assert frame[frame.law == "sinks"].value.notna().sum() == 2


def test_maps_are_of_laws(watching):
    found, _ = watching
    said = pages.to_json(found)
    fig = Figure()
    pages.draw_map(said, fig)
    assert [tick.get_text() for tick in fig.axes[0].get_yticklabels()] == ["balance"]
    assert "sinks" not in pages.with_map(f"{pages.ENDS[0]}{pages.ENDS[1]}", said)


def test_what_an_instrument_reads_by_variant_is_drawn(watching):
    found, _ = watching
    fig = Figure()
    pages.draw_readings(found, found.instruments[0], ["attention=softmax"], fig)
    assert [ax.get_ylabel().replace("\n", " ") for ax in fig.axes] == ["weight on the first token", "share of heads with a sink"]
    (line,) = fig.axes[0].lines
    expected = found.data["attention=softmax"]["sinks: weight on the first token"].isel(lr=0).mean(["seed", "sinks_layer"])
    np.testing.assert_allclose(line.get_ydata(), expected, rtol=1e-6)


def test_an_instrument_that_cannot_be_asked_is_left_out_and_a_reading_without_dims_is_refused():
    sinks = instruments()["sinks"]
    assert set(observed(Bench(**SMALL, attention="relu"), [sinks], jax.random.key(0)).recorded) == {"loss"}
    own = dataclasses.replace(sinks, dims={"share of heads with a sink": ""})
    with pytest.raises(UsageError, match="the instrument sinks is not allowed: it reads 'weight on the first token', whose axis"):
        observed(Bench(**SMALL), [own], jax.random.key(0))


# what would pass in silence


@pytest.mark.parametrize("name", ["step", "lr", "start_own"])
def test_a_reading_has_no_name_that_predict_is_given(name):
    curves = {"own": jnp.ones(3), name: jnp.ones(3)}
    law = dataclasses.replace(NORM, name="taken", own=("own",))
    with pytest.raises(
        UsageError, match=f"the law taken is not allowed: it reads '{name}', and predict is given lr, start_own, step"
    ):
        sides(law, curves, jnp.arange(3.0), 0.1)


@pytest.mark.parametrize(
    "fields",
    [
        {"mlp": "none", "hidden": [8, 16]},
        {"mlp": "none", "activation": ["relu", "gelu"]},
        {"norm": "none", "norm_place": ["pre", "post"]},
        {"optimizer": "sign", "clip": [0.1, 1.0]},
    ],
)
def test_a_field_that_nothing_reads_is_refused(fields):
    with pytest.raises(UsageError, match=f"{list(fields)[1]} is not allowed in the variant .*, where nothing reads it: "):
        order("balance", **SMALL | fields)


def test_variants_that_gave_the_same_numbers_are_named(tmp_path):
    found = jd.lab("balance", frozen=["embed+head", "head+embed", "embed"], seeds=2, out=tmp_path, **SMALL)
    (names,) = found.alike
    assert names == ("frozen=embed+head", "frozen=head+embed")
    sentence = "frozen=embed+head and frozen=head+embed gave the same numbers: nothing reads what differs between them"
    assert sentence in str(found) and sentence in (tmp_path / "index.html").read_text(encoding="utf-8")
    assert json.loads((tmp_path / "lab.json").read_text(encoding="utf-8"))["alike"] == [list(names)]


def test_numbers_and_page_of_a_folder_are_of_one_study(monkeypatch, tmp_path):
    """The page is drawn while the folder is held, and what is not allowed makes no folder."""

    def watched(found, draw=pages.page):
        with cf.ThreadPoolExecutor(1) as other, pytest.raises(StoreError, match="in use by process"):
            other.submit(jd.lab, "balance", seeds=1, out=tmp_path / "out", **SMALL).result()
        return draw(found)

    monkeypatch.setattr(pages, "page", watched)
    jd.lab("balance", seeds=1, out=tmp_path / "out", **SMALL)
    assert {"index.html", "lab.json"} <= {path.name for path in (tmp_path / "out").iterdir()}
    with pytest.raises(UsageError, match="norm="):
        jd.lab("balance", norm="nonsense", seeds=1, out=tmp_path / "none", **SMALL)
    assert not (tmp_path / "none").exists()
