"""What keeps a theory readable: a topic is one short file, imports no other topic, and its name says what it decides."""

import ast
import functools
import importlib
import inspect
import re
from pathlib import Path

import pytest

from jaxdyn.engine.catalogue import registry

FOLDER = registry.THEORIES
CLAIMS = registry.all_claims()
MODULES = {".".join(("jaxdyn.theories", *p.relative_to(FOLDER).with_suffix("").parts)): p for p in sorted(FOLDER.rglob("*.py"))}
TOPICS = {name for name, path in MODULES.items() if "\nCLAIMS" in path.read_text(encoding="utf-8")}
LINES, STATEMENTS = 450, 60  # of a module, of a function


@functools.cache
def imports(module):
    """The theories' modules that a module imports."""
    found = set()
    for node in ast.walk(ast.parse(MODULES[module].read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            whole = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= (whole & MODULES.keys()) or ({node.module} & MODULES.keys())
    return found


def test_modules_and_functions_are_short():
    texts = {name: path.read_text(encoding="utf-8") for name, path in MODULES.items()}
    assert [name for name, text in texts.items() if text.count("\n") > LINES] == []
    functions = [(name, n) for name, text in texts.items() for n in ast.walk(ast.parse(text)) if isinstance(n, ast.FunctionDef)]
    assert [f"{name}.{f.name}" for name, f in functions if f.end_lineno - f.lineno + 1 > STATEMENTS] == []


def test_no_module_imports_a_topic():
    assert [f"{module} imports {other}" for module in MODULES for other in imports(module) & TOPICS] == []


@pytest.mark.parametrize("claim", CLAIMS.values(), ids=CLAIMS)
def test_decision_and_runs_are_found_from_the_topic(claim):
    """The judge stands in the topic, the trial there or in a module that the topic imports."""
    home = registry.PACKAGE.parent / registry.home(claim)
    module = ".".join(home.relative_to(registry.PACKAGE.parent).with_suffix("").parts)
    near = {module} | imports(module)
    judge = claim.judge.func if isinstance(claim.judge, functools.partial) else claim.judge
    assert inspect.getmodule(judge).__name__ in near
    assert claim.trial.__module__ in near


def words(text):
    """Lower-case words, without digits at their ends and plurals."""
    return {re.sub(r"\d+$", "", word).rstrip("s") or word for word in re.split(r"[^a-z0-9]+", text.lower()) if word}


def test_most_ids_share_a_word_with_the_path_of_their_topic():
    """So that a reader told only an id opens the right file at once; the others are found through the title page."""
    paths = {name: "/".join(Path(registry.home(claim)).parts[3:]) for name, claim in CLAIMS.items()}
    shared = [name for name, path in paths.items() if words(name.partition(".")[2]) & words(path)]
    assert len(shared) >= len(CLAIMS) / 2


def test_every_module_of_a_theory_can_be_imported():
    for module in MODULES:
        importlib.import_module(module.removesuffix(".__init__"))
