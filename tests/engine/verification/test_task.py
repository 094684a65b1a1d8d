"""The task of a claim: the command that repeats it and whether the caller took something away."""

import shlex

import pytest

from jaxdyn.cli import main as cli
from jaxdyn.engine.base.parsing import parse_seeds, parse_sets
from jaxdyn.engine.verification.verify import make_plan
from tests.engine.conftest import TOYS


def again(task, claim):
    """The task of the claim that its own command plans, as the command line reads it."""
    args = cli.build_parser().parse_args(shlex.split(task.command)[1:])
    fresh = None if args.fresh is None else int(args.fresh)
    by = [field for field in args.by.split(",") if field]
    options = {"scale": args.scale, "seeds": parse_seeds(args.seeds), "fresh": fresh, "by": by, "load": args.load}
    assert args.patterns == [claim.id]
    return make_plan([claim], overrides=parse_sets(args.sets), **options).tasks[0]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"seeds": 9},
        {"seeds": range(3, 6)},
        {"seeds": [7]},
        {"fresh": 4000},
        {"scale": "paper", "by": ["rate", "seed"]},
        {"overrides": {"rate": [0.5, 1.5], "optimizer": "sign", "weights": (3, 4), "size": range(1, 3)}},
        {"overrides": {"depth": None, "noisy": True, "dtype": "float32"}, "load": [TOYS]},
    ],
)
def test_the_command_plans_the_same_runs(toys, options):
    (task,) = make_plan([toys.CLAIMS[0]], **options).tasks
    repeated = again(task, toys.CLAIMS[0])
    assert repeated.main.grid.cells() == task.main.grid.cells() and repeated.main.seeds == task.main.seeds
    assert {n: r.grid.cells() for n, r in repeated.controls.items()} == {n: r.grid.cells() for n, r in task.controls.items()}
    assert (repeated.scale, repeated.by, repeated.fresh, repeated.load) == (task.scale, task.by, task.fresh, task.load)
    assert repeated.command == task.command


@pytest.mark.parametrize(
    ("options", "narrowed"),
    [({}, False), ({"seeds": 3}, True), ({"seeds": 4}, False), ({"fresh": 40}, False), ({"overrides": {"rate": 1.0}}, True)],
)
def test_overrides_and_fewer_seeds_may_take_away_what_a_judge_needs(toys, options, narrowed):
    assert make_plan([toys.CLAIMS[0]], **options).tasks[0].narrowed is narrowed


@pytest.mark.parametrize(
    ("options", "recorded"),
    [({}, True), ({"seeds": 3}, True), ({"fresh": 40}, True), ({"overrides": {"rate": 1.0}}, False), ({"scale": "paper"}, False)],
)
def test_what_was_found_is_compared_on_the_quick_grid_alone(toys, options, recorded):
    assert make_plan([toys.CLAIMS[0]], **options).tasks[0].recorded is recorded


def test_a_plan_counts_runs_and_asks_for_all_of_them(toys):
    plan = make_plan(toys.CLAIMS[:2])
    assert plan.runs == 32 and plan.done == 0, "16 of both claims and 16 of a control"
    assert [len(task.requests) for task in plan.tasks] == [2, 1]
    assert plan.seconds() == pytest.approx(sum(plan.job_seconds())) and plan.seconds() > 0
