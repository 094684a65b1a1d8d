"""Runs on a published model: pieces are of the text and drawn by the key, weights are the model's, and what is missing is said."""

import os
import shutil
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn import models
from jaxdyn.models.on_text import OnText, on_text, on_text_with_line_break, piece, shuffled_entries
from jaxdyn.nn.activations import cross_entropies
from jaxdyn.nn.transformer import apply, trunk
from tests.models.hugging import needs_models
from tests.models.small import SHAPE, saved, spoken

pytestmark = needs_models


@on_text
def reading(s, key, shared):
    """Nats of a piece, and its tokens."""
    tokens = piece(s, key, shared)
    x = trunk(shared.shape, shared.params, tokens[None, :-1])[0]
    lost = cross_entropies(shared.shape, shared.params, x, tokens[1:])
    return jd.observables(measured={"nats": jd.named(lost, "token")}, recorded={"tokens": jd.named(tokens, "place")})


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    return spoken(tmp_path_factory.mktemp("on_text"))


@pytest.mark.slow
def test_runs_are_pieces_of_the_text_read_by_the_model(places):
    fields, ids = places
    ds = jd.sweep(reading, jd.grid(OnText, length=64, **fields), 3)
    model = models.load(fields["model"])
    for run in range(3):
        tokens = ds.tokens.values[run]
        assert any(np.array_equal(tokens, ids[i : i + 64]) for i in range(len(ids) - 63))
        logits = apply(model.shape, model.params, jnp.asarray(tokens)[None, :-1])[0]
        expected = -np.take_along_axis(np.asarray(jax.nn.log_softmax(logits)), tokens[1:, None], 1)[:, 0]
        np.testing.assert_allclose(ds.measured_nats.values[run], expected, rtol=2e-5, atol=1e-6)
    assert len({tuple(t) for t in ds.tokens.values}) == 3, "other keys, other pieces"


def test_a_line_break_is_a_token_of_the_model(places, monkeypatch):
    """The last one where it takes several; a tokenizer that has none is refused."""
    fields, _ = places
    with_break = on_text_with_line_break(lambda s, key, shared: None).resource
    with pytest.raises(jd.UsageError, match="its tokenizer has no line break"):
        with_break.load(OnText(**fields))
    monkeypatch.setattr(models.Tokenizer, "encode", lambda *args, **options: np.asarray([4, 7]))
    found, plain = with_break.load(OnText(**fields)), reading.resource.load(OnText(**fields))
    assert int(found.line_break) == 7 and plain.line_break is None
    assert with_break.identity(OnText(**fields)) == reading.resource.identity(OnText(**fields))


@pytest.mark.slow
def test_shuffled_words_are_the_same_words(places):
    fields, _ = places
    ds = jd.sweep(reading, jd.grid(OnText, length=64, words=["in order", "shuffled"], **fields), 2).tokens
    one, other = ds.sel(words="in order").values, ds.sel(words="shuffled").values
    np.testing.assert_array_equal(np.sort(one), np.sort(other))
    assert (one != other).any(-1).all()


def test_shuffled_weights_are_the_same_numbers_layer_by_layer(places):
    """Of gains and biases, too, whatever their number of axes; of all others as a whole."""
    fields, _ = places
    published, shuffled = (reading.resource.load(OnText(weights=w, length=64, **fields)).params for w in ("published", "shuffled"))
    leaves = zip(jax.tree_util.tree_leaves_with_path(published), jax.tree.leaves(shuffled), strict=True)
    for (path, before), after in leaves:
        assert before.shape == after.shape
        rows = len(before) if path[0].key == "blocks" else 1
        np.testing.assert_array_equal(*[np.sort(np.asarray(w).reshape(rows, -1)) for w in (before, after)])
    assert not np.array_equal(published["embed"], shuffled["embed"]) and published["embed"].shape == (SHAPE.vocabulary, 12)
    assert {published["blocks"][name].ndim for name in ("q", "attention_norm")} == {2, 3}


def test_a_named_model_that_was_not_fetched_is_absent(tmp_path, monkeypatch):
    monkeypatch.setenv("JAXDYN_CACHE", str(tmp_path))
    with pytest.raises(jd.Absent, match="the model smollm2 is not in the cache folder: jaxdyn models get smollm2"):
        reading.resource.identity(OnText())


def test_other_weights_and_texts_are_other_resources(places, tmp_path):
    fields, _ = places
    which = reading.resource.identity
    before = which(OnText(**fields))
    (tmp_path / "other.txt").write_text("w1 " * 100, encoding="utf-8")
    assert which(OnText(**fields | {"text": str(tmp_path / "other.txt")})) != before
    saved(tmp_path / "model")
    assert which(OnText(**fields | {"model": str(tmp_path / "model")})) != before


def test_weights_replaced_by_others_of_the_same_size_and_time_are_other_weights(places, tmp_path):
    """In one process, and by the identity under which runs are stored; a copy elsewhere is the same."""
    fields, _ = places
    folder = tmp_path / "model"
    shutil.copytree(fields["model"], folder)
    s = OnText(**fields | {"model": str(folder)})
    before, published = reading.resource.identity(s), reading.resource.load(s).params["embed"]
    assert before == reading.resource.identity(OnText(**fields))
    (file,) = folder.glob("*.safetensors")
    state, data = file.stat(), bytearray(file.read_bytes())
    data[-2] ^= 1
    (tmp_path / "other").write_bytes(bytes(data))
    os.utime(tmp_path / "other", ns=(state.st_atime_ns, state.st_mtime_ns))
    os.replace(tmp_path / "other", file)
    assert (file.stat().st_size, file.stat().st_mtime_ns) == (state.st_size, state.st_mtime_ns)
    assert reading.resource.identity(s) != before
    found, expected = reading.resource.load(s).params, models.load(str(folder)).params
    changed = [not np.array_equal(a, b) for a, b in zip(*map(jax.tree.leaves, (found, published_of(fields))), strict=True)]
    assert sum(changed) == 1 and np.array_equal(published, published_of(fields)["embed"])
    jax.tree.map(np.testing.assert_array_equal, found, expected)


def test_another_way_to_read_the_same_files_is_another_resource(places, monkeypatch):
    fields, _ = places
    before = reading.resource.identity(OnText(**fields))
    on_text_of = sys.modules[OnText.__module__]
    monkeypatch.setattr(on_text_of, "versions_of", lambda names: ["another gguf"])
    other = reading.resource.identity(OnText(**fields))
    monkeypatch.setattr(on_text_of, "modules_behind", lambda *names, within: f"other code in {within}")
    assert len({before, other, reading.resource.identity(OnText(**fields))}) == 3


def published_of(fields):
    return models.load(fields["model"]).params


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"length": 63}, "length=63 is not allowed: length is at least 64"),
        ({"length": 400}, "length=400 is not allowed: length is at most 399, fewer than the tokens of the text"),
        ({"model": "nothing"}, "there is no model nothing: it is a folder with config.json"),
        ({"text": "nothing.txt"}, "nothing.txt"),
        ({"weights": "mine"}, "weights='mine' is not allowed"),
    ],
)
def test_bad_fields_are_named(places, fields, message):
    with pytest.raises(jd.UsageError, match=message):
        jd.sweep(reading, jd.grid(OnText, **places[0] | {"length": 64} | fields), 1)


def test_shuffled_arrays_of_one_shape_are_not_paired():
    """Gate and up may be alike, and an untied head like the embedding: after the shuffle they are not."""
    one = jnp.arange(40.0).reshape(2, 4, 5)
    params = {"blocks": {"gate": one, "up": one, "down": one}, "embed": one[0], "head": one[0]}
    shuffled = jax.tree_util.tree_map_with_path(shuffled_entries, params)
    for some in (list(shuffled["blocks"].values()), [shuffled["embed"], shuffled["head"]]):
        assert len({np.asarray(x).tobytes() for x in some}) == len(some)
    again = jax.tree_util.tree_map_with_path(shuffled_entries, params)
    jax.tree.map(np.testing.assert_array_equal, again, shuffled)
