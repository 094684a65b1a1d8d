"""Codes of how a run ended."""

from jaxdyn import status


def test_every_code_has_its_name():
    names = dict(zip(range(len(status.NAMES)), status.NAMES, strict=True))
    assert names[status.OK] == "ok" and names[status.DIVERGED] == "diverged" and names[status.FAILED] == "solver failure"
    assert names[status.MAX_STEPS] == "step limit reached" and names[status.UNCONVERGED] == "unconverged"
