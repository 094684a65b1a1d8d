"""Runs at paper scale are kept whole, and nothing else is."""

import json

import pytest

from jaxdyn.errors import UsageError
from jaxdyn.report.studies import keep, study

CLAIM = {"id": "toy.law", "scale": "paper", "verdict": "upheld", "expected": "upheld", "checks": [{"name": "c"}], "statement": "s"}


def verified(folder, *claims):
    folder.mkdir(exist_ok=True)
    whole = {"claims": list(claims), "environment": {"date": "2026-11-22", "jax": "0.10.2", "device": "cpu"}}
    (folder / "result.json").write_text(json.dumps(whole))
    (folder / "figures.json").write_text(json.dumps({"toy.law": "<svg/>"}))
    return folder


def test_what_came_out_is_kept(tmp_path):
    quick, broken = CLAIM | {"id": "toy.quick", "scale": "quick"}, CLAIM | {"id": "toy.broken", "verdict": "error"}
    assert keep(verified(tmp_path / "out", CLAIM, quick, broken), tmp_path / "kept") == ["toy.law"]
    assert [p.name for p in (tmp_path / "kept").iterdir()] == ["toy.law.json"]
    found = study("toy.law", tmp_path / "kept")
    assert found["claim"] == {k: v for k, v in CLAIM.items() if k != "statement"}, "the statement is the package's"
    assert found["environment"]["jax"] == "0.10.2" and found["figure"] == "<svg/>"
    assert study("toy.quick", tmp_path / "kept") is None


def test_a_folder_without_such_results_is_refused(tmp_path):
    with pytest.raises(UsageError, match="holds no results of"):
        keep(tmp_path)
    with pytest.raises(UsageError, match="verify with --scale paper"):
        keep(verified(tmp_path / "out", CLAIM | {"scale": "quick"}))


@pytest.mark.parametrize("content", ["", "[]", "{}", "3", '{"claim": {}}'])
def test_a_damaged_file_counts_as_none(tmp_path, content):
    (tmp_path / "toy.law.json").write_text(content)
    assert study("toy.law", tmp_path) is None


def test_the_page_shows_it_beside_the_quick_run(tmp_path, monkeypatch):
    from jaxdyn.report import page, studies

    from .handmade import FIGURES, claim

    big = claim("toy.law", checks=[{"name": "error at scale", "value": 0.002, "bound": 0.01, "passed": True}]) | {
        "scale": "paper",
        "runs": 4096,
    }
    out = verified(tmp_path / "out", big)
    keep(out, tmp_path / "kept")
    monkeypatch.setattr(studies.study, "__defaults__", (tmp_path / "kept",))
    html = page.page({"claims": [claim("toy.law"), claim("toy.other")]}, FIGURES)
    assert html.count("At the paper's scale") == 1
    assert "error at scale" in html and "4,096 runs" in html and "jax 0.10.2" in html and "2026-11-22" in html
