"""Libraries of the extra: not imported before they are used, and one sentence where they are missing."""

import subprocess
import sys

import pytest

from jaxdyn import models
from jaxdyn.errors import UsageError
from jaxdyn.models.extras import library, panics
from tests.models.hugging import needs_models
from tests.models.small import saved


def test_a_missing_library_is_one_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "gguf", None)
    with pytest.raises(UsageError, match=r"published models needs the library gguf: pip install 'jaxdyn\[models\]'"):
        library("gguf")
    assert library("json").loads("1") == 1


def test_a_panic_is_an_error_like_any_other():
    """Libraries written in Rust stop by one, and no ``except Exception`` catches it; other errors, and Ctrl-C, are left alone."""
    panic = type("PanicException", (BaseException,), {})
    with pytest.raises(RuntimeError, match="the library stopped: index out of bounds"), panics():
        raise panic("index out of bounds")
    for other in (KeyboardInterrupt, ValueError):
        with pytest.raises(other), panics():
            raise other
    with panics():
        pass


@needs_models
def test_a_folder_says_what_is_missing(tmp_path, monkeypatch):
    folder = saved(tmp_path / "model")
    monkeypatch.setitem(sys.modules, "safetensors", None)
    with pytest.raises(UsageError, match="needs the library safetensors"):
        models.load(tmp_path / folder)


@pytest.mark.slow
def test_importing_models_imports_none_of_them():
    code = (
        "import sys, jaxdyn.models\n"
        "extra = {'safetensors', 'tokenizers', 'gguf', 'huggingface_hub', 'torch', 'transformers'} & set(sys.modules)\n"
        "assert not extra, extra\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
