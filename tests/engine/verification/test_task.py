"""The task of a claim: the command that repeats it and whether the caller took something away."""

import shlex

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxdyn as jd
from jaxdyn.cli.parser import build_parser
from jaxdyn.engine.base.parsing import parse_seeds, parse_sets
from jaxdyn.engine.verification.verify import make_plan
from tests.engine.conftest import TOYS


def again(task, claim):
    """The task of the claim that its own command plans, as the command line reads it."""
    args = build_parser().parse_args(shlex.split(task.command)[1:])
    fresh = None if args.fresh is None else int(args.fresh)
    by = args.by.split(",") if args.by else []
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


@jd.setting
class Words:
    """Fields of all kinds."""

    a: jd.Swept = 1.0
    word: str = "a,b.txt"
    shape: tuple[int, ...] = (2, 3)
    pair: tuple[str, float] = ("x", 0.5)
    maybe: int | None = None
    flag: bool = True
    opt: jd.Code = jd.code("gd", "sign")


def decay(s, key):
    return jd.observables(predicted={"x": s.a}, measured={"x": s.a})


def close(ds):
    return [jd.at_most("error", jd.relative_error(ds, "x"), 0.1)]


NAMED = jd.Claim(
    id="words.one",
    title="t",
    statement="s",
    source="x",
    evidence="algebra",
    trial=decay,
    quick=jd.grid(Words, a=[1.0, 2.0]),
    seeds=4,
    judge=close,
    bounds="derived",
    controls={"c": {"a": 3.0}},
    rivals={"r": jd.off(predicted_x=7.0)},
)
FLOATS = st.floats(allow_nan=False, allow_infinity=False, allow_subnormal=False)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from(",\" \n\r\t=:#'\\"), max_size=6)
WHOLE = st.integers(-(2**70), 2**70)


def one_or_several(values, arrays=None):
    """A value, or a list of different ones; also as an array, if they have a dtype."""
    lists = st.lists(values, min_size=1, max_size=3, unique=True)
    return values | lists | (lists.map(lambda v: np.array(v, arrays)) if arrays else st.nothing())


FIELDS = st.fixed_dictionaries(
    {},
    optional={
        "a": one_or_several(FLOATS, float) | st.floats(0.125, 8.0, width=32).map(np.float32),
        "word": one_or_several(TEXTS),
        "shape": st.lists(WHOLE, min_size=1, max_size=3).map(tuple) | st.just(np.array([2, 3])),
        "pair": st.tuples(TEXTS, FLOATS),
        "maybe": one_or_several(WHOLE | st.none()),
        "flag": one_or_several(st.booleans()) | st.just(np.bool_(False)),
        "opt": one_or_several(st.sampled_from(["gd", "sign"])),
    },
)
SEEDS = st.none() | st.integers(1, 9) | st.lists(st.integers(0, 30), min_size=1, max_size=4, unique=True)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(FIELDS, SEEDS)
def test_a_command_plans_what_ran_or_is_none(fields, seeds):
    try:
        (task,) = make_plan([NAMED], overrides=fields, seeds=seeds).tasks
    except jd.UsageError:
        return
    if task.command.startswith("#"):
        assert task.command.startswith("# only from Python: ") and "\n" not in task.command
        return
    repeated = again(task, NAMED)
    assert (repeated.main.grid, repeated.main.seeds) == (task.main.grid, task.main.seeds)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"a": np.float32(0.1)}, "--set a=0.10000000149011612"),
        ({"a": np.array([0.1, 2.0])}, "--set a=0.1,2.0"),
        ({"word": " lead "}, """--set 'word=" lead "'"""),
        ({"word": ["x"]}, "--set word=x,"),
        ({"pair": ("a:b", 1.0)}, "# only from Python: pair=('a:b', 1.0) cannot be given on the command line"),
    ],
)
def test_values_are_typed_as_they_ran(fields, words):
    command = make_plan([NAMED], overrides=fields).tasks[0].command
    assert command.removeprefix("jaxdyn verify words.one ") == words


def test_seeds_with_gaps_and_seeds_that_are_fixed():
    assert make_plan([NAMED], seeds=[3, 1, 2]).tasks[0].command.startswith("# only from Python: seeds=[3, 1, 2] cannot")
    assert make_plan([NAMED], seeds=range(4)).tasks[0].command == "jaxdyn verify words.one"
