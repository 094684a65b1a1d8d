"""Where a model is looked for, and what is none."""

import pytest

from jaxdyn.errors import UsageError
from jaxdyn.models.checkpoint import open_checkpoint
from tests.models.ggufs import write
from tests.models.hugging import needs_models
from tests.models.small import saved

pytestmark = needs_models


def test_folders_and_files(tmp_path):
    folder = open_checkpoint(saved(tmp_path / "model"), "bfloat16")
    assert (folder.family.name, folder.shape.dtype, folder.context) == ("llama", "bfloat16", 2048)
    assert folder.tokenizer is None and folder.note == "it has no tokenizer.json"
    file = open_checkpoint(str(write(tmp_path / "model.gguf", "llama", "F32")))
    assert file.tokenizer is not None and file.context == 32 and file.note == ""


def test_names_of_fetched_models(tmp_path, monkeypatch):
    monkeypatch.setenv("JAXDYN_CACHE", str(tmp_path))
    with pytest.raises(UsageError, match="the model smollm2 is not in the cache folder: jaxdyn models get smollm2"):
        open_checkpoint("smollm2")
    (tmp_path / "models").mkdir()
    write(tmp_path / "models" / "smollm2.gguf", "llama", "F32")
    assert open_checkpoint("smollm2").path == tmp_path / "models" / "smollm2.gguf"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (
            "weights.pt",
            "weights.pt is not allowed: reading pickled weights may run code; save the model again with save_pretrained",
        ),
        ("model.onnx", "model.onnx is not allowed: a model is a folder with config.json, a .gguf file, or a name org/model"),
        ("empty", "empty holds no model: it has no config.json"),
    ],
)
def test_what_is_no_model_is_refused(name, words, tmp_path):
    path = tmp_path / name
    path.mkdir() if name == "empty" else path.write_bytes(b"anything")
    with pytest.raises(UsageError, match=words):
        open_checkpoint(path)


def test_what_is_not_there_is_refused(tmp_path):
    for name in ("nothing", str(tmp_path / "nothing" / "model"), "nothing/model.gguf"):
        with pytest.raises(UsageError, match="there is no model .*nothing"):
            open_checkpoint(name)
