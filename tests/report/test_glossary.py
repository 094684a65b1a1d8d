"""The glossary has every verdict and every kind of evidence."""

from typing import get_args

from jaxdyn.engine.claims.contract import EVIDENCE, Evidence
from jaxdyn.report.glossary import GLOSSARY, VERDICTS


def test_every_verdict_has_a_meaning():
    assert set(VERDICTS) == {"upheld", "refuted", "toothless", "inconclusive", "measured", "error", "skipped", "not run"}
    assert all(text.endswith(".") for text in VERDICTS.values())


def test_terms_are_sentences():
    assert all(text.endswith(".") for text in GLOSSARY.values())
    assert all(f"{kind}: {text}" in GLOSSARY["evidence"] for kind, text in EVIDENCE.items())


def test_every_kind_of_evidence_is_described():
    assert tuple(EVIDENCE) == get_args(Evidence)
