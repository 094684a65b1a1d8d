"""The probe: what it stores and resumes, series of checkpoints, and what it refuses."""

import dataclasses
import itertools
import json
import logging

import jax
import numpy as np
import pytest
import xarray as xr

import jaxdyn as jd
from jaxdyn.errors import StoreError, UsageError
from jaxdyn.instruments import registry
from jaxdyn.models import probe as probing
from jaxdyn.models.loading import Model
from jaxdyn.models.tokenizer import Tokenizer
from jaxdyn.report.probe import traces
from tests.instruments import plain
from tests.models.toys import Letters, only, refuses, toy
from tests.nn.drawn import weights

NUMBERS = np.random.default_rng(0).integers(0, 11, 600)


@pytest.fixture
def toys(monkeypatch):
    """Three toys instead of the instruments; the list of what was measured."""
    ran = []

    def counted(one):
        def measure(model, tokens, tick):
            logging.getLogger("toys").warning(one.name)  # a list would be part of what the instrument is
            return one.measure(model, tokens, tick)

        return dataclasses.replace(one, measure=measure)

    ones = [counted(one) for one in (toy("first"), refuses("second"), toy("third", 2.0))]
    only(monkeypatch, *ones)
    listening = logging.Handler()
    listening.emit = lambda record: ran.append(record.getMessage())
    logger = logging.getLogger("toys")
    logger.addHandler(listening)
    yield ran
    logger.removeHandler(listening)


def test_a_model_in_memory(toys):
    result = jd.probe(plain.model(), NUMBERS, 400)
    assert toys == ["first", "second", "third"] and list(result.data) == ["first", "third"]
    assert result.length == 100 and result.tokens == 400 and result.text == "token numbers"
    told = json.loads(json.dumps(result.to_json()))
    first, second, _ = told["checkpoints"][0]["instruments"]
    (mean, count) = first["numbers"]
    assert mean["value"] == pytest.approx(NUMBERS[:400].mean()) and mean["low"] < mean["value"] < mean["high"]
    assert mean["expected"] == 5 and count["low"] is None
    assert second["skipped"] == "Nothing here can be measured." and second["numbers"] == []


def test_finished_instruments_are_resumed(toys, tmp_path):
    first = jd.probe(plain.model(), NUMBERS, 400, "first,second", tmp_path)
    assert toys == ["first", "second"]
    again = jd.probe(plain.model(), NUMBERS, 400, out=tmp_path)
    assert toys == ["first", "second", "third"]
    assert again.data["first"].equals(first.data["first"]) and again.data["first"].attrs == first.data["first"].attrs
    outcome = again.checkpoints[0].outcomes[1]
    assert outcome.data is None and outcome.skipped == "Nothing here can be measured."
    assert json.loads((tmp_path / "probe.json").read_text(encoding="utf-8")) == again.to_json()


def test_a_killed_probe_leaves_whole_files_and_resumes(toys, tmp_path, monkeypatch):
    def killed(model, tokens, tick):
        tick(0.9)
        raise KeyboardInterrupt

    *others, third = registry.instruments().values()
    only(monkeypatch, *others, dataclasses.replace(third, measure=killed))
    with pytest.raises(KeyboardInterrupt):
        jd.probe(plain.model(), NUMBERS, 400, out=tmp_path)
    names = sorted(file.name.split(".")[0] for file in (tmp_path / "data").iterdir())
    assert names == ["first", "second"] and not (tmp_path / "index.html").exists()
    only(monkeypatch, *others, third)
    jd.probe(plain.model(), NUMBERS, 400, out=tmp_path)
    assert toys == ["first", "second", "third"] and (tmp_path / "index.html").exists()


@pytest.mark.parametrize("change", ["text", "weights", "length", "tokenizer"])
def test_what_was_measured_of_something_else_is_not_taken(toys, tmp_path, change):
    one = plain.model()
    jd.probe(one, NUMBERS, 400, "first", tmp_path)
    length, numbers = 512, NUMBERS
    if change == "text":
        numbers = NUMBERS[::-1]
    if change == "weights":
        one = one._replace(params=weights(plain.SHAPE, 1))
    if change == "length":
        length = 64
    if change == "tokenizer":
        one = one._replace(tokenizer=Tokenizer(Letters(begins=False)))
    jd.probe(one, numbers, 400, "first", tmp_path, length=length)
    assert toys == ["first", "first"]


def test_damage_is_named(toys, tmp_path):
    jd.probe(plain.model(), NUMBERS, 400, "first", tmp_path)
    (file,) = (tmp_path / "data").iterdir()
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(StoreError, match=r"first\..*is damaged: its bytes do not match its checksum; remove it"):
        jd.probe(plain.model(), NUMBERS, 400, "first", tmp_path)


def test_a_model_in_memory_has_its_own_precision(toys):
    with pytest.raises(jd.UsageError, match="dtype=bfloat16 is not allowed: the parameters of a model in memory have their own"):
        jd.probe(plain.model(), NUMBERS, 400, "first", dtype="bfloat16")


def test_a_folder_of_something_else_is_refused(toys, tmp_path):
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(StoreError, match="files that are not jaxdyn's"):
        jd.probe(plain.model(), NUMBERS, 400, "first", tmp_path)


def series(monkeypatch, **more):
    """Checkpoints whose gains are their steps, read from their names."""

    def load(name, dtype="float32"):
        params = weights(plain.SHAPE)
        return plain.model(params=params | {"norm": float(str(name).split("step")[-1]) * params["norm"]})

    monkeypatch.setattr(probing, "load", load)


def test_a_series_is_ordered_by_the_numbers_in_its_names(toys, tmp_path, monkeypatch):
    series(monkeypatch)
    for step in (512, 64, 1000):
        (tmp_path / f"step{step}").mkdir()
    result = jd.probe(str(tmp_path / "step*"), NUMBERS, 400, "first", tmp_path / "out")
    assert [one.step for one in result.checkpoints] == [64, 512, 1000]
    means = [one.data["first"]["mean"].mean() for one in result.checkpoints]
    np.testing.assert_allclose(np.asarray(means) / [64, 512, 1000], NUMBERS[:400].mean())
    page = (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
    assert "3 checkpoints, up to step1000" in page and page.count("<svg") == 2 and "64 to 1,000" in page
    assert len(list((tmp_path / "out" / "data").iterdir())) == 3
    jd.probe([tmp_path / "step64", tmp_path / "step512"], NUMBERS, 400, "first", tmp_path / "out")
    assert len(toys) == 3  # both are stored


def steps_and_names(model, **more):
    """What a series is, without measuring it."""
    return [(step, str(name)) for name, step, _ in probing.expand(model, **more)]


def test_patterns_and_lists_are_ordered_by_what_varies(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("step1000-160m", "step512-160m", "step1e4-160m"):
        (tmp_path / "runs" / name).mkdir(parents=True)
    ordered = [(512, "runs/step512-160m"), (1000, "runs/step1000-160m"), (10_000, "runs/step1e4-160m")]
    assert steps_and_names("runs/step*") == ordered
    slashed = steps_and_names(["runs/step1e4-160m/", "runs/step512-160m/"])
    assert slashed == [(512, "runs/step512-160m/"), (10_000, "runs/step1e4-160m/")]
    assert steps_and_names("runs/step512*") == [(None, "runs/step512-160m")]  # a single one
    assert steps_and_names(["runs/step512-160m", "end"], steps=[9, 3]) == [(3, "end"), (9, "runs/step512-160m")]
    (tmp_path / "runs" / "final").mkdir()
    with pytest.raises(UsageError, match="runs/final, runs/step1000-160m, .* differ in more than a number; --steps"):
        probing.expand("runs/*")
    with pytest.raises(UsageError, match="a/ is not allowed twice|a is not allowed twice"):
        probing.expand(["a", "a/"])
    with pytest.raises(UsageError, match=r"steps=\[1, 2, 3\] is not allowed with a pattern, runs/step\*: list the models"):
        probing.expand("runs/step*", [1, 2, 3])


def test_models_in_memory_stay_in_the_order_given():
    one, other = plain.model(), plain.model()
    assert [(step, model) for _, step, model in probing.expand([one, other])] == [(None, one), (None, other)]
    assert [step for _, step, _ in probing.expand([one, other], "20,10")] == [10, 20]
    assert probing.expand(one)[0][1] is None
    with pytest.raises(UsageError, match="each of two or more models has its own, and there is 1 model"):
        probing.expand(one, [3])


def test_networks_of_different_sizes_are_no_series(toys):
    for changes in ({"layers": 3}, {"hidden": 12}, {"vocabulary": 13}):
        with pytest.raises(UsageError, match="not allowed in this series: it is another network"):
            jd.probe([plain.model(), plain.model(plain.changed(**changes))], NUMBERS, 400)


def test_models_that_read_the_text_as_other_tokens_are_no_series(toys, tmp_path):
    """Their numbers would be of different texts."""

    class Capitals(Letters):
        def encode(self, text, add_special_tokens=True):
            return super().encode(text.upper(), add_special_tokens)

    (tmp_path / "text").write_text("Some words, one after another. " * 40, encoding="utf-8")
    one, same, other = (plain.model()._replace(tokenizer=Tokenizer(inner())) for inner in (Letters, Letters, Capitals))
    assert len(jd.probe([one, same], tmp_path / "text", 400).checkpoints) == 2
    with pytest.raises(UsageError, match="not allowed in this series: it reads the text as other tokens than"):
        jd.probe([one, other], tmp_path / "text", 400)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"only": "first,fourth"}, "only=fourth is not allowed: instruments are first, second, third"),
        ({"only": []}, "only=.* is not allowed"),
        ({"only": 3}, "only=3 is not allowed: instruments are first, second, third"),
        ({"model": ""}, "model='' is not allowed: it is a path, a name org/model, or a model that was loaded"),
        ({"model": 3}, "model=3 is not allowed"),
        ({"tokens": 255}, "tokens=255 is not allowed: tokens is at least 256"),
        ({"length": 63}, "length=63 is not allowed"),
        ({"text": NUMBERS[:200]}, "token numbers has 200 tokens; a probe reads 256 or more"),
        ({"text": NUMBERS + 1}, "token numbers are from 0 to 10"),
        ({"text": NUMBERS * 0.5}, "it is the path of a text, or one row of token numbers"),
        ({"text": NUMBERS.reshape(2, 300)}, "one row of token numbers"),
        ({"text": "nowhere.txt"}, "there is no text at"),
        ({"text": None}, "this model has no tokenizer: give token numbers from Python"),
        ({"model": "runs/step*"}, "runs/step* fits no file or folder"),
        ({"model": "nowhere"}, "there is no model nowhere"),
        ({"model": []}, "there is at least one"),
    ],
)
def test_what_is_refused(toys, arguments, message):
    import re

    pattern = message if ".*" in message else re.escape(message)
    with pytest.raises(UsageError, match=pattern):
        jd.probe(**{"model": plain.model(), "text": NUMBERS, "tokens": 400} | arguments)


def test_the_cost_is_said_before_the_work(toys):
    lines = []
    jd.probe(plain.model(), NUMBERS, 400, say=lines.append)
    assert lines[0].startswith("3 instruments; 4 pieces of 100 tokens of token numbers; about 1 min, ")
    jd.probe(plain.model(), NUMBERS, 400, "first", say=lines.append)
    assert any(line.startswith("1 instrument; 4 pieces") for line in lines)
    ahead = probing.plan(plain.model(), "text", np.zeros((4, 100), np.int32), registry.choose(None))
    assert ahead.seconds > 0 and ahead.bytes > sum(leaf.nbytes for leaf in jax.tree.leaves(plain.model().params))


LAST = plain.SHAPE.vocabulary - 1  # the token whose embedding is spoiled


def spoiled(value=np.nan, row=LAST):
    params = weights(plain.SHAPE)
    return plain.model(params=params | {"embed": params["embed"].at[row].set(value)})


def text(*bad):
    """Eight pieces of 64 tokens, some with the token LAST at any place, its very end included."""
    pieces = np.random.default_rng(3).integers(0, LAST, (8, 64))
    for place, at in zip(bad, itertools.cycle([63, 0, 20]), strict=False):
        pieces[place, at] = LAST
    return pieces


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e25], ids=str)  # the square of the last is no float32
def test_pieces_without_a_finite_pass_are_left_out_and_counted(tmp_path, value):
    pieces, lines = text(1, 5, 6), []
    given = {"tokens": 512, "only": "sparsity,entropy", "length": 64}
    found = jd.probe(spoiled(value), pieces.ravel(), **given, out=tmp_path, say=lines.append)
    right = jd.probe(plain.model(), pieces[[0, 2, 3, 4, 7]].ravel(), **given)
    for name, ds in found.data.items():
        assert ds.piece.values.tolist() == [0, 2, 3, 4, 7] and ds.attrs["left_out"].startswith("3 of 8 pieces")
        xr.testing.assert_allclose(ds.drop_vars("piece"), right.data[name].drop_vars("piece"), rtol=1e-5)
    said = "3 of 8 pieces left out, without finite logits"
    assert f"a model in memory: {said}" in lines and found.to_json()["checkpoints"][0]["left_out"] == said
    assert said in (tmp_path / "index.html").read_text(encoding="utf-8")
    assert right.checkpoints[0].left_out == "" and right.to_json()["checkpoints"][0]["left_out"] is None
    with pytest.warns(UserWarning, match=said):  # stored by now
        assert jd.probe(spoiled(value), pieces.ravel(), **given, out=tmp_path).checkpoints[0].left_out == said


def test_instead_of_pieces_that_are_left_out_later_ones_are_read(toys):
    pieces = np.concatenate([text(0, 1, 2), text(3)])  # the twelfth is not needed
    with pytest.warns(UserWarning, match="3 of 11 pieces left out, without finite logits"):
        found = jd.probe(spoiled(), pieces.ravel(), 1024, "first", length=64)
    assert found.data["first"].piece.values.tolist() == [3, 4, 5, 6, 7, 8, 9, 10]


def test_a_model_without_any_finite_pass_ends_in_a_sentence_and_leaves_no_results(toys, tmp_path):
    with pytest.raises(UsageError, match="a model in memory cannot be probed: .* finite on none of the text's 4 pieces"):
        jd.probe(spoiled(row=slice(None)), NUMBERS, 400, out=tmp_path)
    assert toys == [] and [file.name for file in tmp_path.iterdir() if not file.name.startswith((".", "jaxdyn.json"))] == []


def test_checkpoints_of_a_series_may_leave_out_different_pieces(toys, tmp_path):
    pieces = text(4)
    pieces[pieces == 0], pieces[2, 7] = 1, 0
    with pytest.warns(UserWarning, match="1 of 8 pieces left out, without finite logits"):
        found = jd.probe([plain.model(), spoiled(), spoiled(row=0)], pieces.ravel(), 512, "first", tmp_path, length=64)
    assert [one.data["first"].sizes["piece"] for one in found.checkpoints] == [8, 7, 7]
    drawn = traces(found, 0)["mean token"]
    assert drawn.sizes == {"step": 3, "piece": 8} and drawn.isnull().values.nonzero()[1].tolist() == [4, 2]


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_all_instruments_and_their_page(tmp_path, dtype):
    shape = plain.changed(dtype=dtype)
    one = Model(shape, weights(shape), None, None)
    result = jd.probe(one, NUMBERS, 260, out=tmp_path, length=64)
    assert set(result.data) == set(registry.instruments()) - {"numbers"}
    assert {outcome.read for outcome in result.checkpoints[0].outcomes} == {(4, 64), None}
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert page.count("<svg") == 7 and "nobody knows which tokens are numbers" in page and "Llama-2-7B, PG19" in page
    told = json.loads((tmp_path / "probe.json").read_text(encoding="utf-8"))
    for instrument in told["checkpoints"][0]["instruments"]:
        names = [number["name"] for number in instrument["numbers"]]
        assert len(set(names)) == len(names)
        assert all(number["value"] is not None for number in instrument["numbers"])
