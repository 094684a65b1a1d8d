"""The tests mirror the package: a module has its tests in a file of its own, or in one of its folder's that uses it."""

import ast
import functools
import re
from pathlib import Path

import pytest

import jaxdyn

PACKAGE, TESTS = Path(jaxdyn.__file__).parent, Path(__file__).parent
MODULES = sorted(p.relative_to(PACKAGE) for p in PACKAGE.rglob("*.py") if p.name not in ("__init__.py", "__main__.py"))
EVERY = {  # modules of this name share a test file
    "maps.py": "theories/test_maps.py",
    "published.py": "theories/test_published.py",
    "pretrained_model.py": "theories/test_pretrained.py",
}


@pytest.mark.parametrize("module", MODULES, ids=str)
def test_every_module_has_its_test_file(module):
    places = [module.with_name(f"test_{module.name}")]
    places += [Path(EVERY[module.name])] if module.name in EVERY else []
    places += [folder.with_name(f"test_{folder.name}.py") for folder in module.parents if folder.name]
    verdicts = (TESTS / "theories" / "test_verdicts.py").read_text(encoding="utf-8")
    asked = module.parts[0] == "theories" and f'"{module.parts[1]}.{module.stem}"' in verdicts  # a topic that needs no more
    beside = (TESTS / module.parent).glob("test_*.py")
    assert asked or any((TESTS / place).is_file() for place in places) or any(public(module) & names(file) for file in beside)


def public(module):
    """What a module offers: the names in its ``__all__``, and its own."""
    trees = (n for n in ast.parse((PACKAGE / module).read_text(encoding="utf-8")).body if isinstance(n, ast.Assign))
    return {module.stem}.union(*(ast.literal_eval(n.value) for n in trees if ast.unparse(n.targets[0]) == "__all__"))


@functools.cache
def names(file):
    """All names in a file, and those that it imports."""
    nodes = list(ast.walk(ast.parse(file.read_text(encoding="utf-8"))))
    return {getattr(n, "id", getattr(n, "attr", getattr(n, "name", None))) for n in nodes} - {None}


def test_files_are_few_enough_to_be_read():
    roots = [TESTS.parent / name for name in ("jaxdyn", "tests", "experiments", "benchmarks")]
    assert sum(file.name != "__init__.py" for root in roots for file in root.rglob("*.py")) <= 1150


def private_names(file):
    """Private names of the package that a test file imports or asks a module for."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    froms = [n for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and (n.module or "").startswith("jaxdyn")]
    modules = {alias.asname or alias.name for n in froms for alias in n.names if alias.name.islower()}
    asked = [n for n in ast.walk(tree) if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name) and n.value.id in modules]
    names = [alias.name for n in froms for alias in n.names] + [n.attr for n in asked]
    return [f"{file.relative_to(TESTS)}: {name}" for name in names if re.match(r"_(?!_|repr_)", name)]


@pytest.mark.slow
def test_tests_ask_the_public_names():
    """What a test needs is public: a private name of the package may change without a word."""
    assert [name for file in sorted(TESTS.rglob("*.py")) for name in private_names(file)] == []
