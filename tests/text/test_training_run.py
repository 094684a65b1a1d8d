"""training_run.py: what a run on a text is, its optimizer by hand, its records, and files that are resumed."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn import text, train
from jaxdyn.errors import StoreError, UsageError
from jaxdyn.text import language, longrun, training_run
from jaxdyn.text.training_run import TrainingRun

SMALL = {"max_words": 50, "width": 8, "hidden": 8, "columns": 4, "length": 6, "steps": 4, "every": 2, "windows": 2}


@pytest.fixture
def small(small_text):
    return TrainingRun(text=str(small_text), **SMALL)


def test_the_published_numbers_are_the_defaults_that_matter():
    s = TrainingRun()
    assert (s.columns, s.length, s.clip, s.restart, s.dropout) == (20, 35, 0.5, True, 0.2)
    assert training_run.uniform_entropy(35) == pytest.approx(2.6325, abs=5e-5)


def test_contents_are_part_of_a_setting(small, small_text, tmp_path):
    copy = tmp_path / "b.txt"
    copy.write_text(small_text.read_text(encoding="utf-8"), encoding="utf-8")
    moved = dataclasses.replace(small, text=str(copy))
    assert moved.digest == small.digest != ""
    copy.write_text(small_text.read_text(encoding="utf-8").replace("w1 ", "w2 "), encoding="utf-8")
    assert dataclasses.replace(small, text=str(copy)).digest != small.digest
    assert TrainingRun().digest == text.load("topics", "bytes").digest != ""


def test_epoch_is_a_pass_over_the_text(small):
    stream = len(small.corpus().train)
    assert small.epoch == (stream // 4 - 1) // 6


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"steps": 5, "every": 2}, "steps=5, every=2 are not allowed: steps is a positive multiple of every"),
        ({"columns": 0}, "columns is at least 1"),
        ({"windows": -1}, "windows is at least 0"),
        ({"clip": 0.0}, "clip is positive"),
        ({"width": 0}, "width is at least 1"),
        ({"activation": "swish"}, "it is one of silu, relu, gelu"),
        ({"dropout": 1.0}, "dropout is at least 0 and below 1"),
        ({"text": "/no/such/file"}, "/no/such/file"),
        ({"optimizer": "lion"}, "optimizer"),
    ],
)
def test_bad_settings_are_one_sentence(fields, words):
    with pytest.raises(UsageError, match=words) as error:
        TrainingRun(**fields)
    assert "\n" not in str(error.value)


def norm(tree):
    return float(np.sqrt(sum(np.sum(np.square(x, dtype=float)) for x in jax.tree.leaves(tree))))


def gradient(built, s, state, columns, key):
    """The clipped gradient at a state, by hand."""

    @jax.jit
    def raw(state, columns, key):
        inputs, targets = text.window(columns, state.step % s.epoch, s.length)
        return jax.grad(lambda p: language.loss(built.net, p, inputs, targets, jax.random.fold_in(key, state.step)))(state.params)

    g = jax.device_get(raw(state, columns, key))
    return jax.tree.map(lambda x: x.astype(float) * min(1.0, s.clip / norm(g)), g)


@pytest.mark.slow
def test_a_step_is_clipped_descent_with_its_own_rates(small):
    """Queries and keys stay, the lowest MLP moves twice as fast, everything else by the clipped gradient."""
    s = dataclasses.replace(small, optimizer="sgd", lr=3.0, lowest_mlp=2.0, query_key=0.0, layers=2, clip=0.3)
    built = training_run.build(s, jax.random.key(0))
    columns, key = jax.tree.map(jnp.asarray, built.data)
    before, after = built.start.params, jax.jit(built.step)(built.start, columns, key).params
    g = gradient(built, s, built.start, columns, key)
    assert norm(g) == pytest.approx(0.3, rel=1e-3), "the clip acts"
    moved = jax.tree.map(lambda a, b: np.asarray(a, float) - np.asarray(b, float), before, after)
    np.testing.assert_allclose(moved["head"], 3.0 * g["head"], rtol=1e-3, atol=1e-6)
    blocks, gb = moved["blocks"], g["blocks"]
    for name in ("q", "k", "q_bias", "k_bias"):
        np.testing.assert_array_equal(blocks[name], 0)
    np.testing.assert_allclose(blocks["v"], 3.0 * gb["v"], rtol=1e-2, atol=1e-6)
    for name in ("up", "down_bias"):
        np.testing.assert_allclose(blocks[name][0], 6.0 * gb[name][0], rtol=1e-2, atol=1e-6)
        np.testing.assert_allclose(blocks[name][1], 3.0 * gb[name][1], rtol=1e-2, atol=1e-6)


def advancing(built):
    """A function of a number of steps and a state, in one program."""
    data = jax.tree.map(jnp.asarray, built.data)
    return jax.jit(lambda steps, state: jax.lax.fori_loop(0, steps, lambda _, x: built.step(x, *data), state))


@pytest.mark.slow
def test_adam_is_made_anew_each_epoch(small):
    """Right after a restart Adam's step is the sign of the gradient."""
    s = dataclasses.replace(small, lr=1e-2, dropout=0.0)
    for restart in (True, False):
        built = training_run.build(dataclasses.replace(s, restart=restart), jax.random.key(0))
        columns, key = jax.tree.map(jnp.asarray, built.data)
        advance = advancing(built)
        state = advance(s.epoch, built.start)
        after = advance(1, state)
        g = gradient(built, s, state, columns, key)["head"]
        large = np.abs(g) > 1e-4 * np.abs(g).max()
        moved = np.asarray(state.params["head"] - after.params["head"])[large] / 1e-2
        signed = np.allclose(moved, np.sign(g[large]), atol=2e-2)
        assert signed is restart


@pytest.mark.slow
def test_records_are_of_the_validation_text(small):
    built = training_run.build(small, jax.random.key(0))
    held = text.columns(small.corpus().valid, training_run.EVALUATED)
    evaluate = jax.jit(lambda params, windows: language.evaluate(built.net, params, jnp.asarray(held), small.length, windows))
    part, whole = (evaluate(built.start.params, windows) for windows in (2, None))
    at = jax.jit(built.observe)
    first, later = at(built.start), at(built.start._replace(step=jnp.int32(1)))
    np.testing.assert_allclose(first.loss, whole.loss, rtol=1e-5)  # an epoch's end: all windows
    np.testing.assert_allclose(later.loss, part.loss, rtol=1e-5)
    np.testing.assert_allclose(later.entropy, part.entropy, rtol=1e-5)
    w1 = np.asarray(built.start.params["blocks"]["up"][0], float)
    singular = np.linalg.svd(w1, compute_uv=False)
    np.testing.assert_allclose(first.stable_rank, [(singular**2).sum() / singular[0] ** 2], rtol=1e-5)
    u = np.asarray(built.start.params["embed"], float)
    u /= np.linalg.norm(u, axis=1, keepdims=True)
    off = np.abs(u @ u.T)[~np.eye(len(u), dtype=bool)]
    np.testing.assert_allclose(first.cosine[0], off.mean(), rtol=1e-5)


def test_records_of_a_narrow_network_are_in_float32(small):
    """Those of its own weights; each would be rounded to three digits."""
    s = dataclasses.replace(small, dtype="bfloat16")
    built = training_run.build(s, jax.random.key(0))
    record = jax.jit(built.observe)(built.start)
    assert {x.dtype.name for x in record} == {"float32"}
    up = np.asarray(built.start.params["blocks"]["up"], np.float64)
    singular = np.linalg.svd(up, compute_uv=False)
    np.testing.assert_allclose(record.stable_rank, (singular**2).sum(-1) / singular[:, 0] ** 2, rtol=1e-5)
    rows = np.asarray(built.start.params["blocks"]["down"][0], np.float64)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    np.testing.assert_allclose(record.cosine[1], np.abs(rows @ rows.T)[~np.eye(len(rows), dtype=bool)].mean(), rtol=1e-5)


@pytest.mark.slow
def test_shuffled_is_the_same_words_in_another_order(small):
    plain = training_run.build(small, jax.random.key(0)).data[0]
    mixed = training_run.build(dataclasses.replace(small, shuffled=True), jax.random.key(0)).data[0]
    assert not np.array_equal(plain, mixed)
    np.testing.assert_array_equal(np.sort(plain, None), np.sort(mixed, None))


@pytest.mark.slow
def test_a_long_run_goes_on_is_extended_and_knows_its_text(small, small_text, tmp_path):
    path = tmp_path / "a.run"
    short = training_run.long_run(small, 1, path)
    longer = dataclasses.replace(small, steps=8)
    run = training_run.long_run(longer, 1, path)
    assert list(run.steps) == [0, 2, 4, 6, 8] and set(run.records) == set(training_run.Record._fields)
    np.testing.assert_array_equal(run.records["entropy"][:3], short.records["entropy"])
    fresh = training_run.long_run(longer, 1, tmp_path / "b.run")
    assert jax.tree.all(jax.tree.map(np.array_equal, run, fresh))
    copy = tmp_path / "moved.txt"
    copy.write_text(small_text.read_text(encoding="utf-8"), encoding="utf-8")
    assert isinstance(training_run.long_run(dataclasses.replace(longer, text=str(copy)), 1, path), longrun.Run)
    with pytest.raises(StoreError, match="differs in seed"):
        training_run.long_run(longer, 2, path)
    with pytest.raises(StoreError, match="differs in lr"):
        training_run.long_run(dataclasses.replace(longer, lr=1.0), 1, path)


@pytest.mark.slow
@pytest.mark.parametrize("shuffled", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_several_seeds_at_once_are_the_seeds_alone(small, shuffled, tmp_path, monkeypatch):
    s = dataclasses.replace(small, shuffled=shuffled, lr=1e-2)
    alone = training_run.long_runs(s, [3, 5], tmp_path / "alone", "x")
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    both = training_run.long_runs(s, [3, 5], tmp_path / "both", "x")
    assert [p.name for p in (tmp_path / "both").iterdir()] == ["x_seeds3_5.run"]
    for a, b in zip(alone, both, strict=True):
        assert np.array_equal(a.steps, b.steps) and int(b.state.step) == s.steps
        jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-3, atol=1e-4), a.records, b.records)
        jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, atol=2e-3), a.state.params, b.state.params)
    assert not np.allclose(both[0].records["loss"], both[1].records["loss"], rtol=1e-3), "seeds differ"


@pytest.mark.slow
def test_float32_stays_float32(small, x64):
    built = training_run.build(small, jax.random.key(0))
    shapes = jax.eval_shape(built.step, built.start, *built.data)
    assert {x.dtype for x in jax.tree.leaves(shapes.params)} == {np.dtype("float32")}
    kinds = jax.tree.map(lambda x: x.dtype, shapes)
    assert kinds == jax.tree.map(lambda x: x.dtype, built.start), "a step keeps the state's types"
    assert {x.dtype for x in jax.tree.leaves(jax.eval_shape(built.observe, built.start))} == {np.dtype("float32")}
    assert isinstance(built.start, train.State)


@pytest.mark.parametrize("name", ["columns", "length", "steps", "every", "max_words", "windows"])
@pytest.mark.parametrize("wrong", [True, 2.5, float("nan"), -1])
def test_counts_are_whole_numbers(name, wrong):
    with pytest.raises(UsageError, match=f"{name}=.* is not allowed"):
        TrainingRun(**{name: wrong})


@pytest.mark.parametrize("seed", [2**31, 10**20, -(2**31) - 1, True, 1.0, "1", float("nan")])
def test_seeds_that_jax_does_not_tell_apart_are_refused(small, tmp_path, seed):
    """It makes 32 bits of a seed outside of x64: 2**32 would be the run of seed 0 under another name."""
    for call in (
        lambda: training_run.long_run(small, seed, tmp_path / "a.run"),
        lambda: training_run.long_runs(small, [0, seed], tmp_path, "b"),
        lambda: training_run.build_many(small, [0, seed]),
    ):
        with pytest.raises(UsageError, match="seed=.* is not allowed: seed is"):
            call()
    assert not list(tmp_path.iterdir())
    with pytest.raises(UsageError, match=r"seeds=\[\] is not allowed"):
        training_run.build_many(small, [])


def test_entropy_of_no_words_is_refused():
    with pytest.raises(UsageError, match="length=0 is not allowed"):
        training_run.uniform_entropy(0)
