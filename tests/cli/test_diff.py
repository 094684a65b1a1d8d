"""``jaxdyn diff``: two verifications of a small file of claims, and what is no result of a verification."""

import json
import shutil
from pathlib import Path

import pytest

import jaxdyn as jd
from jaxdyn import theories
from jaxdyn.cli.main import main as cli
from jaxdyn.engine.base.reference import load_file

from ..engine.conftest import TOYS

CLAIMS = ("toy.decay", "toy.open")


def verified(out, *words, edits=()):
    """Verify two toys, after edits of their file, into a folder."""
    text = TOYS.read_text(encoding="utf-8")
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    Path("mine.py").write_text(text, encoding="utf-8")
    assert cli(["verify", *CLAIMS, "--load", "mine.py", "--workers", "1", "--out", out, *words]) in (0, 1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A verification, in ``a``, and others in which one thing is another."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("diff"))
        patch.setattr(theories, "__path__", [])
        patch.setenv("EQX_ON_ERROR", "nan")
        verified("a")
        verified("again")
        verified("seeds", "--seeds", "8")
        verified("field", "--set", "rate=0.5,3")
        verified("bound", edits=[('"x", "entry"), 1e-9)', '"x", "entry"), 1e-20)')])
        verified("judge", edits=[('"measured over predicted", (', '"measured over predicted", 1.5 * (')])
        return Path.cwd()


@pytest.fixture
def diff(folder, jaxdyn, monkeypatch):
    monkeypatch.chdir(folder)
    return lambda *words: jaxdyn("diff", *words)


def test_nothing_differs(diff):
    code, out, err = diff("a", "again")
    assert code == 0 and err == "" and out.count("\n") == 1 and out.startswith("Nothing differs in 2 claims"), "but the time"
    assert diff("a/result.json", "a") == (0, "Nothing differs in 2 claims.\n", "")


def test_other_seeds(diff):
    code, out, _ = diff("a", "seeds")
    assert "  seeds: 0:4 → 0:8\n  runs: 16 → 32\n" in out and "verdict:" not in out
    assert code == 0 and out.endswith("2 claims in both: no verdict differs, no number moved\n"), out


def test_another_field(diff):
    code, out, _ = diff("a", "field")
    assert "  setting rate: 0.5, 1.0 → 0.5, 3.0\n" in out and "settings" not in out and "judge" not in out, out
    assert code == 1 and "  · control sign descent: relative error: " in out, "to which the rate is something else"


def test_another_bound(diff):
    code, out, _ = diff("a", "bound")
    assert code == 1 and "toy.decay\n  verdict: upheld → refuted (expected upheld)" in out
    line = next(line for line in out.splitlines() if "✗" in line)
    assert line.startswith("  ✗ relative error: ") and line.endswith("passed → failed, bound at most 1e-09 → at most 1e-20")
    assert "moved" not in line and "  judge, controls and rivals: " in out
    assert out.endswith("2 claims in both: 1 verdict differs, 4 numbers moved or have another outcome\n")
    assert "  looks: none → judge, bounds or design changed once after runs were seen" in out and out.count(" → none, moved") == 3


def test_another_judge(diff):
    code, out, _ = diff("a", "judge")
    assert code == 1 and "· reading measured over predicted: 1 [1, 1] → 1.5 [1.5, 1.5], moved" in out, out


def test_json(diff, folder):
    code, out, err = diff("a", "bound", "--json")
    whole = json.loads(out)
    assert code == 1 and err == "" and out.count("\n") == 1 and whole["differs"] is True and whole["compared"] == 2
    assert whole == json.loads(json.dumps(jd.diff("a", "bound").to_json()))
    decay = next(c for c in whole["claims"] if c["id"] == "toy.decay")
    assert decay["verdict"] == ["upheld", "refuted"] and decay["numbers"][0]["bound"] == [[None, 1e-9], [None, 1e-20]]
    code, out, _ = diff("a", "again", "--json")
    assert code == 0 and json.loads(out)["claims"] == [] and json.loads(out)["differs"] is False


def test_results_of_a_session(diff, folder):
    """What ``jd.verify`` returned, against what is stored; and a file with what ``--json`` printed."""
    results = jd.verify_many([c for c in load_file(TOYS).CLAIMS if c.id in CLAIMS], seeds=8)
    found = jd.diff(folder / "seeds", results)
    assert not found.differs and not found.only_a and found.b["path"] == "results of this session"
    assert jd.diff(results, results).empty and jd.diff(results[0], folder / "seeds").only_b == ("toy.open",)
    shutil.copy("a/result.json", "printed.txt")
    assert diff("printed.txt", "again")[0] == 0


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("missing", None, "missing does not exist; give the --out of `jaxdyn verify`, or the result.json in it"),
        ("cut.json", '{"claims": [', "cut.json is damaged: it is not JSON"),
        ("bytes.json", b"\xff\xfe\x00", "bytes.json is damaged: it is not JSON"),
        ("deep.json", "[" * 100_000, "deep.json is damaged: it is not JSON"),
        ("list.json", "[1, 2]", "list.json holds no results of `jaxdyn verify`"),
        ("other.json", '{"claims": 3}', "other.json holds no results of `jaxdyn verify`"),
        ("newer.json", '{"format": 2, "claims": {}}', "was written in format 2, this version reads format 1; use a newer jaxdyn"),
        ("page.html", "<html>", "page.html is a page, which does not hold the results; give the folder that was --out"),
        ("empty", "folder", "empty holds no results of `jaxdyn verify`; give the folder that was its --out"),
        ("/dev/zero", None, "/dev/zero cannot be read: it is no plain file"),
        ("damaged.json", '{"claims": [{"id": "toy.decay", "checks": 3}]}', "the entry of toy.decay is damaged"),
    ],
)
def test_wrong_use_is_one_sentence(diff, name, content, words):
    if content == "folder":
        Path(name).mkdir(exist_ok=True)
    elif content is not None:
        Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())
    for pair in ((name, "a"), ("a", name)):
        code, out, err = diff(*pair)
        assert code == 2 and out == "" and err.startswith("jaxdyn: ") and err.count("\n") == 1 and words in err, err


def test_wrong_words(diff):
    for words in (("a",), ("a", ""), ("a", "b", "c"), ("a", "again", "--all")):
        code, out, err = diff(*words)
        assert code == 2 and out == "" and err.count("\n") == 1


def test_a_report_of_a_newer_version_is_refused(diff, jaxdyn):
    Path("newer").mkdir(exist_ok=True)
    Path("newer/result.json").write_text('{"format": 2, "claims": []}', encoding="utf-8")
    code, _, err = jaxdyn("report", "newer")
    assert code == 2 and "format 2" in err
