"""Table of all programs by platform: whether they compile, how long that takes, and their memory next to the planned memory."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any

from jaxdyn.engine.programs.impossible import END
from jaxdyn.errors import UsageError
from jaxdyn.wording import plural

__all__ = ["LIMIT", "MARKS", "NAMES", "SLOW", "summary", "table", "with_programs"]

SLOW, LIMIT = "not compiled within", 180.0  # seconds for one program
MARKS = "<!-- programs -->", "<!-- /programs -->"
NAMES = {"cuda": "H100", "tpu": "TPU v5e"}
PACKAGE = "jaxdyn.theories."

Results = Mapping[str, Mapping[str, Any]]  # by platform and program: the result of compiling it


def _by_name(platform: str, results: Results, names: Sequence[str]) -> dict[str, Mapping[str, Any]]:
    """The results on a platform of those of the named programs that were compiled for it."""
    of_platform = results.get(platform, {})
    return {name: of_platform[name] for name in names if name in of_platform}


def summary(platform: str, results: Results, names: Sequence[str]) -> str:
    """One sentence on a platform: how many programs compile for it, how long that takes, and with which compiler.

    Args:
        platform: a key of :data:`NAMES`.
        results: results of compiling; ``about`` says when and with which compiler.
        names: names of today's programs.
    """
    tried = _by_name(platform, results, names)
    good = [result for result in tried.values() if "failed" not in result]
    reasons = [result["failed"] for result in tried.values() if "failed" in result]
    lacking, slow = sum(END in reason for reason in reasons), sum(SLOW in reason for reason in reasons)
    others = {
        "skipped because they use operations that the platform lacks": lacking,
        "refused by the compiler": len(reasons) - lacking - slow,
        f"not within {LIMIT:g} s": slow,
        "not tried": len(names) - len(tried),
    }
    sentence = f"{NAMES[platform]}: {len(good)} of {plural(len(names), 'program')} compile"
    if not_compiled := ", ".join(f"{count} {what}" for what, count in others.items() if count):
        sentence += f" ({not_compiled})"
    if good:
        seconds = sorted(result["compile_seconds"] for result in good)
        times = f"median {seconds[len(seconds) // 2]:.1f} s, longest {seconds[-1]:.0f} s"
        sentence += f". In total {sum(seconds):.0f} s, one at a time; {times}"
    about = results.get("about", {}).get(platform)
    return f"{sentence} ({about})." if about else f"{sentence}."


def table(results: Results, names: Sequence[str], cpu: Mapping[str, tuple[float, float]]) -> str:
    """A Markdown table with one row per program.

    Args:
        results: results of compiling, by platform.
        names: names of today's programs.
        cpu: seconds to compile each program, and seconds per run, on the reference machine's CPU.
    """
    by_platform = {platform: _by_name(platform, results, names) for platform in NAMES}
    heads = [f"{NAMES[p]}: {what}" for p in NAMES for what in ("compile s", "MB")]
    lines = [f"| program | runs | planned MB | CPU: compile s | {' | '.join(heads)} |", "|---|" + "---:|" * (3 + len(heads))]
    shown = short_names(names)
    for name in names:
        compiled = [cell for p in NAMES for cell in _cells(by_platform[p].get(name))]
        of_any: Mapping[str, Any] = next((results[name] for results in by_platform.values() if name in results), {})
        seconds = f"{cpu[name][0]:.1f}" if name in cpu else ""
        lines.append(
            f"| {shown[name]} | {of_any.get('runs', '')} | {_mega(of_any.get('estimate'))} | {seconds} | {' | '.join(compiled)} |"
        )
    return "\n".join(lines) + "\n"


def _cells(outcome: Mapping[str, Any] | None) -> list[str]:
    """Seconds and megabytes, or the reason for failure."""
    if outcome is None:
        return ["", ""]
    if "failed" in outcome:
        return [str(outcome["failed"]).replace("|", " "), ""]
    few = f" ({plural(outcome['at_once'], 'run')} at once)" if "at_once" in outcome else ""
    return [f"{outcome['compile_seconds']:.1f}{few}", _mega(outcome["bytes"])]


def _mega(size: int | None) -> str:
    return "" if size is None else f"{size / 1e6:.3g}"


def short_names(names: Sequence[str]) -> dict[str, str]:
    """Short names of programs: the trial without the package's name, and the static fields in which programs of a trial differ."""
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
        UsageError: the page lacks the marks.
    """
    start, end = page.find(MARKS[0]), page.find(MARKS[1])
    if not 0 <= start < end:
        raise UsageError(f"the page lacks the marks {' and '.join(MARKS)}")
    sentences = "\n".join(f"- {summary(platform, results, names)}" for platform in NAMES)
    failed = any("failed" in result for platform in NAMES for result in results.get(platform, {}).values())
    note = "\n\nIf a program does not compile, the table says why instead of the seconds." if failed else ""
    return f"{page[: start + len(MARKS[0])]}\n{sentences}{note}\n\n{table(results, names, cpu)}{page[end:]}"
