"""Under which bounds and designs a claim's runs were seen on this machine, and whether either was changed afterwards.

A bound that was chosen after the runs were seen is passed by those runs more easily than by others. So each look at a claim's own
runs is remembered in the user's cache: its time, its seeds, the bounds of its checks and its design. A claim whose bounds or
design were changed since is confirmed by a look at seeds that had not run before the last change.

Bounds that a judge computes from the data differ from run to run without anybody's doing: they count as changed only if the judge
did, too.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jaxdyn.engine.base.words import plural
from jaxdyn.engine.storage.cache import read_cached, write_cached

__all__ = ["LookRecord", "remember", "sentence"]

MOST = 200  # looks of one claim that are kept: the first, and the last ones


@dataclasses.dataclass(frozen=True)
class LookRecord:
    """One look.

    Args:
        bounds: of every check and gate by its name, both ends as text.
        design: the claim's grid and number of seeds, as text.
        judge: a hash of the judge; None if what it does is not known.
        seeds: the seeds that were run.
        as_expected: whether the verdict was the expected one.
        when: date and time, UTC.
    """

    bounds: Mapping[str, Sequence[str]]
    design: str
    judge: str | None
    seeds: Sequence[int]
    as_expected: bool
    when: str = dataclasses.field(default_factory=lambda: datetime.now(UTC).strftime("%Y-%m-%d %H:%M"))

    def changed(self, since: LookRecord) -> bool:
        """Whether bounds or design were changed between an earlier look and this one."""
        judge = self.judge != since.judge or self.judge is None
        bounds = {name: list(ends) for name, ends in self.bounds.items()}
        return self.design != since.design or judge and bounds != {name: list(ends) for name, ends in since.bounds.items()}


def remember(claim: str, home: Path, scale: str, look: LookRecord) -> list[LookRecord]:
    """Add a look at a claim of a file, or of a folder where it was typed, to those in the cache; returns all, this one last."""
    where = hashlib.sha256(repr((str(home), scale)).encode()).hexdigest()[:12]
    name = f"looks/{claim}-{where}.json"
    looks = _read(read_cached(name))
    same = looks and not look.changed(looks[-1]) and set(look.seeds) <= set(looks[-1].seeds)
    if not same or look.as_expected != looks[-1].as_expected:
        looks.append(look)
        write_cached(name, [dataclasses.asdict(one) | {"seeds": list(one.seeds)} for one in (looks[:1] + looks[1:][-MOST:])])
    return looks


def _read(content: Any) -> list[LookRecord]:
    """The looks in a file; none if it has another form."""
    try:
        return [LookRecord(**one) for one in content]
    except TypeError:
        return []


def sentence(looks: Sequence[LookRecord]) -> str:
    """What a reader should know of looks at one claim, the current one last; empty if nothing was changed."""
    changes = [i for i in range(1, len(looks)) if looks[i].changed(looks[i - 1])]
    if not changes:
        return ""
    last = changes[-1]
    before = {seed for look in looks[:last] for seed in look.seeds}
    times = "once" if len(changes) == 1 else f"{len(changes)} times"
    said = f"bounds or design changed {times} after runs were seen, last before {looks[last].when} UTC"
    fresh = [look for look in looks[last:] if before.isdisjoint(look.seeds)]
    if not fresh:
        return f"{said}; confirm with --fresh {max(before | set(looks[-1].seeds)) + 1}"
    if not fresh[-1].as_expected:
        return f"{said}; {plural(len(fresh[-1].seeds), 'seed')} that had not run before did not confirm it"
    return f"{said}, and confirmed on {plural(len(fresh[-1].seeds), 'seed')} that had not run before"
