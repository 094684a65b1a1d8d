"""Executable documents: the code of a page or a notebook runs from top to bottom, and its output is shown below it.

In a page, ``python`` blocks share one namespace. A ``python`` block with a title, such as ``title="mine.py"``, is appended to a
file of that name instead. In a ``console`` block, lines after ``$`` are commands, all others their output. A ``text`` block right
after code is the code's output. ``python -m jaxdyn.maintain run FILE…`` writes current output into documents; tests compare.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import linecache
import os
import re
import subprocess
import sys
import tempfile
import types
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from jaxdyn.engine.storage.store import atomic_write
from jaxdyn.errors import UsageError

__all__ = ["as_page", "masked", "notebook", "page", "write"]

BLOCK = re.compile(r"^```(?P<kind>python|console|text)(?P<info>[^\n]*)\n(?P<body>.*?)^```$", re.M | re.S)
TITLE = re.compile(r'title="([\w.]+)"')
WORDS = {"python": [sys.executable], "pytest": [sys.executable, "-m", "pytest"], "jaxdyn": [sys.executable, "-m", "jaxdyn"]}
SLOW = re.compile(  # lines of a slow machine, that it still works
    r"[a-zA-Z ]+ …|\w[\w ]*: (?:[\d,]+ of [\d,]+ \w+, )?\d+ s so far|runs done, judging|\d+% done, about \d+ \w+ left"
)
VARYING = (  # patterns of times and dates, which differ between machines and days
    (r"; (?:under a minute|about \d+ min(?:utes)?|\d+ min(?:utes)?) expected[^\n]*", "; N expected"),
    (r"\b\d+(?:\.\d+)? ?(?:s|min)\b", "N s"),
    (r"\b\d{4}-\d\d-\d\d(?: \d\d:\d\d)?", "DATE"),
)


def masked(text: str) -> str:
    """A document with times and dates masked, so that it is the same on every machine."""
    for pattern, instead in VARYING:
        text = re.sub(pattern, instead, text)
    return text


def page(text: str) -> str:
    """A Markdown page with current output, from running all of its code in an empty folder.

    Raises:
        Exception: whatever the code raises.
    """
    parts, end, printed = list[str](), 0, ""
    with _scratch() as folder, _namespace() as names:
        for block in BLOCK.finditer(text):
            between, kind, title = text[end : block.start()], block["kind"], TITLE.search(block["info"])
            end = block.end()
            if kind == "text" and not between.strip():  # the old output, which is replaced
                parts += [f"{between}```text\n{printed}```"]
                printed = ""
                continue
            parts += [f"\n\n```text\n{printed}```" if printed else "", between]
            printed, whole = "", block[0]
            if kind == "python" and title:
                with (folder / title[1]).open("a", encoding="utf-8") as file:
                    file.write(block["body"] + "\n\n")
            elif kind == "python":
                printed, _ = _run(block["body"], names)
            elif kind == "console":
                whole = f"```console{block['info']}\n{_commands(block['body'], folder)}```"
            parts.append(whole)
    return "".join([*parts, f"\n\n```text\n{printed}```" if printed else "", text[end:]])


def notebook(content: Mapping[str, Any]) -> dict[str, Any]:
    """A notebook (nbformat 4) with current output, from running all of its cells in an empty folder.

    Raises:
        Exception: whatever a cell raises.
    """
    cells, count = [], 0
    with _scratch(), _namespace() as names:
        for cell in content["cells"]:
            if cell["cell_type"] == "code":
                count += 1
                printed, value = _run("".join(cell["source"]), names)
                cell = cell | {"execution_count": count, "outputs": list(_outputs(printed, value, count))}
            cells.append(cell)
    return {**content, "cells": cells}


def as_page(content: Mapping[str, Any], name: str) -> tuple[str, dict[str, str]]:
    """A notebook as a Markdown page, and its figures by file name."""
    parts, figures = list[str](), dict[str, str]()
    for cell in content["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            if "image/svg+xml" in data:
                file = f"{name}_{len(figures) + 1}.svg"
                figures[file] = "".join(data["image/svg+xml"])
                parts.append(f"![Figure of the cell above]({file})")
            else:
                text = "".join(output.get("text") or data["text/plain"]).rstrip("\n")
                parts.append(f"```text\n{text}\n```")
    return "\n\n".join(parts) + "\n", figures


def write(file: Path) -> None:
    """Renew a page or a notebook in place.

    Raises:
        UsageError: the file is neither.
        Exception: whatever its code raises.
    """
    text = file.read_text(encoding="utf-8") if file.is_file() else ""
    if file.suffix == ".md" and text:
        atomic_write(file, page(text))
    elif file.suffix == ".ipynb" and text:
        atomic_write(file, json.dumps(notebook(json.loads(text)), indent=1, ensure_ascii=False) + "\n")
    else:
        raise UsageError(f"{file} is not allowed: it is a page (.md) or a notebook (.ipynb)")


@contextlib.contextmanager
def _scratch() -> Iterator[Path]:
    """An empty folder to work in."""
    with tempfile.TemporaryDirectory() as name, contextlib.chdir(name):
        yield Path(name)


@contextlib.contextmanager
def _namespace() -> Iterator[dict[str, Any]]:
    """The namespace of a document: that of a main module, as in a notebook, so that its functions are found."""
    module, before = types.ModuleType("__main__"), sys.modules["__main__"]
    sys.modules["__main__"] = module
    try:
        yield vars(module)
    finally:
        sys.modules["__main__"] = before


def _run(source: str, names: dict[str, Any]) -> tuple[str, Any]:
    """Run a cell; returns its output, and the value of its last line if that is an expression."""
    place = f"<cell {len(linecache.cache)}>"
    linecache.cache[place] = (len(source), None, source.splitlines(keepends=True), place)  # makes its source available
    tree, last = ast.parse(source, place), None
    if tree.body and isinstance(tree.body[-1], ast.Expr):
        last = ast.Expression(tree.body.pop().value)  # type: ignore[attr-defined]
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(tree, place, "exec"), names)
        value = None if last is None else eval(compile(last, place, "eval"), names)
    return printed.getvalue(), value


def _outputs(printed: str, value: Any, count: int) -> Iterator[dict[str, Any]]:
    """A cell's outputs in the notebook's format."""
    if printed:
        yield {"name": "stdout", "output_type": "stream", "text": printed.splitlines(keepends=True)}
    if value is not None:
        data = {"text/plain": repr(value).splitlines(keepends=True)}
        if hasattr(value, "savefig"):
            data = {"image/svg+xml": _drawn(value).splitlines(keepends=True), "text/plain": ["<Figure>"]}
        yield {"data": data, "execution_count": count, "metadata": {}, "output_type": "execute_result"}


def _drawn(figure: Any) -> str:
    """A figure as SVG; equal figures give equal bytes."""
    import matplotlib

    with matplotlib.rc_context({"svg.hashsalt": "jaxdyn"}):
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", facecolor="white", metadata={"Date": None})
    return buffer.getvalue()


def _commands(body: str, folder: Path) -> str:
    """The commands of a block, each followed by its output."""
    lines = []
    for command in (line for line in body.splitlines() if line.startswith("$ ")):
        words = command[2:].split()
        done = subprocess.run(
            [*WORDS[words[0]], *words[1:]],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "COLUMNS": "120"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
        )
        lines += [command, *(line.rstrip() for line in done.stdout.rstrip().splitlines() if not SLOW.fullmatch(line))]
    return "\n".join(lines) + "\n"
