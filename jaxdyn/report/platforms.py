"""Table of all programs by platform: whether they compile, how long it takes, and how much memory against what is planned for."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any

from jaxdyn.errors import UsageError
from jaxdyn.report.words import plural

__all__ = ["MARKS", "NAMES", "summary", "table", "with_programs"]

MARKS = "<!-- programs -->", "<!-- /programs -->"
NAMES = {"cuda": "H100", "tpu": "TPU v5e"}
PACKAGE = "jaxdyn.theories."

Results = Mapping[str, Mapping[str, Mapping[str, Any]]]  # by platform and key: a program's name, its sources and its number of runs


def _parts(key: str) -> tuple[str, str]:
    """Name and sources of a program."""
    name, sources, _ = key.rsplit(" ", 2)
    return name, sources


def summary(platform: str, results: Results, current: Mapping[str, str]) -> str:
    """One sentence on a platform: how many of today's programs compile there, and in how long.

    Args:
        platform: whose compiler.
        results: what was compiled.
        current: names and sources of today's programs.
    """
    found = {}
    for key, result in results.get(platform, {}).items():
        name, sources = _parts(key)
        if current.get(name) == sources:
            found[name] = result
    good = [result for result in found.values() if "failed" not in result]
    said = (
        f"{NAMES[platform]}: of {plural(len(current), 'program')} {len(found)} were compiled as they are now, {len(good)} of them"
    )
    if not good:
        return f"{said} without fault."
    seconds = sorted(result["compile_seconds"] for result in good)
    times = f"the middle one took {seconds[len(seconds) // 2]:.1f} s, the longest {seconds[-1]:.0f} s"
    return f"{said} without fault, in {sum(seconds):.0f} s one after another; {times}."


def table(results: Results, current: Mapping[str, str], cpu: Mapping[str, tuple[float, float]]) -> str:
    """A row per program.

    Args:
        results: what was compiled, by platform.
        current: names and sources of today's programs.
        cpu: seconds to compile each program, and to make a run of it, on the reference machine's processor.
    """
    by_name: dict[str, dict[str, tuple[str, Mapping[str, Any]]]] = {name: {} for name in current}
    for platform, found in results.items():
        for key, result in found.items():
            name, sources = _parts(key)
            if name in by_name:
                by_name[name][platform] = sources, result
    heads = [f"{NAMES[p]}: {what}" for p in NAMES for what in ("s", "MB")]
    lines = [f"| program | runs | planned MB | CPU: s | {' | '.join(heads)} |", "|---|" + "---:|" * (3 + len(heads))]
    shown = short_names(list(by_name))
    for name, own in by_name.items():
        of_any: Mapping[str, Any] = next((result for _, result in own.values()), {})
        compiled = [cell for p in NAMES for cell in _cells(own.get(p), current[name])]
        seconds = f"{cpu[name][0]:.1f}" if name in cpu else ""
        lines.append(
            f"| {shown[name]} | {of_any.get('runs', '')} | {_mega(of_any.get('estimate'))} | {seconds} | {' | '.join(compiled)} |"
        )
    return "\n".join(lines) + "\n"


def _cells(found: tuple[str, Mapping[str, Any]] | None, sources: str) -> list[str]:
    """Seconds and megabytes, or what went wrong; an asterisk where the trial has changed since."""
    if found is None:
        return ["", ""]
    changed = "" if found[0] == sources else "\\*"
    if "failed" in found[1]:
        return [f"{found[1]['failed'].replace('|', ' ')}{changed}", ""]
    return [f"{found[1]['compile_seconds']:.1f}{changed}", _mega(found[1]["bytes"])]


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


def with_programs(page: str, results: Results, current: Mapping[str, str], cpu: Mapping[str, tuple[float, float]]) -> str:
    """The page with today's sentences and table between its two marks.

    Raises:
        UsageError: if the marks are not there.
    """
    start, end = page.find(MARKS[0]), page.find(MARKS[1])
    if not 0 <= start < end:
        raise UsageError(f"the page lacks the marks {' and '.join(MARKS)}")
    sentences = "\n".join(f"- {summary(platform, results, current)}" for platform in NAMES)
    failed = any("failed" in result for found in results.values() for result in found.values())
    note = "\n\nWhere a number of seconds would stand, it says why there is none." if failed else ""
    return f"{page[: start + len(MARKS[0])]}\n{sentences}{note}\n\n{table(results, current, cpu)}{page[end:]}"
