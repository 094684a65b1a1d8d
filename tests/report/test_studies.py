"""Runs at paper scale are stored, and shown wherever their claim is."""

import dataclasses
import json
import re
import shutil
import tomllib
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import jaxdyn as jd
from jaxdyn.engine.base.reference import load_file
from jaxdyn.engine.catalogue import library, registry
from jaxdyn.engine.catalogue.registry import all_claims
from jaxdyn.engine.verification.origin import judge_code, made_from, programs_of, runs_of, traced_programs
from jaxdyn.engine.verification.payload import payload
from jaxdyn.errors import UsageError
from jaxdyn.report import studies
from jaxdyn.report.results import FIGURES, write_results
from jaxdyn.report.studies import (
    changes,
    differs,
    figure,
    note,
    provenance,
    read_data,
    read_study,
    table,
    task_of,
    with_table,
    write_studies,
)
from tests.engine.conftest import TOYS
from tests.report.handmade import DRAWING

CLAIM = {"id": "toy.law", "scale": "paper", "verdict": "upheld", "expected": "upheld", "checks": [{"name": "c"}], "statement": "s"}
ENVIRONMENT = {"date": "2026-11-22 15:01 UTC", "commit": "e9773c4970", "jaxdyn": "0.1.0", "jax": "0.10.2", "device": "cpu"}


def verified(folder, *claims, figures=None):
    folder.mkdir(exist_ok=True)
    write_results(folder, {"claims": list(claims), "environment": ENVIRONMENT}, figures or {"toy.law": "<svg/>"})
    return folder


@pytest.fixture
def stored(tmp_path, monkeypatch):
    """The folder of all studies in a test."""
    monkeypatch.setattr(library, "recorded_folder", lambda prefix, kind: tmp_path / "recorded" / kind)
    return tmp_path / "recorded" / "studies"


def test_results_are_stored(tmp_path, stored):
    quick, broken = CLAIM | {"id": "toy.quick", "scale": "quick"}, CLAIM | {"id": "toy.broken", "verdict": "error"}
    assert write_studies(verified(tmp_path / "out", CLAIM, quick, broken)) == ["toy.law"]
    assert [p.name for p in stored.iterdir()] == ["toy.law.json"]
    study = read_study("toy.law")
    assert study["claim"] == {k: v for k, v in CLAIM.items() if k != "statement"}, "the statement is the package's"
    assert study["environment"]["jax"] == "0.10.2" and figure(study) == "<svg/>"
    assert read_study("toy.quick") is None
    write_studies(verified(tmp_path / "out", CLAIM, figures={"toy.law": "<p>The figure could not be drawn: KeyError</p>"}))
    assert figure(read_study("toy.law")) is None, "a message is no figure"


def test_claims_without_a_folder_have_no_studies(tmp_path):
    assert read_study("toy.law") is None
    with pytest.raises(UsageError, match="toy.law belongs to no theory with a folder"):
        write_studies(verified(tmp_path / "out", CLAIM))


def test_of_opponents_the_outcome_is_stored(tmp_path, stored):
    control = {"name": "Adam", "rejected": True, "checks": [{"name": "c", "value": 3.0}], "reason": None}
    write_studies(verified(tmp_path / "out", CLAIM | {"controls": [control], "rivals": []}))
    entry = read_study("toy.law")["claim"]
    assert entry["controls"] == [{"name": "Adam", "rejected": True}] and entry["rivals"] == []


def test_a_figure_is_stored_once_and_only_where_it_shows_more(tmp_path, stored):
    settings = len(all_claims(theories={"gromov"})["gromov.waves"].quick.cells())
    base = {"seeds": 2, "runs": 2 * settings}
    claims = [CLAIM | base | {"id": f"gromov.{name}"} for name in ("waves", "margin", "analytic", "width")]
    claims[1] |= {"verdict": "refuted"}
    claims[2] |= {"runs": 2 * settings + 2}
    claims[3] |= {"runs": 2 * settings + 2}
    figures = {c["id"]: f"<svg>{i // 3}{c['verdict']}</svg>" for i, c in enumerate(claims)} | {"gromov.width": "<svg>0upheld</svg>"}
    write_studies(verified(tmp_path / "out", *claims, figures=figures))
    drawn = {c["id"]: figure(read_study(c["id"])) for c in claims}
    assert drawn["gromov.waves"] is None, "more seeds only"
    assert drawn["gromov.margin"] and drawn["gromov.analytic"], "another verdict, more settings"
    assert drawn["gromov.width"] is None, "the same drawing as before"


def test_a_folder_without_such_results_is_refused(tmp_path):
    with pytest.raises(UsageError, match="holds no results of"):
        write_studies(tmp_path)
    with pytest.raises(UsageError, match="verify with --scale paper"):
        write_studies(verified(tmp_path / "out", CLAIM | {"scale": "quick"}))


def test_studies_are_not_stored_without_their_figures(tmp_path, stored):
    folder = verified(tmp_path / "out", CLAIM)
    (folder / FIGURES).unlink()
    with pytest.raises(UsageError, match="Figures are left out"):
        write_studies(folder)


@pytest.mark.parametrize("content", ["", "[]", "{}", "3", '{"claim": {}}'])
def test_a_damaged_file_counts_as_none(stored, content):
    stored.mkdir(parents=True)
    (stored / "toy.law.json").write_text(content, encoding="utf-8")
    assert read_study("toy.law") is None


def test_a_study_in_a_line():
    assert (
        provenance({"claim": {"runs": 1640}, "environment": ENVIRONMENT})
        == "1,640 runs, 2026-11-22, jaxdyn 0.1.0, commit e9773c4970"
    )
    assert provenance({"claim": {"runs": 1}, "environment": {"jaxdyn": "0.2"}}) == "1 run, jaxdyn 0.2"
    assert differs(CLAIM | {"verdict": "refuted"}) and not differs(CLAIM)


def test_the_page_shows_it_next_to_the_quick_run(tmp_path, stored):
    from jaxdyn.report import page

    from .handmade import FIGURES, claim

    check = {"name": "error at scale", "value": 0.002, "bound": [None, 0.01], "passed": True}
    gate = check | {"name": "trained", "gate": True}
    controls = [{"name": "Adam", "rejected": True, "checks": []}, {"name": "permuted", "rejected": False, "checks": []}]
    big = claim("toy.law", checks=[check], gates=[gate], controls=controls) | {"scale": "paper", "runs": 4096}
    other = claim("toy.other") | {"scale": "paper", "verdict": "inconclusive", "message": "too few runs"}
    write_studies(verified(tmp_path / "out", big, other, figures={"toy.law": DRAWING}))
    html = page.page({"claims": [claim("toy.law"), claim("toy.other"), claim("toy.third")]}, FIGURES)
    assert html.count("<b>At paper scale</b>") == 2 and html.count('<details class="study" open>') == 1
    assert "error at scale" in html and "4,096\u00a0runs" in html and "jax 0.10.2" in html and "2026-11-22" in html
    assert "✓ met" in html and "1 of 2 controls and rivals rejected; not rejected: permuted." in html
    assert "<small>at paper scale: upheld</small>" in html and "<strong>at paper scale: inconclusive</strong>" in html
    assert re.search(r"<figcaption>.* 4,096\u00a0runs\.</figcaption>", html), "the figure at scale says how many runs it shows"
    assert "Expected upheld, got inconclusive." in html and "2\u00a0claims, 1 not as expected" in html


def test_the_page_says_that_a_study_is_not_current(tmp_path, stored, monkeypatch):
    from jaxdyn.report import page

    from .handmade import FIGURES, claim

    (law,) = toys()[:1]
    monkeypatch.setattr(studies, "known_claim", lambda name: law)
    for found, sentence in ((None, "Not current: recorded before fingerprints were kept."), (origin_of(law), "")):
        write_studies(verified(tmp_path / "out", claim("toy.law", made_from=found) | {"scale": "paper"}))
        html = page.page({"claims": [claim("toy.law")]}, FIGURES)
        assert ("Not current" in html) is bool(sentence) and sentence in html


def test_what_has_changed_since_a_study_was_made(tmp_path, stored):
    law = toys()[0]
    now = origin_of(law)
    cases = {
        "": {},
        "the program changed": {"programs": ["another"], "keys": ["another"]},
        "the judge changed": {"code": "another"},
        "the settings or seeds changed": {"runs": "another"},
        "the judge, the settings or seeds and the program changed": {"code": "", "runs": "", "keys": [], "programs": []},
        "made with JAX 0.1": {"jax": "0.1", "code": "another"},
    }
    for sentence, other in cases.items():
        write_studies(verified(tmp_path / "out", CLAIM | {"made_from": now | other}))
        study = read_study("toy.law")
        assert str(changes(study, law)) == sentence
        assert bool(changes(study, law).reasons) is ("changed" in sentence), "other versions are used, and marked"
    assert note(study, law) == "Not current: made with JAX 0.1."
    narrow = dataclasses.replace(
        law, holds={"rate": (1.0, 1.0)}, quick=law.quick.replace(rate=1.0), paper=law.quick.replace(rate=3.0)
    )
    assert note(study, narrow).startswith("At rate = 3 outside the domain for which the claim is stated. Not current: ")
    assert not changes(study, None), "of a claim that is not known nothing can be said"
    lost = {"claim": CLAIM | {"made_from": now, "command": "jaxdyn verify toy.law --scale paper --set gone=1"}}
    assert str(changes(lost, law)) == "the settings or seeds changed"


def test_the_runs_of_a_study_are_those_of_its_command():
    law = dataclasses.replace(toys()[0], max_seeds=64)
    study = {"claim": {"command": "jaxdyn verify toy.law --scale paper --seeds 16 --set rate=3"}}
    task = task_of(law, study)
    assert task.main.seeds == range(16) and [cell[1] for cell in task.main.cells] == [(3.0,)]
    assert task.command == study["claim"]["command"]
    assert task_of(law, study, again=True).main.seeds == range(8), "its seeds may have been added while it was undecided"
    assert task_of(law).main.seeds == range(8) and len(task_of(law).main.cells) == 2


def test_small_data_are_stored_with_a_study(tmp_path, stored, monkeypatch):
    """From the shards of the verification; they go with it."""
    law = load_file(TOYS).CLAIMS[0]
    monkeypatch.setattr(studies, "all_claims", lambda theories: {law.id: law})
    (result,) = jd.verify_many([law], scale="paper", out=tmp_path / "out")
    whole = json.loads(json.dumps(payload([result], 1.0), default=str))
    write_results(tmp_path / "out", whole, {})
    assert write_studies(tmp_path / "out") == [law.id]
    data, controls = read_data(law.id)
    assert data.equals(result.data) and controls.keys() == result.control_data.keys()
    assert not changes(read_study(law.id), law)
    shutil.rmtree(tmp_path / "out" / "shards")
    write_studies(tmp_path / "out")
    assert read_data(law.id) is None and read_study(law.id)["claim"]["verdict"] == result.verdict


def test_a_study_that_contradicts_its_claim_is_shown_wherever_the_verdict_is(tmp_path, stored):
    from jaxdyn.report import page

    from .handmade import FIGURES, claim

    write_studies(verified(tmp_path / "out", claim("toy.law", "refuted") | {"scale": "paper"}))
    html = page.page({"claims": [claim("toy.law")]}, FIGURES)
    assert html.count("at paper scale: refuted") == 2, "in the table and in the heading"


@jd.setting
class Law:
    """A setting to tell of."""

    rate: jd.Swept = 1.0


def trial(s, key):
    return jd.observables(measured={"x": s.rate})


def origin_of(law):
    """What a study of a claim is made from today."""
    task = task_of(law)
    programs = traced_programs(programs_of(task.requests))
    return made_from(programs, runs_of(task.requests), judge_code(law))


def toys():
    """Claims with a study, with a larger paper grid, and with the same grid at both scales."""
    common = dict(title="t", statement="s", source="a", trial=trial, judge=print, controls={"other": {"rate": 2.0}}, seeds=8)
    common |= dict(evidence="algebra", bounds="derived")
    quick = jd.grid(Law, rate=[1.0])
    return [
        jd.Claim(id="toy.law", quick=quick, paper=jd.grid(Law, rate=[1.0, 2.0]), **common),
        jd.Claim(id="toy.large", quick=quick, paper_seeds=64, **common),
        jd.Claim(id="toy.same", quick=quick, paper=jd.grid(Law, rate=[1.0]), **common),
    ]


def test_the_table_of_all_studies(tmp_path, stored):
    spent = {"runs": 1640, "compile_seconds": 60.0, "run_seconds": 30.0}
    write_studies(verified(tmp_path / "out", CLAIM | spent))
    text = table(toys())
    assert "Studies: 1 of 3 claims; all verdicts are as expected." in text
    assert (
        "| `toy.law` | upheld | upheld * | 8 | 1,640 | 1.5 | 2026-11-22 | e9773c4970 |" in text
        and "Marked *: not current, 1 recorded before fingerprints were kept, so that what has changed is not known." in text
    )
    now = origin_of(toys()[0])
    for other, mark, sentence in (
        ({}, "", ""),
        ({"code": "b"}, " *", "Marked *: not current, 1 whose program, settings or judge have changed."),
        ({"jax": "0.1"}, " †", "Marked †: 1 made with another version of JAX or Python."),
    ):
        write_studies(verified(tmp_path / "out", CLAIM | spent | {"made_from": now | other}))
        text = table(toys())
        assert f"| `toy.law` | upheld | upheld{mark} | 8 |" in text and sentence in text and ("Marked" in text) is bool(mark)
    assert "Both scales have the same runs (1): `toy.same`." in text
    assert "Not yet run at paper scale (1): `toy.large`." in text
    write_studies(verified(tmp_path / "out", CLAIM | spent | {"verdict": "refuted"}))
    text = table(toys()[:1])
    assert "1 with another verdict than expected: `toy.law`." in text and "| **refuted** * |" in text and "Not yet" not in text
    page = with_table("above\n<!-- table: x -->\nold\n<!-- end of table -->\nbelow", toys()[:1])
    assert page == f"above\n<!-- table: x -->\n{text}<!-- end of table -->\nbelow"
    with pytest.raises(UsageError, match="lacks the marks"):
        with_table("no marks", [])


def test_every_study_belongs_to_a_claim_of_its_theory():
    """It was made at paper scale, and all of them are small."""
    files = sorted(registry.THEORIES.glob("*/recorded/studies/*.json"))
    assert files and {f.stem for f in files} <= all_claims().keys()
    for file in files:
        study = read_study(file.stem)
        assert study and study["claim"]["id"] == file.stem and study["claim"]["scale"] == "paper" and provenance(study)
        assert study["environment"]["commit"] and (figure(study) or "<svg").startswith("<svg")
    assert sum(f.stat().st_size for f in files) <= 7000 * len(
        files
    )  # bytes, most of them the figure's, which says what its points are


def test_an_installed_package_has_them():
    setuptools = pytest.importorskip("setuptools")
    root = Path(__file__).parents[2]
    options = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    packages = setuptools.find_namespace_packages(str(root), include=options["packages"]["find"]["include"])
    folders = {f.parent.relative_to(root) for f in registry.THEORIES.glob("*/recorded/*/*.json")}
    assert len(folders) > 30 and {".".join(folder.parts) for folder in folders} <= set(packages)
    assert "*.json" in options["package-data"]["*"]


def runs(size=3):
    values = np.random.default_rng(0).normal(size=(size, 2))
    coords = {"seed": np.arange(size), "kind": ["a", "bcd"], "flag": ("kind", [True, False])}
    ds = xr.Dataset({"measured_x": (("seed", "kind"), values), "status": ("seed", np.zeros(size, np.int32))}, coords)
    ds["measured_x"].attrs["of"] = "loss"
    return ds.assign_attrs(claim="toy.law")


def test_data_are_kept_to_the_bit():
    data, control = runs(), runs().assign(measured_x=lambda ds: ds.measured_x.where(ds.seed > 0).astype("float32"))
    found, controls = studies.unpack(studies.pack(data, {"main": control, "nothing": xr.Dataset()}))
    assert found.identical(data) and controls["main"].identical(control) and not controls["nothing"].variables
    for name, variable in data.variables.items():
        assert found[name].dtype == variable.dtype
    assert set(found.coords) == set(data.coords) and "kind" in found.indexes


def test_large_data_are_not_kept():
    assert studies.pack(runs(100_000), {}) is None


@pytest.mark.parametrize("odd", [xr.Dataset({"x": ("a", np.array([None, "b"], object))}), xr.Dataset(attrs={"x": object()})])
def test_what_cannot_be_written_is_not_kept(odd):
    assert studies.pack(odd, {}) is None and studies.pack(runs(), {"odd": odd}) is None


@pytest.mark.parametrize("damaged", [b"", b"PK", b"text"])
def test_a_damaged_file_is_none(damaged):
    assert studies.unpack(damaged) is None
    content = studies.pack(runs(), {})
    assert studies.unpack(content[: len(content) // 2]) is None
