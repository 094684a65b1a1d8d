"""Under which bounds and designs a claim's runs were seen on this machine, and whether either was changed afterwards.

A bound that was chosen after the runs were seen is passed by those runs more easily than by others. So each look at a claim's own
runs is remembered in the user's cache: its time, its seeds, the bounds of its checks and its design. A claim whose bounds or
design were changed since is confirmed by a look at seeds that had not run before the last change.

A judge that computes its bounds from the data, or that reads the data otherwise, gives other numbers on the same seeds: that is a
change as well. On other seeds its numbers differ from run to run without anybody's doing, so they are compared on the same seeds
where these were run before, and else count only where the judge, and the file that it stands in, are others than before.
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jaxdyn.engine.storage.cache import read_cached, write_cached
from jaxdyn.wording import plural

__all__ = ["LookRecord", "remember", "sentence"]

MOST = 200  # looks of one claim that are kept: the first, and the last ones


@dataclasses.dataclass(frozen=True)
class LookRecord:
    """One look.

    Args:
        bounds: of every check and gate by its name, both ends as text.
        values: the numbers of checks and gates by their names.
        design: the claim's grid and number of seeds, as text.
        judge: a hash of the judge; None if what it does is not known.
        file: a hash of the file in which the judge stands; None if it was typed.
        seeds: the seeds that were run.
        as_expected: whether the verdict was the expected one.
        when: date and time, UTC.
    """

    bounds: Mapping[str, Sequence[str]]
    values: Mapping[str, float]
    design: str
    judge: str | None
    file: str | None
    seeds: Sequence[int]
    as_expected: bool
    when: str = dataclasses.field(default_factory=lambda: datetime.now(UTC).strftime("%Y-%m-%d %H:%M"))

    def changed(self, since: LookRecord) -> bool:
        """Whether judge, bounds or design were changed between an earlier look and this one."""
        if self.design != since.design:
            return True
        if self.judge == since.judge is not None:
            return False
        alike = list(self.seeds) == list(since.seeds)
        others = {name: list(ends) for name, ends in self.bounds.items()} != {name: list(e) for name, e in since.bounds.items()}
        if self.file == since.file is not None:  # the judge rests on another file, or its hash on what it has done before
            return others and alike
        return others or (alike and not _same(self.values, since.values))


def _same(one: Mapping[str, float], other: Mapping[str, float]) -> bool:
    """Whether numbers agree to rounding."""
    return one.keys() == other.keys() and all(
        math.isclose(one[name], other[name], rel_tol=1e-6) or one[name] != one[name] != other[name] != other[name] for name in one
    )


def _changes(looks: Sequence[LookRecord]) -> list[int]:
    """The places of looks before which something was changed: since the last look at the same seeds, or else the last one."""
    found = []
    for i in range(1, len(looks)):
        last, alike = looks[i - 1], [look for look in looks[:i] if list(look.seeds) == list(looks[i].seeds)]
        earlier = alike[-1] if alike else last
        if looks[i].changed(last) or (looks[i].changed(earlier) and not last.changed(earlier)):
            found.append(i)
    return found


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
    changes = _changes(looks)
    if not changes:
        return ""
    last = changes[-1]
    before = {seed for look in looks[:last] for seed in look.seeds}
    often = "once" if len(changes) == 1 else f"{len(changes)} times"
    said = " ".join(("judge, bounds or design changed", often, "after runs were seen"))
    fresh = [look for look in looks[last:] if before.isdisjoint(look.seeds)]
    if not fresh:
        return f"{said}; confirm with --fresh {max(before | set(looks[-1].seeds)) + 1}"
    if failed := [look for look in fresh if not look.as_expected]:
        sets = "the seeds" if len(fresh) == 1 else f"{len(failed)} of {len(fresh)} samples of seeds"
        return f"{said}; {sets} that had not run before did not confirm it"
    count = len({seed for look in fresh for seed in look.seeds})
    return f"{said}, and confirmed on {plural(count, 'seed')} that had not run before"
