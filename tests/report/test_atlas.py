"""Maps are stored, and shown in the report and the documents."""

import re
from pathlib import Path

import pytest

import jaxdyn as jd
from jaxdyn.engine.catalogue import library, registry
from jaxdyn.engine.catalogue.registry import all_claims
from jaxdyn.report import atlas
from jaxdyn.report.page import page

ROOT = Path(__file__).parents[2]
FOUND = {
    "claim": "toy.law",
    "over": [{"field": "rate", "low": 0.1, "high": 10.0, "log": True}, {"field": "kind", "values": ["a", "b"]}],
    "cells": [
        {"at": {"rate": r, "kind": k}, "verdict": v, "inside": True, "assumed": {}, "checks": [{"name": "c", "value": 1.0}]}
        for r, k, v in ((0.1, "a", "upheld"), (10.0, "a", "refuted"), (0.1, "b", "upheld"))
    ],
    "edges": [],
    "border": None,
    "assumes": [],
    "runs": 6,
    "programs": 1,
    "seconds": 12.0,
    "cpu_seconds": 20.0,
    "resumed": False,
}
TOY = jd.AtlasMap("toy", "A toy", "toy.law", ("rate=.1:10:log", "kind=a,b"), "It holds where rates are small.", 9, 2, {"size": [3]})


def test_a_map_is_stored_without_its_checks(tmp_path, monkeypatch):
    with pytest.raises(jd.UsageError, match="toy.law belongs to no theory with a folder"):
        atlas.write_map(TOY, FOUND)
    assert atlas.read_map(TOY) is None
    monkeypatch.setattr(library, "recorded_folder", lambda prefix, kind: tmp_path / kind)
    assert atlas.read_map(TOY) is None
    atlas.write_map(TOY, FOUND)
    content = atlas.read_map(TOY)
    assert content["figure"].startswith("<svg") and content["environment"]["jax"]
    assert all("checks" not in cell for cell in content["map"]["cells"]) and content["map"]["runs"] == 6
    assert atlas.counts(content["map"]) == "2 upheld, 1 refuted"
    assert atlas.provenance(content).startswith("6 runs, 20.0 s of processor time, 20")
    del content["map"]["cpu_seconds"]
    assert atlas.provenance(content).startswith("6 runs in 12.0 s, 20"), "an older map knows the clock's seconds alone"
    atlas.write_map(TOY, FOUND | {"resumed": True})  # the seconds are those of a part
    assert atlas.provenance(atlas.read_map(TOY)).startswith("6 runs, 20")


def test_the_command_is_what_a_user_types():
    assert atlas.command(TOY) == "jaxdyn map toy.law --over rate=.1:10:log --over kind=a,b --cells 9 --set size=3 --seeds 2"


def test_a_border_in_words():
    border = {"exponent": 0.5, "factor": 1.0, "interval": [0.4, 0.6], "points": 12}
    axes = [{"field": "rate"}, {"field": "width"}]
    assert atlas.border({"border": border, "over": axes}) == (
        "Border: width ∝ rate^0.50, 95% interval 0.40 to 0.60, from 12 points."
    )
    assert atlas.border(FOUND) == atlas.border({"border": border | {"interval": [0.4, None]}, "over": axes}) == ""


@pytest.mark.parametrize("stored", library.maps(), ids=lambda stored: stored.name)
def test_every_map_is_there_and_of_a_claim_that_is(stored):
    content = atlas.read_map(stored)
    assert content is not None and content["map"]["claim"] == stored.claim
    assert stored.claim in all_claims(theories={stored.theory})
    assert [axis["field"] for axis in content["map"]["over"]] == [item.split("=")[0] for item in stored.over]
    assert len(stored.finding) > 80 and stored.finding.endswith(".")


def test_the_page_is_up_to_date():
    written = (ROOT / "docs" / "atlas.md").read_text(encoding="utf-8")
    changed = {stored.name: "" for stored in library.maps()}
    unmarked = atlas.page(changed)
    assert re.sub(r" \*\*Not current\*\*: [^\n]*\.$", "", written, flags=re.M) == unmarked and "**" not in unmarked
    one = next(iter(changed))
    assert atlas.page(changed | {one: "the judge"}).count("**Not current**: the judge.") == 1
    drawn = {f.name for f in (ROOT / "docs" / "figures").glob("map.*.svg")}
    assert drawn == {f"map.{stored.name}.svg" for stored in library.maps()}
    files = {f.stem for f in registry.THEORIES.glob("*/recorded/maps/*.json")}
    assert files == {stored.name for stored in library.maps()}


def test_the_report_shows_the_maps_of_its_claims():
    stored = library.maps()[0]
    claim = {"id": stored.claim, "verdict": "upheld", "expected": "upheld", "statement": "s"}
    html = page({"claims": [claim]}, {})
    assert f'id="map-{stored.name}"' in html and f'href="#map-{stored.name}"' in html and 'href="#atlas"' in html
    other = page({"claims": [claim | {"id": "toy.law"}]}, {})
    assert 'id="atlas"' not in other and "map-" not in other.split("<body>")[1].split("<script>")[0]


def test_names_are_unique():
    assert len({stored.name for stored in library.maps()}) == len(library.maps()) >= 12


def test_a_size_has_words_for_one_and_for_several():
    content = {"map": {"cells": [{"verdict": "upheld"}], "runs": 1, "seconds": None}, "environment": {}}
    assert atlas.size(content) == "1 cell: 1 upheld; 1 run"
    content["map"] |= {"cells": [{"verdict": "upheld"}] * 2, "runs": 1200}
    assert atlas.size(content) == "2 cells: 2 upheld; 1,200 runs"
