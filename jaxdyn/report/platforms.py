"""Table of all programs by platform: whether they compile, how long it takes, and how much memory against what is planned for."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any

from jaxdyn.engine.impossible import END
from jaxdyn.errors import UsageError
from jaxdyn.report.words import plural

__all__ = ["LIMIT", "MARKS", "NAMES", "SLOW", "summary", "table", "with_programs"]

SLOW, LIMIT = "not compiled within", 180.0  # seconds for one program
MARKS = "<!-- programs -->", "<!-- /programs -->"
NAMES = {"cuda": "H100", "tpu": "TPU v5e"}
PACKAGE = "jaxdyn.theories."

Results = Mapping[str, Mapping[str, Any]]  # by platform and program: what came of it


def _by_name(platform: str, results: Results, names: Sequence[str]) -> dict[str, Mapping[str, Any]]:
    """What came of those of some programs that were compiled for a platform."""
    found = results.get(platform, {})
    return {name: found[name] for name in names if name in found}


def summary(platform: str, results: Results, names: Sequence[str]) -> str:
    """One sentence on a platform: how many programs compile there, in how long, and by which compiler.

    Args:
        platform: whose compiler.
        results: what was compiled; ``about`` says when and by what.
        names: of today's programs.
    """
    found = _by_name(platform, results, names)
    good = [result for result in found.values() if "failed" not in result]
    reasons = [result["failed"] for result in found.values() if "failed" in result]
    lacking, slow = sum(END in reason for reason in reasons), sum(SLOW in reason for reason in reasons)
    others = {
        "skipped for what they use and the platform lacks": lacking,
        "refused by the compiler": len(reasons) - lacking - slow,
        f"not within {LIMIT:g} s": slow,
        "not tried": len(names) - len(found),
    }
    said = f"{NAMES[platform]}: {len(good)} of {plural(len(names), 'program')} compile"
    if not_compiled := ", ".join(f"{count} {what}" for what, count in others.items() if count):
        said += f" ({not_compiled})"
    if good:
        seconds = sorted(result["compile_seconds"] for result in good)
        times = f"the middle one took {seconds[len(seconds) // 2]:.1f} s, the longest {seconds[-1]:.0f} s"
        said += f". In all {sum(seconds):.0f} s, one after another; {times}"
    about = results.get("about", {}).get(platform)
    return f"{said} ({about})." if about else f"{said}."


def table(results: Results, names: Sequence[str], cpu: Mapping[str, tuple[float, float]]) -> str:
    """A row per program.

    Args:
        results: what was compiled, by platform.
        names: of today's programs.
        cpu: seconds to compile each program, and to make a run of it, on the reference machine's processor.
    """
    found = {platform: _by_name(platform, results, names) for platform in NAMES}
    heads = [f"{NAMES[p]}: {what}" for p in NAMES for what in ("compile s", "MB")]
    lines = [f"| program | runs | planned MB | CPU: compile s | {' | '.join(heads)} |", "|---|" + "---:|" * (3 + len(heads))]
    shown = short_names(names)
    for name in names:
        compiled = [cell for p in NAMES for cell in _cells(found[p].get(name))]
        of_any: Mapping[str, Any] = next((results[name] for results in found.values() if name in results), {})
        seconds = f"{cpu[name][0]:.1f}" if name in cpu else ""
        lines.append(
            f"| {shown[name]} | {of_any.get('runs', '')} | {_mega(of_any.get('estimate'))} | {seconds} | {' | '.join(compiled)} |"
        )
    return "\n".join(lines) + "\n"


def _cells(found: Mapping[str, Any] | None) -> list[str]:
    """Seconds and megabytes, or what went wrong."""
    if found is None:
        return ["", ""]
    if "failed" in found:
        return [str(found["failed"]).replace("|", " "), ""]
    few = f" ({found['at_once']} runs at once)" if "at_once" in found else ""
    return [f"{found['compile_seconds']:.1f}{few}", _mega(found["bytes"])]


def _mega(size: int | None) -> str:
    return "" if size is None else f"{size / 1e6:.3g}"


def short_names(names: Sequence[str]) -> dict[str, str]:
    """Trials without the package's name, with those static fields in which programs of the same trial differ."""
    parts = {name: name.split(" ", 1) for name in names}
    fields = {name: dict(ast.literal_eval(text)) for name, (_, text) in parts.items()}
    short = {}
    for name, (trial, _) in parts.items():
        alike = [fields[other] for other in names if parts[other][0] == trial]
        differing = [f for f in fields[name] if len({repr(other.get(f)) for other in alike}) > 1]
        values = ", ".join(f"{f}={fields[name][f]}" for f in differing)
        short[name] = f"`{trial.removeprefix(PACKAGE).removesuffix(':trial')}`" + (f" {values}" if values else "")
    return short


def with_programs(page: str, results: Results, names: Sequence[str], cpu: Mapping[str, tuple[float, float]]) -> str:
    """The page with today's sentences and table between its two marks.

    Raises:
        UsageError: if the marks are not there.
    """
    start, end = page.find(MARKS[0]), page.find(MARKS[1])
    if not 0 <= start < end:
        raise UsageError(f"the page lacks the marks {' and '.join(MARKS)}")
    sentences = "\n".join(f"- {summary(platform, results, names)}" for platform in NAMES)
    failed = any("failed" in result for platform in NAMES for result in results.get(platform, {}).values())
    note = "\n\nWhere a number of seconds would stand, it says why there is none." if failed else ""
    return f"{page[: start + len(MARKS[0])]}\n{sentences}{note}\n\n{table(results, names, cpu)}{page[end:]}"
