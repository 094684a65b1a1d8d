"""``jaxdyn lab`` as a user types it: fields, a law and an attention of one's own, wrong commands."""

import json

import pytest

from jaxdyn.cli.arguments import LAB_FIELDS
from jaxdyn.cli.main import main
from jaxdyn.laboratory.tasks import TASKS
from jaxdyn.laboratory.trial import Lab


def test_the_command_knows_the_fields():
    assert set(LAB_FIELDS) <= set(Lab.hints)
    assert LAB_FIELDS["data"].endswith(f"({', '.join(TASKS)}).")


OWN = """
import jax.numpy as jnp
from jaxdyn.instruments.law import Law

HEAD = Law(
    name="head", title="The read-out moves against its gradient", theory="", source="",
    read=lambda m: {"head": m.params["head"], "gradient": m.gradient["head"]},
    own=("head",), measure=lambda own: own["head"] - own["head"][:1],
    predict=lambda o: -o["lr"] * jnp.cumsum(jnp.concatenate([0 * o["gradient"][:1], o["gradient"][:-1]]), 0),
    dims="row col", bound=1e-3,
)


def squared(scores, mask):
    positive = jnp.where(mask, scores**2, 0)
    return positive / jnp.maximum(positive.sum(-1, keepdims=True), 1e-6)
"""


def test_the_command_with_a_law_and_an_attention_of_ones_own(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a+b.py").write_text(OWN, encoding="utf-8")
    (tmp_path / "mine.py").write_text(OWN, encoding="utf-8")
    words = "lab --watch a+b.py:HEAD --attention softmax,mine.py:squared --data facts --width 8 --layers 1 --steps 4 --every 1"
    code = main([*words.split(), "--set", "same=true", "--set", "reading=48", "--seeds", "2", "--workers", "1", "--json"])
    out, err = capsys.readouterr()
    assert code == 0 and "page: lab/index.html" in err
    cells = json.loads(out)["cells"]
    assert [cell["variant"] for cell in cells] == ["attention=softmax", "attention=mine.py:squared"]
    assert all(cell["error"] < 1e-3 for cell in cells)
    assert "which is replaced" not in err
    page = (tmp_path / "lab" / "index.html").read_text(encoding="utf-8")
    assert "The read-out moves against its gradient" in page and page.count("<svg") == 3 and "--watch" not in page
    other = [word for word in words.split() if word not in ("--attention", "softmax,mine.py:squared")]
    assert main([*other, "--set", "same=true", "--set", "reading=48", "--seeds", "2", "--workers", "1"]) == 0
    assert (
        "holds the page of head: attention=softmax, attention=mine.py:squared; seeds 0:2, which is replaced"
        in capsys.readouterr().err
    )
    assert main([*other, "--set", "same=true", "--set", "reading=48", "--seeds", "3", "--workers", "1"]) == 0
    assert "holds the page of head: plain; seeds 0:2, which is replaced" in capsys.readouterr().err


def test_the_command_watches_instruments(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = "lab --watch sinks --data facts --attention softmax,relu --width 8 --layers 1 --steps 2 --every 1 --seeds 2 --workers 1"
    fields = ["--set", "same=true", "--set", "reading=48"]
    assert main([*words.split(), *fields, "--json"]) == 0
    out, err = capsys.readouterr()
    assert "1 instrument, 2 variants, 2 runs in 1 program;" in err and "sinks is not asked of attention=relu: The weights of" in err
    assert "weight on the first token" in err and {cell["verdict"] for cell in json.loads(out)["cells"]} == {
        "measured",
        "not asked",
    }
    page = (tmp_path / "lab" / "index.html").read_text(encoding="utf-8")
    assert page.count("<svg") == 1 and "Attention sinks" in page and "Laws by variants" not in page
    assert main([*words.replace("softmax,relu", "softmax").split(), *fields]) == 0
    assert "holds the page of sinks: attention=softmax, attention=relu; seeds 0:2, which is replaced" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("--watch gravity", "jaxdyn: watch=gravity is not allowed"),
        ("--watch streaming", "jaxdyn: watch=streaming is not allowed: it is about texts far longer than sequences of"),
        ("--watch balance --norm none,batch", "jaxdyn: norm=batch is not allowed: norm is one of none, rms, layer"),
        ("--watch balance --set speed=3", "jaxdyn: Lab has no field 'speed'"),
        ("--watch balance --set watch=edge", "jaxdyn: --set watch is not allowed: it is the option --watch"),
        ("--watch balance --seeds 0", "jaxdyn: --seeds 0 is not allowed"),
        ("", "jaxdyn: --watch is missing"),
    ],
)
def test_wrong_commands_are_one_sentence(words, sentence, capsys):
    assert main(["lab", *words.split()]) == 2
    assert capsys.readouterr().err.startswith(sentence)
