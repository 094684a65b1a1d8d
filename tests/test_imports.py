"""The import graph of the package: no circle, and nothing imports from a layer above its own."""

import ast
import functools
import graphlib
from collections.abc import Iterator
from pathlib import Path

import pytest

import jaxdyn

PACKAGE = Path(jaxdyn.__file__).parent
LIBRARIES = (
    "data",
    "flow",
    "instruments",
    "linalg",
    "metrics",
    "models",
    "nn",
    "optim",
    "plotting",
    "sampling",
    "stats",
    "status",
    "text",
    "train",
)
ABOVE = {  # part of the package -> parts that it never imports; "" is the front, ``import jaxdyn``
    "engine": {"", "cli", "experiment", "maintain", "report", "testing", "theories"},
    **dict.fromkeys(LIBRARIES, {"", "cli", "experiment", "maintain", "report", "testing", "theories"}),
    "plotting": {"", "cli", "engine", "experiment", "maintain", "report", "testing", "theories"},
    "instruments": {"", "cli", "experiment", "maintain", "models", "report", "testing", "theories"},
    "explorer": {"cli", "maintain"},
    "laboratory": {"", "cli", "experiment", "maintain", "models", "report", "testing", "theories"},
    "report": {"cli", "maintain"},
    "theories": {"cli", "maintain"},
}


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """All statements below a node, those of functions included, but for what only type checkers see."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        yield child
        yield from statements(child)


@functools.cache
def graph() -> dict[str, set[str]]:
    """For every module the modules that it imports."""
    files = {".".join(("jaxdyn", *f.relative_to(PACKAGE).with_suffix("").parts)): f for f in PACKAGE.rglob("*.py")}
    files = {name.removesuffix(".__init__"): file for name, file in files.items()}
    imports: dict[str, set[str]] = {name: set() for name in files}
    for name, file in files.items():
        for statement in statements(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(statement, ast.Import):
                imports[name] |= {alias.name for alias in statement.names} & files.keys()
            elif isinstance(statement, ast.ImportFrom) and statement.module in files:
                whole = [f"{statement.module}.{alias.name}" for alias in statement.names]
                imports[name] |= {module if module in files else statement.module for module in whole}
        imports[name].discard(name)
    return imports


def part(module: str) -> str:
    """The folder or module right below the package."""
    return (module.split(".") + [""])[1]


def test_no_circle():
    try:
        graphlib.TopologicalSorter(graph()).prepare()
    except graphlib.CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


@pytest.mark.parametrize("lower", ABOVE)
def test_nothing_imports_upward(lower):
    upward = [f"{name} imports {other}" for name in graph() if part(name) == lower for other in graph()[name]]
    assert [arrow for arrow in upward if part(arrow.split()[-1]) in ABOVE[lower]] == []


WINGS = ("base", "storage", "claims", "catalogue", "programs", "runs", "judging", "verification")  # each imports those before it


def wing(module: str) -> str | None:
    """The part of the engine in which a module lies."""
    parts = module.split(".")
    return parts[2] if parts[:2] == ["jaxdyn", "engine"] and len(parts) > 2 else None


def test_the_engine_has_wings_of_a_dozen_rooms_that_say_what_they_are():
    rooms = {name: wing(name) for name in graph() if wing(name) and len(name.split(".")) > 3}
    assert set(rooms.values()) == set(WINGS) == {page.parent.name for page in (PACKAGE / "engine").glob("*/__init__.py")}
    assert max(list(rooms.values()).count(name) for name in WINGS) <= 12
    assert [p.name for p in (PACKAGE / "engine").glob("*.py")] == ["__init__.py"]
    for name in WINGS:
        assert ast.get_docstring(ast.parse((PACKAGE / "engine" / name / "__init__.py").read_text(encoding="utf-8"))), name


def test_wings_import_in_one_direction():
    arrows = [(name, other) for name in graph() for other in graph()[name] if wing(name) and wing(other)]
    upward = [arrow for arrow in arrows if WINGS.index(wing(arrow[0])) < WINGS.index(wing(arrow[1]))]
    assert len(arrows) > 100 and upward == []
