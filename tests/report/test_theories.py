"""The chapters of the report and their papers."""

from jaxdyn.engine.registry import all_claims
from jaxdyn.report.theories import THEORIES


def test_every_theory_of_the_suite_has_a_chapter_with_papers():
    own = {c.theory for c in all_claims().values() if c.judge.__module__.startswith("jaxdyn.theories")}
    assert own <= set(THEORIES)
    assert all(t.text and t.papers for t in THEORIES.values())
