"""A claim of the report in short."""

from jaxdyn.report.claim import is_blunt, resolution_short, section
from jaxdyn.report.figures import Figures
from tests.report.handmade import check, claim


def test_short_resolutions():
    assert resolution_short({"resolution": {"scale": {"a": 0.02, "b": None, "c": 0.5}}}) == (0.02, "2\u202f% … 50\u202f%")
    assert resolution_short({"resolution": {"scale": {"a": None}, "mix": {"k": 0.25}}})[0] == 0.25
    assert resolution_short({})[0] is None
    assert resolution_short({"resolution": {"scale": {"a": 0.1}}, "checks": [check(passed=False)]})[0] is None


def test_a_resolution_of_some_seeds_says_so():
    found = {"scale": {"z": 0.01}, "mix": {"adam": 0.1}}
    heads = [
        [part["head"] for part in section(claim("a.b", resolution=r), Figures({}))["resolution"]]
        for r in (found, {**found, "seeds": 1024})
    ]
    assert heads[0] == ["Prediction off by", "Data with a share of"]
    assert heads[1] == ["Prediction off by, on the first 1,024 seeds", "Data with a share of, on the first 1,024 seeds"]


def test_only_upheld_claims_are_blunt():
    dull = {"scale": {"z": 0.2}, "mix": {"adam": 0.5}}
    assert is_blunt(claim("a.b", resolution=dull)) and not is_blunt(claim("a.b"))
    assert not is_blunt(claim("a.b", "measured", "measured", resolution=dull))


def test_cells_of_a_table_have_different_heads():
    cells = [
        {"at": {"rate": rate, "time": time, "mode": mode}, "verdict": "upheld"}
        for rate in (0.0099996, 0.0100004)
        for time in (10005.001, 10004.999)
        for mode in ("gd", "adam")
    ]
    table = section(claim("a.b", by={"fields": ["rate", "time", "mode"], "cells": cells}), Figures({}))["map"]
    assert [head for head, _ in table["rows"]] == ["0.0099996", "0.0100004"] and len(set(table["columns"])) == 4
    one = section(claim("a.b", by={"fields": ["rate"], "cells": cells}), Figures({}))["map"]
    assert one["columns"] == ["verdict"] and [head for head, _ in one["rows"]] == ["0.0099996", "0.0100004"]


def test_a_figure_that_stands_in_for_the_claims_own_has_a_caption_of_its_own():
    from jaxdyn.report.claim import _captioned
    from jaxdyn.report.drawing import INSTEAD
    from jaxdyn.report.figures import Stored

    own = {"caption": "Histogram of x.", "runs": 4}
    assert _captioned(own, Stored(label="x"))["caption"].startswith("Histogram of x.")
    assert _captioned(own, Stored(label="x"))["caption"] == "Histogram of x. 4\u00a0runs."
    some = own | {"runs": 24, "diverged": 13}
    assert _captioned(some, Stored(label="x"))["caption"] == "Histogram of x. 11 of 24\u00a0runs; 13 diverged."
    assert _captioned(some | {"diverged": 24}, Stored(label="x"))["caption"].endswith("0 of 24\u00a0runs; 24 diverged.")
    assert _captioned(own, Stored(label=INSTEAD))["caption"].startswith("Measurement against prediction")
