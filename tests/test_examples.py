"""The examples run as they are, are short, and train."""

import ast
import runpy
import warnings
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))


def test_examples_are_short():
    assert len(EXAMPLES) == 3
    for file in EXAMPLES:
        assert len(file.read_text(encoding="utf-8").splitlines()) <= 40, file.name
        assert ast.get_docstring(ast.parse(file.read_text(encoding="utf-8")))


@pytest.mark.slow
@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_an_example_trains(file):
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a choice from which nothing is saved, above all
        losses = runpy.run_path(str(file))["losses"]
    assert losses[-1] < 0.6 * losses[0], (losses[0], losses[-1])
