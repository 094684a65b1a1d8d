"""Claims as they are written down: defaults, what is refused."""

import pytest

import jaxdyn as jd
from tests.engine.handmade import doubled


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"id": "no_theory"}, "it is theory.claim"),
        ({"id": "toy.a b"}, "it is theory.claim"),
        ({"expected": "true"}, "it is upheld, refuted or measured"),
        ({"expected": "refuted"}, "names the counterpart form"),
        ({"controls": {}}, "at least one negative control"),
    ],
)
def test_claims_that_nothing_could_decide_are_refused(claim, fields, message):
    with pytest.raises(jd.UsageError, match=message):
        claim(**fields)


def test_breaches_become_controls(claim):
    blown = jd.Control({"lr": 1e3}, diverges=True)
    made = claim(controls={"doubled": doubled, "sign": {"optimizer": "sign"}, "blown": blown})
    assert made.controls == {"doubled": jd.Control(doubled), "sign": jd.Control({"optimizer": "sign"}), "blown": blown}
    assert [c.diverges for c in made.controls.values()] == [False, False, True]


def test_scales(claim, toys):
    paper = jd.grid(toys.Toy, rate=[3.0])
    plain, both = claim(seeds=5), claim(seeds=5, paper=paper, paper_seeds=7)
    assert plain.theory == "toy"
    assert [(plain.grid(s), plain.seed_count(s)) for s in ("quick", "paper")] == [(toys.GRID, 5)] * 2
    assert [(both.grid(s), both.seed_count(s)) for s in ("quick", "paper")] == [(toys.GRID, 5), (paper, 7)]


def test_a_printed_form_shares_runs_and_judge_and_swaps_the_forms(claim):
    made = claim(form="derived", rivals={"twice": doubled}, caption="both", evidence="network")
    printed = made.as_printed(id="toy.made_as_printed", statement="As printed.", form="printed", printed="eq. (1)", source="p. 3")
    assert (printed.form, printed.counterpart, printed.sibling, printed.expected) == ("printed", "derived", made.id, "refuted")
    assert (printed.trial, printed.quick, printed.judge, printed.caption) == (made.trial, made.quick, made.judge, "both")
    assert printed.controls == {} and printed.rivals == {} and printed.source == "p. 3" and made.source == ""
    assert claim(form="derived").as_printed(id="toy.made_naive", statement="", form="printed").rivals == {}
