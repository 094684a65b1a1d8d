"""The contract of a verdict is kept by the claims of every theory that was brought up to it."""

import pytest

from jaxdyn.engine.contract import MECHANISM
from jaxdyn.engine.registry import all_claims

CLAIMS = all_claims()


@pytest.mark.parametrize("name", sorted(CLAIMS))
def test_the_claim_says_what_it_rests_on(name):
    claim = CLAIMS[name]
    assert claim.evidence is not None
    assert claim.rivals is not None, "without rivals stated, its checks would need no teeth"
    assert not isinstance(claim.bounds, str) or claim.bounds in ("paper", "derived")
    assert claim.bounds is not None or claim.expected != "upheld"
    if claim.evidence in MECHANISM and claim.expected == "upheld":
        assert claim.rivals, "the mechanism switched off"


@pytest.mark.parametrize("name", sorted(n for n, c in CLAIMS.items() if c.expected == "refuted"))
def test_what_is_refuted_was_printed_or_says_that_it_was_not(name):
    assert name.endswith(("_as_printed", "_naive", "_beyond"))
    assert not name.endswith("_as_printed") or CLAIMS[name].printed, "refuting a paper takes its words"


@pytest.mark.parametrize("name", sorted(n for n, c in CLAIMS.items() if c.expected == "measured"))
def test_what_is_measured_is_recorded(name):
    assert CLAIMS[name].found
    assert CLAIMS[name].bounds is None, "what was found decides, not the marks"
