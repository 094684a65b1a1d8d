"""Claims that the referee is asked about again after a change: those that say or judge something else now, and the day's seventh.

Continuous integration asks what needs no new runs, on those that are on record and that it has just verified. A finding that is not
on record fails. How many are not reached in its minutes is said; they wait for another day.
"""

from __future__ import annotations

import datetime
import math
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from jaxdyn.attacks.recorded import new_findings, recorded_answers, what_was_asked
from jaxdyn.cli.referee import referee_command
from jaxdyn.engine.base.parsing import parse_json
from jaxdyn.engine.catalogue import registry
from jaxdyn.engine.claims.claim import Claim
from jaxdyn.errors import UsageError
from jaxdyn.maintain.recheck import drawn

__all__ = ["accused", "due"]

ASKED = ("upheld", "refuted", "measured")


def due(claims: Mapping[str, Claim], day: datetime.date) -> tuple[list[str], list[str]]:
    """The ids of claims on record that were asked in other words, and of the others that are drawn on a day.

    What was never asked is asked first by ``jaxdyn referee``, and put on record.
    """
    before = recorded_answers()

    def changed(claim: Claim) -> bool:
        return bool(before[claim.id]["digest"] != what_was_asked(claim))

    anew = sorted(name for name, claim in claims.items() if name in before and changed(claim))
    return anew, sorted(name for name in claims if name in before and name not in anew and drawn(name, day))


def accused(result: Path, folder: Path, day: datetime.date, minutes: float = math.inf) -> Iterator[str]:
    """Ask of the claims that are due, of those that a verification has judged; yields new findings, one line each.

    Args:
        result: what ``jaxdyn verify --json`` printed.
        folder: its ``--out``, whose runs are used.
        day: decides the share of all claims.
        minutes: after which no further claim is begun; those that changed come first.

    Raises:
        UsageError: the file cannot be read.
    """
    try:
        entries = parse_json(result.read_text(encoding="utf-8"))["claims"]
        judged = {entry["id"] for entry in entries if entry["verdict"] in ASKED}
    except (OSError, ValueError, KeyError, TypeError):
        raise UsageError(f"{result} is not what `jaxdyn verify --json` prints") from None
    until = time.monotonic() + 60 * minutes
    for asked in due({claim.id: claim for claim in registry.select(()) if claim.id in judged}, day):
        if not asked:
            continue
        left = max(0.0, until - time.monotonic()) / 60
        answers, _ = referee_command(asked, quick=True, out=folder, workers=None, load=(), minutes=left)
        for entry in answers["claims"]:
            yield from (f"{entry['id']}: {name}: {text}" for name, text in new_findings(entry))
