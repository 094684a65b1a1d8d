"""Tables of benchmarks: which script makes a table, and by which code, so that it is known whether a stored table is current.

The code is that of the script, of the files next to it that it imports, and of all that these import from the package.
"""

from __future__ import annotations

import ast
import importlib.util
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jaxdyn.engine import origin
from jaxdyn.engine.syntax import code_hash, imports_of

__all__ = ["RESULTS", "changes", "command", "lacks", "made_by", "script_of", "scripts_behind", "tables"]

RESULTS = Path("benchmarks", "results")  # in a checkout
OTHERS = {"ahead.json"}  # not made by a benchmark
BENCHMARK = "the code of the benchmark"
TORCH = re.compile(r"^\s*(?:import|from) torch\b", re.M)


def scripts_behind(script: Path) -> list[Path]:
    """A script and the files next to it that it imports, directly or not."""
    found, todo = list[Path](), [script]
    while todo:
        file = todo.pop()
        if file not in found:
            found.append(file)
            todo += [near for name in _imported(file) if (near := file.with_name(f"{name}.py")).is_file()]
    return sorted(found)


def _imported(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def _code(script: Path) -> str:
    files = scripts_behind(script)
    contents = [file.read_bytes() for file in files]
    modules = {name for content in contents for name in imports_of(content, "")}
    return origin.code_of(modules, *(code_hash(content) for content in contents))


def made_by(script: Path, seconds: float) -> dict[str, Any]:
    """What a table is made from, to be stored with it.

    Args:
        script: that writes it, in a folder of a checkout.
        seconds: that it took.
    """
    script = script.resolve()
    place = f"{script.parent.name}/{script.name}"
    return {"script": place, "seconds": round(seconds), **origin.made_from((), "", _code(script))}


def changes(content: dict[str, Any], script: Path | None) -> origin.Changes:
    """What has changed since a table was made: the code of its benchmark, or the versions."""
    recorded = content.get("made_from")
    found = origin.what_changed(recorded, (), "", "" if script is None else _code(script))
    return found if recorded is None else found._replace(reasons=tuple(BENCHMARK for _ in found.reasons))


def tables(root: Path) -> dict[str, dict[str, Any]]:
    """The stored tables by name."""
    files = [file for file in sorted((root / RESULTS).glob("*.json")) if file.name not in OTHERS]
    return {file.stem: json.loads(file.read_text()) for file in files}


def script_of(root: Path, name: str, content: dict[str, Any]) -> Path | None:
    """The script that makes a table; of an older table, by its name or by what the scripts write; None where it is not known."""
    if made_from := content.get("made_from"):
        script = root / made_from["script"]
        return script if script.is_file() else None
    scripts = sorted((root / "benchmarks").glob("*.py"))
    named = [script for script in scripts if name == script.stem or name.startswith(f"{script.stem}_")]
    writing = [script for script in scripts if f'"{name}"' in script.read_text()]
    return next(iter([*sorted(named, key=lambda script: -len(script.stem)), *writing]), None)


def lacks(script: Path) -> str:
    """What a script needs and this machine lacks; empty where nothing is known to be missing."""
    needs_torch = any(TORCH.search(file.read_text()) for file in scripts_behind(script))
    return "it needs torch, which is not installed" if needs_torch and importlib.util.find_spec("torch") is None else ""


def command(script: Path) -> list[str]:
    """The command that makes a script's tables anew."""
    return [sys.executable, str(script)]
