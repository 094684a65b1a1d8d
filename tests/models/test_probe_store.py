"""What a probe stores: Datasets and sentences come back as they were, by what they depend on."""

import dataclasses
import types

import jax
import numpy as np
import pytest
import xarray as xr

from jaxdyn.errors import StoreError
from jaxdyn.instruments import registry
from jaxdyn.models import probe_store
from jaxdyn.models.probe_store import identities, read, write
from tests.instruments import plain
from tests.models.toys import toy


def identity(model, pieces, one=None):
    """That of one instrument."""
    (found,) = identities(model, pieces, [toy("one") if one is None else one]).values()
    return found


def test_datasets_and_sentences_come_back(tmp_path):
    ds = xr.Dataset({"x": (("piece", "kind"), np.arange(6.0).reshape(2, 3))}, {"kind": ["a", "b", "ç"]}, {"n": 3, "s": "text"})
    write(tmp_path, "one", "id", ds, 1.5)
    write(tmp_path, "two", "id", "Why not.", 0.5)
    back, seconds = read(tmp_path, "one", "id")
    assert back.identical(ds) and seconds == 1.5 and back.kind.values.tolist() == ["a", "b", "ç"]
    assert read(tmp_path, "two", "id") == ("Why not.", 0.5)
    assert read(tmp_path, "one", "other") is None and read(tmp_path / "none", "one", "id") is None


def test_the_identity_is_of_the_content():
    pieces = np.zeros((2, 3), np.int32)
    one = plain.model()
    assert identity(one, pieces) == identity(plain.model(), pieces.copy()) != identity(one, pieces.reshape(3, 2))
    moved = one._replace(params=one.params | {"norm": one.params["norm"] * (1 + 1e-6)})
    assert identity(moved, pieces) != identity(one, pieces)


def test_the_identity_is_of_the_instruments_own_module(monkeypatch, tmp_path):
    """What another version of its code has measured is measured again; results of other instruments stay."""
    pieces, found = np.zeros((2, 3), np.int32), []
    for name in ("one.py", "another.py"):
        (tmp_path / name).write_text(f"NAME = {name!r}\n", encoding="utf-8")
        home = types.SimpleNamespace(__file__=str(tmp_path / name))
        monkeypatch.setattr(registry, "homes", lambda home=home: {"first": home})
        found.append(identities(plain.model(), pieces, [toy("first"), toy("second")]))
    assert found[0]["first"] != found[1]["first"] and found[0]["second"] == found[1]["second"]


def test_the_identity_is_of_the_instrument_as_it_is_in_this_process():
    """One whose code was changed in memory is another."""
    pieces = np.zeros((2, 3), np.int32)
    one = toy("first")
    assert identity(plain.model(), pieces, one) == identity(plain.model(), pieces, toy("first"))
    other = dataclasses.replace(one, measure=lambda model, pieces, tick: xr.Dataset({"x": 2.0}))
    assert identity(plain.model(), pieces, other) != identity(plain.model(), pieces, one)


@pytest.mark.parametrize(("option", "value"), [("jax_default_prng_impl", "rbg"), ("jax_default_matmul_precision", "bfloat16")])
def test_other_options_of_jax_are_another_identity(option, value):
    """What was measured with other random keys or products is not shown for these."""
    one, pieces, before = plain.model(), np.zeros((2, 3), np.int32), jax.config.values[option]
    usual = identity(one, pieces)
    try:
        jax.config.update(option, value)
        assert identity(one, pieces) != usual
    finally:
        jax.config.update(option, before)
    assert identity(one, pieces) == usual


def test_a_file_that_was_renamed_is_not_anothers(tmp_path):
    """Nor one that lies in the place of a file."""
    write(tmp_path, "one", "id", "Why not.", 0.5)
    (file,) = tmp_path.iterdir()
    for name in ("one.other", "two.id"):
        (tmp_path / file.name.replace("one.id", name)).write_bytes(file.read_bytes())
        with pytest.raises(StoreError, match=r"was renamed: it holds what was measured as one\.id; remove it"):
            read(tmp_path, *name.split("."))
    (tmp_path / file.name.replace("one.id", "three.id")).mkdir()
    with pytest.raises(StoreError, match="cannot be read: Is a directory; remove it"):
        read(tmp_path, "three", "id")


def test_the_identity_is_of_the_tokenizers_code(monkeypatch):
    before = probe_store.code_of_instruments.__wrapped__()
    monkeypatch.setattr(probe_store, "edited", lambda file: "edited" if file.name == "tokenizer.py" else "")
    assert probe_store.code_of_instruments.__wrapped__() != before


def test_the_identity_is_of_functions_of_ones_own(tmp_path):
    """``file.py:function`` is a name; what the function does counts."""
    pieces, found = np.zeros((2, 3), np.int32), []
    for name, slope in (("one", 1), ("same", 1), ("other", 2)):
        (tmp_path / name).mkdir()
        file = tmp_path / "act.py"
        file.write_text(f"def act(x):\n    return {slope} * x\n", encoding="utf-8")
        one = plain.model()
        found.append(identity(one._replace(shape=dataclasses.replace(one.shape, activation=f"{file}:act")), pieces))
    assert found[0] == found[1] != found[2]
