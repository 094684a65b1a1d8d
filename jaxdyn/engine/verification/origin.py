"""What a recorded result was made from, and what of that has changed since: its programs, its runs, its judge, or the versions.

Programs count by their fingerprints. Next to these stand their direct keys: where they are still the same, nothing has to be traced
to know that the programs are. A judge counts by its digest (:mod:`jaxdyn.engine.judging.digest`), which knows what it does, and the
engine's part in a verdict by the number of its rules: a test holds what they decide on given runs, so that a number that moves
raises it, and no other edit of the engine makes a result stale. A figure counts by the code of its plot's module and of all that
this imports from the package. Under other versions of JAX or Python, and on another platform, none of them can be compared, so
that only the versions are named.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import itertools
import math
import sys
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from typing import Any, NamedTuple

from jaxdyn.engine.base.devices import devices
from jaxdyn.engine.base.failure import PACKAGE
from jaxdyn.engine.base.reference import packaged
from jaxdyn.engine.claims.claim import Claim
from jaxdyn.engine.judging.decision import RULES
from jaxdyn.engine.judging.digest import digest
from jaxdyn.engine.programs.chunk import Program
from jaxdyn.engine.programs.direct import direct_key, facts_of, modules_behind
from jaxdyn.engine.programs.fingerprint import CALLS_BACK
from jaxdyn.engine.runs.blocks import Request
from jaxdyn.errors import Absent

__all__ = [
    *("EDITED", "JUDGE", "PROGRAM", "RUNS", "UNRECORDED", "Changes"),
    *(
        "modules_hash",
        "judge_code",
        "keys_of",
        "made_from",
        "plot_code",
        "programs_of",
        "runs_of",
        "traced_programs",
        "versions_now",
        "what_changed",
    ),
]

UNRECORDED = "recorded before fingerprints were kept"
EDITED = "code behind its programs was edited since; `jaxdyn show` tells whether they are still the same"  # not looked into
DRAWING = "jaxdyn.plotting"  # draws the figures of claims without a plot of their own
UNKNOWN = "not known"  # the digest of a judge that uses what cannot be hashed
JUDGE, RUNS, PROGRAM, PLOT = "the judge", "the settings or seeds", "the program", "the plot"
TITLES = {"jax": "JAX", "python": "Python", "platform": "platform"}


class Changes(NamedTuple):
    """What has changed since a result was recorded; false where nothing has.

    Args:
        reasons: what the result can no longer be relied on for: the program, its runs, the judge.
        versions: the versions that it was made with, if they are not those of now; such a result is used, and marked.
    """

    reasons: tuple[str, ...] = ()
    versions: str = ""

    def __bool__(self) -> bool:
        return bool(self.reasons or self.versions)

    def __str__(self) -> str:
        if self.reasons and not self.reasons[0].startswith("the "):  # a sentence by itself
            return self.reasons[0]
        changed = [*self.reasons[:-2], " and ".join(self.reasons[-2:])]
        parts = [f"{', '.join(changed)} changed"] if self.reasons else []
        return "; ".join([*parts, *([f"made with {self.versions}"] if self.versions else [])])


def versions_now() -> dict[str, str]:
    """The versions under which fingerprints and hashes of code can be compared."""
    python = ".".join(map(str, sys.version_info[:2]))
    return {"jax": version("jax"), "python": python, "platform": devices().platform}


def programs_of(requests: Iterable[Request]) -> list[Program]:
    """The distinct programs of some requests."""
    return list({key: program for request in requests for key, program in request.programs.items()}.values())


def runs_of(requests: Iterable[Request]) -> str:
    """Hash of which runs are asked for: the values of all swept fields, and the seeds."""
    facts = [(program.label, str(swept), str(request.seeds)) for request in requests for program, swept in request.cells]
    return _hash(*facts)


def judge_code(claim: Claim) -> str:
    """Hash of what judges a claim: its digest, what decides which runs are judged and what is expected of them, and the rules.

    Where no digest is known, the code behind the judge stands in its place.
    """
    known = digest(claim) or modules_hash([_module(claim.judge)], UNKNOWN)
    asked = claim.expected, claim.form, claim.counterpart, claim.min_ok, tuple(map(str, claim.assumes))
    return _hash(known, asked, RULES)


def plot_code(claim: Claim) -> str:
    """Hash of the code that draws a claim's figure."""
    return modules_hash([_module(claim.plot)] if claim.plot is not None else [DRAWING])


def modules_hash(modules: Iterable[str], *more: str) -> str:
    """Hash of the code behind some modules of the package, and of anything more; other people's modules are left out."""
    own = sorted({name for name in modules if name.partition(".")[0] == PACKAGE.name})
    return _hash(*map(modules_behind, own), *more)


def made_from(programs: Iterable[Program], runs: str, code: str, plot: str = "") -> dict[str, Any]:
    """What a result is made from, in JSON types, to be stored with it.

    Args:
        programs: as they were planned, with their fingerprints.
        runs: which runs of them, from :func:`runs_of`.
        code: of the judge, from :func:`judge_code`.
        plot: of the figure, from :func:`plot_code`, if it has one.
    """
    programs = list(programs)
    fingerprints = sorted({CALLS_BACK if p.fingerprint.startswith(CALLS_BACK) else p.fingerprint for p in programs})
    return {"programs": fingerprints, "keys": keys_of(programs), "runs": runs, "code": code, "plot": plot, **versions_now()}


def traced_programs(programs: Iterable[Program]) -> list[Program]:
    """Programs with their fingerprints, for :func:`made_from`."""
    return [dataclasses.replace(program, fingerprint=facts["fingerprint"]) for program, facts in facts_of(programs).items()]


def what_changed(
    recorded: Any, programs: Iterable[Program], runs: str, code: str, plot: str = "", *, whole: bool = True, trace: bool = True
) -> Changes:
    """What has changed since a result was recorded.

    Args:
        recorded: what :func:`made_from` returned then; None or anything else for older results.
        programs: those of now; they are traced if their direct keys have changed.
        runs: of now.
        code: of the judge of now.
        plot: of the figure of now; empty where a figure that is drawn otherwise is as good.
        whole: name all that has changed; otherwise the first, so that a program is traced only where nothing else has changed.
        trace: trace programs whose direct keys have changed; otherwise it is only said that they have, of the package's own,
            since tracing hundreds takes minutes.
    """
    now = versions_now()
    if not (isinstance(recorded, Mapping) and recorded.keys() >= {"programs", "keys", "runs", "code", *now}):
        return Changes((UNRECORDED,))
    if others := [name for name in now if recorded[name] != now[name]]:
        return Changes(versions=", ".join(f"{TITLES[name]} {recorded[name]}" for name in others))
    programs = list(programs)
    checks = {
        JUDGE: lambda: recorded["code"] != code,
        RUNS: lambda: recorded["runs"] != runs,
        PLOT: lambda: bool(plot) and recorded.get("plot") != plot,
        PROGRAM: lambda: _same_programs(recorded, programs, trace) is False,
        EDITED: lambda: not trace and _same_programs(recorded, programs, trace) is None,
    }
    reasons = (name for name, changed in checks.items() if changed())
    return Changes(tuple(reasons if whole else itertools.islice(reasons, 1)))


def _same_programs(recorded: Mapping[str, Any], programs: list[Program], trace: bool) -> bool | None:
    """Whether the programs are those that were recorded; nothing is traced where their direct keys say so.

    None if only tracing would tell, and it is not wanted.
    """
    keys = keys_of(programs)
    if keys == recorded["keys"] and (keys or not programs):
        return True
    known = facts_of(programs) if trace or not keys else facts_of(programs, until=-math.inf)
    if len(known) < len(programs):
        return None
    return bool(sorted({facts["fingerprint"] for facts in known.values()}) == recorded["programs"])


def keys_of(programs: Iterable[Program]) -> list[str]:
    """The direct keys of programs; none where one of them is not the package's own, or lacks what its runs share."""
    programs = list(programs)
    if not all(packaged(program.trial) for program in programs):
        return []
    try:
        return sorted({direct_key(program) for program in programs})
    except Absent:
        return []


def _module(function: Any) -> str:
    """Where a function is defined; of a partial one, the inner function."""
    while isinstance(function, functools.partial):
        function = function.func
    return str(getattr(function, "__module__", ""))


def _hash(*facts: Any) -> str:
    return hashlib.sha256(repr(facts).encode()).hexdigest()[:20]
