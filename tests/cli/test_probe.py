"""`jaxdyn probe` as a user types it."""

import json

import pytest

from jaxdyn.cli.probe import folder_of
from jaxdyn.models import probe as probing
from jaxdyn.models.tokenizer import Tokenizer
from tests.instruments import plain
from tests.models.toys import Letters, only, refuses, toy


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A working folder with a text, toys for instruments, and a model of any name."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "book.txt").write_text("It was a dark and stormy night. " * 40, encoding="utf-8")
    only(monkeypatch, toy("first"), refuses("second"))
    monkeypatch.setattr(probing, "load", lambda name, dtype: plain.model(tokenizer=Tokenizer(Letters())))
    monkeypatch.setattr(
        probing, "describe", lambda name, dtype: type("Summary", (), {"lines": lambda self: [f"model      {name}"]})()
    )
    return tmp_path


def test_the_page_is_written_and_told(here, jaxdyn):
    code, out, err = jaxdyn("probe", "org/tiny", "--text", "book.txt", "--tokens", 400)
    assert code == 0 and out == ""
    lines = err.splitlines()
    assert lines[0] == "model      org/tiny"
    assert lines[1].startswith("2 instruments; 4 pieces of 101 tokens of book.txt; about 1 min")
    assert any(line.split() == ["second", "skipped:", "Nothing", "here", "can", "be", "measured."] for line in lines)
    assert "mean token: " in err and "toys: 5" in err and lines[-1] == "page: probe-tiny/index.html"
    page = (here / "probe-tiny" / "index.html").read_text(encoding="utf-8")
    assert "<title>jaxdyn probe: org/tiny</title>" in page and "Nothing here can be measured." in page


def test_json_is_one_object_and_a_second_run_is_stored(here, jaxdyn):
    words = ("probe", "tiny.gguf", "--text", "book.txt", "--tokens", 400, "--json", "--only", "first", "--out", "there")
    first, again = jaxdyn(*words), jaxdyn(*words)
    assert json.loads(first[1]) == json.loads(again[1]) and "stored already" in again[2] and "1 of them stored" in again[2]
    told = json.loads(first[1])
    assert told["text"]["name"] == "book.txt" and told["checkpoints"][0]["instruments"][0]["name"] == "first"


def test_a_page_of_another_model_that_is_replaced_is_named(here, jaxdyn):
    words = ("--text", "book.txt", "--tokens", 400, "--only", "first")
    line = "probe-final holds the page of a/final, which is replaced; --out DIR keeps it"
    assert [line in jaxdyn("probe", model, *words)[2] for model in ("a/final", "a/final", "b/final")] == [False, False, True]


def test_steps_of_a_series_are_given(here, jaxdyn):
    words = ("probe", "step7", "final", "--text", "book.txt", "--tokens", 400, "--only", "first", "--json")
    code, out, err = jaxdyn(*words)
    assert code == 2 and out == "" and "step7, final are not allowed as a series without steps" in err
    code, out, _ = jaxdyn(*words, "--steps", "9,3")
    assert code == 0 and [(one["model"], one["step"]) for one in json.loads(out)["checkpoints"]] == [("final", 3), ("step7", 9)]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("tiny", "--only", "none"), "only=none is not allowed: instruments are first, second"),
        (("tiny", "--tokens", "many"), "--tokens many is not allowed: it is a whole number of at least 256"),
        (("tiny", "--length", "10"), "--length 10 is not allowed: it is a whole number of at least 64"),
        (("tiny", "--text", "nowhere.txt"), "nowhere.txt: give topics or markov, which are made up, a folder with"),
        (("runs/step*",), "runs/step* fits no file or folder"),
        (("a", "b", "--steps", "1,b"), "steps=1,b is not allowed: steps are whole numbers with commas between them"),
        (("tiny", "--steps", "1"), "steps=1 is not allowed: each of two or more models has its own, and there is 1 model"),
        ((), "MODEL is missing"),
        (("tiny", "--out", "book.txt"), "is a file; an output folder is needed"),
    ],
)
def test_wrong_words_end_in_one_sentence(here, jaxdyn, words, message):
    code, out, err = jaxdyn("probe", *words)
    assert code == 2 and out == "" and message in err and err.count("jaxdyn:") == 1 and "Traceback" not in err


def test_a_link_to_nowhere_is_named(here, jaxdyn):
    (here / "link").symlink_to(here / "gone")
    for out in ("link", "link/below"):
        code, _, err = jaxdyn("probe", "tiny", "--text", "book.txt", "--tokens", 400, "--out", out)
        assert code == 2 and f"{here / 'link'} is a link to {here / 'gone'}, which does not exist" in err


def test_the_generated_text_is_read(here, jaxdyn):
    code, _, err = jaxdyn("probe", "tiny", "--text", "markov", "--tokens", 400, "--only", "first")
    assert code == 0 and "tokens of the generated text markov; about" in err
    assert "the generated text markov" in (here / "probe-tiny" / "index.html").read_text(encoding="utf-8")


def test_default_folders():
    assert [str(folder_of([name])) for name in ("org/model", "a/b.gguf", "runs/step*", "./", "smollm2")] == [
        *("probe-model", "probe-b", "probe-step", "probe-model", "probe-smollm2")
    ]
