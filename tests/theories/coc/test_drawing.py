"""The figure of right answers along long trainings."""

import numpy as np
from matplotlib.figure import Figure

from jaxdyn.theories.coc import drawing

RULES = {"short": {"file": 60.0, "balanced": 90.0}, "long": {"file": 80.0, "balanced": 50.0}}


def run(method, steps, shift):
    accuracy = [shift + float(x) for x in range(len(steps))]
    return {"method": method, "steps": steps, "accuracy": accuracy, "balanced": [x / 2 for x in accuracy]}


def test_two_lines_per_run_one_label_per_method_and_the_best_rule_on_the_file():
    ax = Figure().subplots()
    courses = [run("coconut", [0, 5, 10], 1.0), run("cot", [0, 5], 20.0), run("coconut", [0, 5, 10], 40.0), {"method": "no_cot"}]
    drawing.along(ax, courses, RULES)
    *lines, rule = ax.lines
    assert len(lines) == 6 and set(np.asarray(rule.get_ydata())) == {80.0}
    for one, (solid, dotted) in zip(courses, zip(lines[::2], lines[1::2], strict=True), strict=False):
        assert list(solid.get_xdata()) == list(dotted.get_xdata()) == one["steps"]
        assert list(solid.get_ydata()) == one["accuracy"] and list(dotted.get_ydata()) == one["balanced"]
        assert solid.get_color() == dotted.get_color() and dotted.get_linestyle() == ":"
    assert lines[0].get_color() == lines[4].get_color() != lines[2].get_color()
    labels = [line.get_label() for line in lines if not line.get_label().startswith("_")]
    assert labels == ["coconut", "coconut, balanced problems", "cot", "cot, balanced problems"]
