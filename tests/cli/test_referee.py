"""``jaxdyn referee`` as a user types it."""

import json
import re
import subprocess
import sys
import time
import types
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from jaxdyn.cli import referee
from jaxdyn.cli.main import main

PAGE = (Path(__file__).parents[2] / "docs" / "referee.md").read_text(encoding="utf-8")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for name, code in re.findall(r'```python title="(\w+\.py)"\n(.*?)```', PAGE, re.S):
        (tmp_path / name).write_text(code, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def asked(capsys, *words):
    code = main(["referee", "--json", "--workers", "1", *words])
    seen = capsys.readouterr()
    return code, json.loads(seen.out), seen.err


@pytest.mark.slow
def test_the_faults_of_the_page_are_found_and_its_better_claim_stands(folder, capsys):
    code, whole, said = asked(capsys, "--load", "mine.py", "mine.decay", "--out", "a")
    (entry,) = whole["claims"]
    found = {a["name"] for a in entry["attacks"] if a["outcome"] == "finding"}
    assert code == 1 and found >= {"law", "words"}, found
    assert "open finding" in said
    code, whole, _ = asked(capsys, "--load", "better.py", "mine.better", "--out", "a")
    (entry,) = whole["claims"]
    assert code == 0, [f for a in entry["attacks"] for f in a["findings"]]


def test_quick_answers_in_json(folder, capsys):
    code, whole, _ = asked(capsys, "--quick", "--load", "mine.py", "mine.decay", "--out", "a")
    (entry,) = whole["claims"]
    assert code == 1 and entry["id"] == "mine.decay"
    by = {a["name"]: a["outcome"] for a in entry["attacks"]}
    assert by["luck"] == by["neighbours"] == "not asked" and by["law"] == "finding"
    assert whole["outcomes"]["law"] == {"finding": 1}
    assert json.loads((folder / "a" / "referee.json").read_text(encoding="utf-8"))["claims"][0]["id"] == "mine.decay"


def test_what_is_lost_of_earlier_answers_is_said(tmp_path, capsys):
    attacks = [{"name": "law", "outcome": "noticed"}, {"name": "luck", "outcome": "finding"}]
    both = [{"id": name, "attacks": attacks} for name in ("mine.a", "mine.b")]
    referee.write_answers(tmp_path, both)
    referee.write_answers(tmp_path, both[:1])
    assert capsys.readouterr().err == ""
    quick = {"id": "mine.a", "attacks": [attacks[0], {"name": "luck", "outcome": "not asked"}]}
    referee.write_answers(tmp_path, [quick])
    assert "more had been asked of mine.a; those answers are replaced" in capsys.readouterr().err
    file = tmp_path / "referee.json"
    assert json.loads(file.read_text(encoding="utf-8"))["claims"] == [quick, both[1]]
    for damage in (
        file.read_text(encoding="utf-8")[:-5],
        "[]",
        '{"claims": [3]}',
        '{"claims": [{"id": "mine.a", "attacks": [3]}]}',
    ):
        file.write_text(damage, encoding="utf-8")
        referee.write_answers(tmp_path, [quick])
        assert "is damaged: the answers of earlier calls are left out" in capsys.readouterr().err
        assert json.loads(file.read_text(encoding="utf-8"))["claims"] == [quick]


def test_what_does_not_fit_into_the_minutes_is_named(capsys, monkeypatch, tmp_path):
    times = iter(range(0, 10**6, 100))
    monkeypatch.setattr(referee, "time", types.SimpleNamespace(monotonic=lambda: float(next(times))))  # not that of the progress
    monkeypatch.setattr(referee, "_group", lambda folder, claims, *rest: [{"id": one.id, "attacks": []} for one in claims])
    code, whole, said = asked(
        capsys, "--quick", "--minutes", "4", "power.steep", "sup.steps", "snap.limit", "--out", str(tmp_path / "a")
    )
    assert code == 0 and len(whole["claims"]) == 2 and len(whole["not_asked"]) == 1, whole
    assert "3 claims in 3 groups on the same runs; the claims' own runs are made where they are not stored, and no others" in said
    assert "2 claims: 0 open findings; 1 claim not asked yet: the same command goes on" in said


def test_in_workers_no_group_is_begun_after_the_time(monkeypatch, tmp_path):
    def slowly(folder, ids, *rest):
        time.sleep(0.02)
        return [{"id": name} for name in ids]

    monkeypatch.setattr(referee, "_group_by_ids", slowly)
    groups = [[types.SimpleNamespace(id=f"toy.c{i}")] for i in range(50)]
    with ThreadPoolExecutor(1) as pool:
        late = list(referee.ask_groups(pool, groups, tmp_path, True, (), None, until=-1.0))
        whole = list(referee.ask_groups(pool, groups, tmp_path, True, (), None, until=float("inf")))
    assert 1 <= len(late) < 50 and len(whole) == 50


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["no.such"], "no claim matches 'no.such'"),
        (["--workers", "0"], "--workers"),
        (["--minutes", "0"], "--minutes 0 is not allowed"),
        (["--load", "none.py"], "no such file"),
    ],
)
def test_wrong_use_is_one_sentence(folder, capsys, words, sentence):
    assert main(["referee", *words]) == 2
    said = capsys.readouterr().err
    assert sentence in said and said.count("\n") == 1


@pytest.mark.slow
def test_it_runs_claims_of_ours_in_workers_and_resumes(folder):
    command = [sys.executable, "-m", "jaxdyn", "referee", "--quick", "--workers", "2", "--out", "b", "power.steep", "sup.steps"]
    first, second = (subprocess.run(command, capture_output=True, encoding="utf-8", timeout=300) for _ in range(2))
    assert first.returncode in (0, 1) and first.returncode == second.returncode, first.stderr
    assert [line for line in first.stderr.splitlines() if "power.steep" in line][:1]
    assert "2 claims" in second.stderr
