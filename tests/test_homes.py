"""Every public name is where its table says, and whatever a script or a document names exists."""

import importlib
import re
from pathlib import Path

import jaxdyn as jd
from jaxdyn.homes import HOMES, MODULES, home_of


def test_every_name_has_its_home():
    for name in HOMES:
        assert getattr(importlib.import_module(home_of(name)), name) is getattr(jd, name), name
    for name in MODULES:
        assert importlib.import_module(home_of(name)) is getattr(jd, name)
    assert home_of("nonsense") == "jaxdyn"


def test_all_public_names_are_in_the_table():
    assert set(jd.__all__) - {"map"} == set(HOMES)


ROOT = Path(__file__).parents[1]
NAMING = [
    *(ROOT / name for name in (".ci/run", "Makefile", "README.md", "CONTRIBUTING.md", "mkdocs.yml", "pyproject.toml", "setup.py")),
    *(ROOT / "docs").rglob("*.md"),
    *(file for folder in ("jaxdyn", "benchmarks", "examples", "experiments") for file in (ROOT / folder).rglob("*.py")),
]
NO_NAMES = {"jaxdyn.json", "jaxdyn.claims"}  # a file of a folder of runs; the group of entry points


def test_names_in_scripts_and_documents_exist():
    named = {
        name: file
        for file in NAMING
        for name in re.findall(r"(?<!\.)\bjaxdyn(?:\.[A-Za-z_]\w*)+", file.read_text(encoding="utf-8"))
    }
    assert len(named) > 100
    assert not {name: file for name, file in named.items() if name not in NO_NAMES and not exists(name)}


def exists(name):
    """Whether a dotted name is a module, or is reached from the longest module that begins it."""
    words = name.split(".")
    for length in range(len(words), 0, -1):
        try:
            thing = importlib.import_module(".".join(words[:length]))
        except ModuleNotFoundError:
            continue
        return all((thing := getattr(thing, word, None)) is not None for word in words[length:])
