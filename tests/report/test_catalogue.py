"""The catalogue lists claims by theory."""

import re

import jaxdyn as jd
from jaxdyn.report.catalogue import catalogue


@jd.setting
class Decay:
    """A setting to list."""

    rate: jd.Swept = 1.0
    optimizer: jd.Code = jd.code("gd", "adam")
    sizes: tuple[int, ...] = (3, 4)


def test_catalogue_lists_claims_by_theory():
    common = dict(source="a paper", trial=print, judge=print, quick=jd.grid(Decay, rate=[0.5, 1.0]), seeds=8)
    claims = [
        jd.Claim(id="b.one", statement="One, $x$.", controls={"wrong rate": {"rate": 2.0}}, **common),
        jd.Claim(id="a.two", statement="Two.", expected="refuted", form="printed", counterpart="derived", **common),
        jd.Claim(id="b.three", statement="Three.", expected="measured", **common),
    ]
    text = catalogue(claims)
    assert re.findall(r"^#+ (.*)$", text, re.M)[1:] == ["b", "`b.one`", "`b.three`", "a", "`a.two`"]
    assert "- Must be rejected: wrong rate" in text and "- Swept: `rate` = {0.5, 1}" in text
    assert "- Fixed: `optimizer` = gd, `sizes` = 3:4" in text and "- Runs: 2 × 8 seeds" in text
    assert "refuted (the derived form is upheld on the same runs)" in text
