"""Where do the seconds of a cold verification go? The twenty dearest programs and the totals, beside the last recorded ones.

``python benchmarks/programs.py [RESULT]``: RESULT is what ``jaxdyn verify --json`` printed on a machine that had compiled nothing;
without it the verification is run here, in an empty cache.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path

from command_line import call
from common import RESULTS, cpu_seconds, publish

DEAREST = 20
RECORDED = RESULTS / "programs.json"


def measured() -> tuple[dict, dict[str, float]]:
    """The JSON object of a cold verification, and the totals that it does not know: processor seconds, and a second, warm call."""
    with tempfile.TemporaryDirectory() as cache, tempfile.TemporaryDirectory() as cwd:
        before = cpu_seconds()
        result = call("verify", "--json", cache=cache, cwd=cwd)
        spent = cpu_seconds() - before
        warm = call("verify", "--json", cache=cache, cwd=cwd)
    return result, {"processor seconds": spent, "second call": warm["seconds"]}


def named(costs: list[dict]) -> dict[str, dict]:
    """The programs by name: the trial, and those static fields that tell it from the trial's other programs."""
    found = {}
    for cost in costs:
        twins = [c["static"] for c in costs if c["program"] == cost["program"]]
        own = {k: v for k, v in cost["static"].items() if any(t.get(k) != v for t in twins)}
        title = cost["program"].replace("jaxdyn.theories.", "")
        found[" ".join([title, *(f"{k}={v}" for k, v in own.items())])] = cost
    return found


def compared(programs: dict[str, dict], before: dict[str, float]) -> list[dict]:
    """The table: dearest first."""
    dearest = sorted(programs.items(), key=lambda item: -item[1]["compile_seconds"] - item[1]["run_seconds"])[:DEAREST]
    return [
        {
            "program": name if len(name) < 90 else name[:87] + "...",
            "runs": cost["runs"],
            "compile_seconds": round(cost["compile_seconds"], 2),
            "run_seconds": round(cost["run_seconds"], 2),
            "recorded": round(before[name], 2) if name in before else "",
        }
        for name, cost in dearest
    ]


def main(words: list[str]) -> None:
    """Measure or read, print, record."""
    result, totals = (json.loads(Path(words[0]).read_text(encoding="utf-8")), {}) if words else measured()
    programs = named(result["costs"])
    totals |= {
        "verification": result["seconds"],
        "programs": len(programs),
        "claims": len(result["claims"]),
        **{kind: sum(c[kind] for c in programs.values()) for kind in ("compile_seconds", "run_seconds")},
    }
    last = json.loads(RECORDED.read_text(encoding="utf-8")) if RECORDED.exists() else {"totals": {}, "programs": {}}
    for name, value in totals.items():
        print(f"{name:22s} {value:10.1f}   recorded {last['totals'].get(name, float('nan')):10.1f}")
    spent = {name: c["compile_seconds"] + c["run_seconds"] for name, c in programs.items()}
    question = f"The {DEAREST} dearest of {len(programs)} programs, {os.cpu_count()} cores, seconds"
    publish("programs", question, compared(programs, last["programs"]), totals=totals, programs=spent)


if __name__ == "__main__":
    main(sys.argv[1:])
