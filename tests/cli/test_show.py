"""One claim in the terminal: what its verdict rests on, and the last verdict."""

import json
from pathlib import Path

import pytest

import jaxdyn as jd
from jaxdyn.engine.catalogue import library

from ..engine.conftest import TOYS
from ..report.handmade import claim

pytestmark = pytest.mark.usefixtures("away_from_home")


@pytest.fixture
def mine(jaxdyn):
    """The claim that ``jaxdyn new`` writes."""
    assert jaxdyn("new", "mine.py")[0] == 0
    return "mine.py"


def test_show_says_what_a_verdict_rests_on(jaxdyn, mine, monkeypatch):
    monkeypatch.setenv("COLUMNS", "90")
    code, out, err = jaxdyn("show", "mine.decay", "--load", mine)
    assert code == 0 and err == "" and max(map(len, out.splitlines())) <= 90
    lines = {line.split()[0]: " ".join(line.split()[1:]) for line in out.splitlines() if line.startswith("  ")}
    assert out.startswith("mine.decay  (expected: upheld)\n") and "x(t) = x₀e⁻ᵃᵗ" in " ".join(out.split())
    assert lines["source"] == "textbook" and lines["home"] == "mine.py"
    assert lines["evidence"] == "network: parameters moved by optimizer steps on the loss of a model"
    assert lines["assumes"] == "step < 0.1" and lines["bounds"] == "derived"
    assert lines["controls"] == "sign descent (optimizer = sign)" and lines["rivals"] == "nothing moves"
    assert lines["command"] == "jaxdyn verify mine.decay --load mine.py"
    assert lines["lr"] == "a number above 0 rate 0.01 0.02, 0.01, 0.005" and lines["optimizer"] == "one of gd, sign gd gd"
    assert "48 runs (6 settings × 8 seeds) at quick scale" in out
    assert out.splitlines()[-1] == "No verdict in report; the command above makes one."


def test_show_says_that_an_earlier_call_judged_a_claim(jaxdyn, mine, tmp_path):
    """The folder's page is of the last call alone."""
    (tmp_path / "report" / "conclusions").mkdir(parents=True)
    (tmp_path / "report" / "conclusions" / "mine.decay.gz").write_bytes(b"")
    last = jaxdyn("show", "mine.decay", "--load", mine, "--out", str(tmp_path / "report"))[1].splitlines()[-3:]
    assert " ".join(last).endswith("was of other claims; the command above judges the stored runs of this one again.")


def test_show_prints_the_ranges_of_fields(jaxdyn, mine):
    text = Path(mine).read_text(encoding="utf-8").replace("jd.field(0.01, above=0)", "jd.field(0.01, above=0, at_most=1)")
    Path(mine).write_text(text.replace("dim: int = 4", "dim: int = jd.field(4, at_least=1)"), encoding="utf-8")
    _, out, _ = jaxdyn("show", "mine.decay", "--load", mine)
    lines = {line.split()[0]: " ".join(line.split()[1:]) for line in out.splitlines() if line.startswith("  ")}
    assert lines["lr"] == "a number above 0 and at most 1 rate 0.01 0.02, 0.01, 0.005"
    assert lines["dim"] == "a whole number at least 1 none 4 4" and lines["curvature"] == "a number none 1 0.5, 1"
    fields = {f["name"]: f["range"] for f in json.loads(jaxdyn("show", "mine.decay", "--load", mine, "--json")[1])["fields"]}
    assert fields["lr"] == {"above": 0, "at_most": 1} and fields["curvature"] == {}
    code, _, err = jaxdyn("verify", "mine.decay", "--load", mine, "--set", "lr=0.01,-0.1")
    assert code == 2 and "lr=-0.1 is not allowed: lr is above 0 and at most 1" in err


@pytest.mark.slow
def test_show_ends_with_the_last_verdict(jaxdyn, mine):
    assert jaxdyn("verify", "mine", "--load", mine, "--workers", 1, "--out", "there")[0] == 0
    _, out, _ = jaxdyn("show", "mine.decay", "--load", mine, "--out", "there")
    last = out[out.index("last verdict: ") :]
    assert last.startswith("last verdict: upheld (there/result.json, ") and "quick, seeds 0:8" in " ".join(last.split())
    for line in (
        "✓ gate: part of the way",
        "✓ relative error: 0.0025",
        "✓ control sign descent: rejected",
        "✓ rival nothing moves",
    ):
        assert f"\n  {line}" in last, last
    assert "bound at least 0.2" in last and "resolution: x 0.017 % (scale)" in last
    assert jaxdyn("show", "mine.decay", "--load", mine)[1].endswith("No verdict in report; the command above makes one.\n")


def stored(folder, **fields):
    """A folder with a result of the toys' first claim."""
    Path(folder).mkdir()
    Path(folder, "result.json").write_text(
        json.dumps({"claims": [claim("toy.other"), claim("toy.decay", **fields)]}), encoding="utf-8"
    )


def test_show_of_an_inconclusive_claim(jaxdyn):
    undecided = {"name": "$x_0$", "value": 0.9, "bound": [0.95, None], "passed": None, "interval": [None, 1.0], "needed": 40}
    nothing = {"name": "nothing", "value": None, "bound": None, "passed": False}
    rival = {"name": "still", "rejected": False, "checks": [], "reason": "too few"}
    found = {"checks": [undecided, nothing], "rivals": [rival], "outside": 1, "message": "undecided: $x_0$"}
    stored("odd", verdict="inconclusive", **found)
    code, out, _ = jaxdyn("show", "toy.decay", "--load", TOYS, "--out", "odd")
    assert code == 0 and "evidence" in out and "algebra: an identity" in out
    assert "? x₀: 0.9 [-inf, 1], bound at least 0.95; about 40 runs would decide" in out and "undecided: x₀" in out
    assert "✗ nothing: no number\n" in out and "✗ rival still: not rejected (too few)" in out
    assert "1 run outside the assumptions, not judged" in out


def test_show_of_a_printed_form(jaxdyn):
    _, out, _ = jaxdyn("show", "toy.decay_as_printed", "--load", TOYS)
    assert "(expected: refuted, misprint)" in out and "the derived form" in out and "controls" not in out


def test_show_json(jaxdyn):
    stored("there")
    code, out, err = jaxdyn("show", "toy.decay", "--load", TOYS, "--json", "--out", "there")
    shown = json.loads(out)
    assert code == 0 and err == "" and out.count("\n") == 1
    assert shown["id"] == "toy.decay" and shown["last"]["verdict"] == "upheld" and shown["evidence"] == "algebra"
    assert shown["controls"] == ["10% off", "sign descent"] and shown["breaches"] == {"sign descent": {"optimizer": "sign"}}
    rate = next(f for f in shown["fields"] if f["name"] == "rate")
    assert (rate["default"], rate["quick"], rate["paper"]) == (1.0, [0.5, 1.0], [0.5, 1.0, 2.0])
    assert rate["role"] == "rate"
    assert shown["runs"] == {"quick": 16, "paper": 48}


@pytest.mark.parametrize("content", ["", "[]", '{"claims": 3}', '{"claims": [{}]}'])
def test_show_passes_over_damaged_results(jaxdyn, content):
    Path("report").mkdir()
    Path("report/result.json").write_text(content, encoding="utf-8")
    code, out, _ = jaxdyn("show", "toy.decay", "--load", TOYS)
    assert code == 0 and out.endswith("No verdict in report; the command above makes one.\n")


def test_show_of_a_study_at_paper_scale(jaxdyn, monkeypatch):
    entry = claim("toy.decay", verdict="refuted", runs=4096, seed_range="0:64", message="at scale")
    environment = {"date": "2026-11-22 15:01 UTC", "jaxdyn": "0.1.0", "commit": "e9773c4970"}
    Path("toy.decay.json").write_text(json.dumps({"claim": entry, "environment": environment, "figure": "eJw"}), encoding="utf-8")
    assert "at paper scale:" not in jaxdyn("show", "toy.decay", "--load", TOYS)[1]
    monkeypatch.setattr(library, "recorded_folder", lambda prefix, kind: Path.cwd())
    monkeypatch.setenv("COLUMNS", "200")
    code, out, _ = jaxdyn("show", "toy.decay", "--load", TOYS)
    made = "4,096 runs, 2026-11-22, jaxdyn 0.1.0, commit e9773c4970, seeds 0:64"
    stale = "Not current: recorded before fingerprints were kept."
    assert (
        code == 0 and f"at paper scale: refuted, expected upheld ({made})\n  {stale}\n  at scale\n  ✓ relative error: 1e-12" in out
    )
    shown = json.loads(jaxdyn("show", "toy.decay", "--load", TOYS, "--json")[1])
    assert shown["study"].keys() == {"claim", "environment", "changed", "where"} and shown["study"]["claim"]["verdict"] == "refuted"


def test_show_names_the_maps_of_a_claim(jaxdyn, monkeypatch):
    titles = {"a": "Rates", "b": "Sizes"}
    stored = tuple(jd.AtlasMap(name, title, "toy.decay", ("rate=1:2",), "It holds.") for name, title in titles.items())
    monkeypatch.setattr(library, "maps", lambda prefix: stored)
    code, out, err = jaxdyn("show", "toy.decay", "--load", TOYS)
    assert code == 0 and "in the atlas: Rates (jaxdyn map toy.decay --over rate=1:2 --cells 243)\n  It holds." in out, err
    shown = json.loads(jaxdyn("show", "toy.decay", "--load", TOYS, "--json")[1])
    assert [one["title"] for one in shown["maps"]] == ["Rates", "Sizes"]


def test_show_names_the_settings_and_the_judge_of_another_verdict(jaxdyn):
    stored("there", command="jaxdyn verify toy.decay --set rate=3 --by rate --seeds 4", digest="0" * 16)
    text = " ".join(jaxdyn("show", "toy.decay", "--load", TOYS, "--out", "there")[1].split())
    assert (
        "quick, --set rate=3, --by rate) It is the verdict of other settings than the claim's own: --set rate=3 --by rate." in text
    )
    assert "It is of an older version of the claim: the statement and the judge changed since." in text
    last = json.loads(jaxdyn("show", "toy.decay", "--load", TOYS, "--out", "there", "--json")[1])["last"]
    assert last["other"] == ["--set rate=3", "--by rate"] and last["changed"] == ["the statement", "the judge"]


def test_show_says_when_a_change_of_the_judge_cannot_be_noticed(jaxdyn):
    """It uses something whose content nothing tells."""
    text = TOYS.read_text(encoding="utf-8")
    locked = "\nimport dataclasses, threading\nLOCK = threading.Lock()\ndef held(ds): return [LOCK, *CLAIMS[0].judge(ds)][1:]\n"
    Path("locked.py").write_text(f"{text}{locked}CLAIMS = [dataclasses.replace(CLAIMS[0], judge=held)]\n", encoding="utf-8")
    stored("there", command="jaxdyn verify toy.decay", digest="0" * 16)
    words = ("show", "toy.decay", "--load", "locked.py", "--out", "there")
    text = " ".join(jaxdyn(*words)[1].split())
    assert "has changed since is not known: it uses an object of the class lock, which cannot be hashed." in text
    shown = json.loads(jaxdyn(*words, "--json")[1])
    assert shown["digest"] is None and "the judge" not in shown["last"]["changed"]


@pytest.mark.slow
def test_show_says_when_the_last_verdict_is_of_other_settings_or_of_an_older_claim(jaxdyn, mine):
    """Each change alone: of a field on the command line, of the judge, of the trial, of the grid, and of the statement."""
    verify = ("verify", "mine", "--load", mine, "--workers", 1, "--seeds", 2, "--out", "there")
    assert jaxdyn(*verify, "--set", "curvature=3")[0] in (0, 1)

    def last():
        text = " ".join(jaxdyn("show", "mine.decay", "--load", mine, "--out", "there")[1].split())
        return text[text.index("last verdict: ") :]

    assert "--set curvature=3, seeds 0:2) It is the verdict of other settings than the claim's own: --set curvature=3." in last()
    assert "older version" not in last()
    jaxdyn(*verify)
    assert "other settings" not in last() and "older version" not in last()
    text = Path(mine).read_text(encoding="utf-8")
    for old, new, word in (
        ("lr=-1), 0.004)", "lr=-1), 0.005)", "the judge"),
        ("curvature=[0.5, 1.0]", "curvature=[0.5, 2.0]", "the settings or seeds"),
        ("jnp.sign(x))", "2.0 * jnp.sign(x))", "the program"),
        ("to first order", "to leading order", "the statement"),
    ):
        assert text.count(old) == 1
        Path(mine).write_text(text.replace(old, new), encoding="utf-8")
        assert f"It is of an older version of the claim: {word} changed since." in last(), (old, last())
    Path(mine).write_text(text, encoding="utf-8")
    assert "older version" not in last()
