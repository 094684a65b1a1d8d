"""The laboratory's own trial: any variant in training, with laws and instruments that are found by their names."""

from __future__ import annotations

from jaxtyping import PRNGKeyArray

from jaxdyn.engine.base.parsing import parse_values
from jaxdyn.engine.claims.observables import Observables
from jaxdyn.engine.claims.setting import setting
from jaxdyn.instruments.instrument import Instrument
from jaxdyn.instruments.law import Law
from jaxdyn.instruments.registry import watched
from jaxdyn.laboratory.setting import Bench, observed

__all__ = ["Lab", "trial", "watched_of"]


@setting
class Lab(Bench):
    """One run of the laboratory, and the names of laws and instruments that are read, as a text with commas."""

    watch: str = ""


def watched_of(watch: str) -> list[Law | Instrument]:
    """The laws and instruments of some names."""
    return [watched(name) for name in (parse_values(watch) if watch else [])]


def trial(s: Lab, key: PRNGKeyArray) -> Observables:
    """One network in training, and along it both sides of every law, and what instruments read."""
    return observed(s, watched_of(s.watch), key)
