"""Cases before the referee: their runs, their traced equations, which of these are the theory's, and gains on its numbers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.attacks import runs
from jaxdyn.attacks.case import Budget
from jaxdyn.attacks.division import divide
from jaxdyn.attacks.equations import Known, behind, evaluate, flatten, is_loop, slots, values_of
from jaxdyn.attacks.gains import ROWS, Law
from jaxdyn.engine.programs.tracing import run_one, swept_arrays, trace
from jaxdyn.engine.runs.blocks import Request
from jaxdyn.engine.runs.sweep import sweep
from tests.attacks import toys, trained

# Cases: which runs the judge gets, and how it reacts.


def test_reactions():
    case = toys.case()
    assert case.reaction(case.main) == "passes"
    assert case.reaction(case.main.assign(measured_path=2 * case.main.measured_path)) == "fails"
    assert case.reaction(case.main.assign(measured_path=np.nan * case.main.measured_path)) == "undecided"
    assert case.reaction(case.main.drop_vars("measured_path")) == "raises"


def reads(ds):
    return [jd.mean_reading("end", ds.measured_path.isel(time=-1).mean("lr"), over="seed")]


def test_readings_react_when_they_leave_their_record():
    one = toys.case(expected="measured", judge=reads, bounds=None, controls={}, rivals={})
    assert one.measured and one.reaction(one.main) == "passes"
    assert one.reaction(one.main.assign(measured_path=100 * one.main.measured_path)) == "fails"
    assert set(one.own) == {"end"}


# New runs: of the claim's trial without its controls, on its seeds or on fresh ones, within the budget.


def test_runs_are_made_without_controls_and_paid():
    case = trained.case()
    task = runs.task_of(case, {"width": 2})
    assert task.requests == [task.main] and task.main.seeds == case.result.task.main.seeds
    (data,) = runs.make(case, [task], 1.0)
    assert data.sizes["seed"] == 4 and float(data.width.max()) == 2
    assert 0 < case.time.spent < case.budget
    assert runs.own_seconds(case) < runs.seconds_of(case.result.task)


def test_fresh_sets_share_no_seed():
    case = trained.case(max_seeds=8)
    one, two = runs.fresh(case), runs.fresh(case, 1)
    assert len(one) == len(case.result.task.main.seeds) and one[0] == runs.FRESH
    assert set(range(one[0], one[0] + 8)).isdisjoint(two), "nor once seeds are added"


def test_what_the_judge_says_of_other_runs():
    case = trained.case()
    (data,) = runs.make(case, [runs.task_of(case, {"doubled": 1.0})], 1.0)
    wrong = runs.judge(case.claim, data)
    assert wrong.verdict == "refuted" and wrong.why.startswith("error: ") and runs.opposite(case.claim, wrong)
    right = runs.judge(case.claim, case.data)
    assert right.verdict == "upheld" and not runs.opposite(case.claim, right)
    assert runs.judge(case.claim, None).verdict == "error"
    assert runs.judge(case.claim, case.data.assign(status=case.data.status + 1)).verdict == "inconclusive"


def test_values_that_are_not_allowed_are_refused():
    with pytest.raises(jd.UsageError):
        runs.task_of(trained.case(), {"width": 0})


def test_a_budget_is_spent():
    budget = Budget(3.0)
    budget.spend(2.0)
    assert budget.left == 1.0
    budget.spend(2.0)
    assert budget.left == 0.0


# Predictions with gains, over all programs of a grid.


def test_without_a_gain_the_predictions_are_those_of_the_runs():
    """Two programs, whose curves have different lengths, and more rows than fit into a block."""
    grid = jd.grid(toys.Decay, lr=[0.005, 0.01, 0.02], steps=[20, 40])
    law = Law.of(Request(toys.trial, grid, range(3)))
    assert len(law.parts) == 2
    direct = sweep(toys.trial, grid, seeds=range(3))
    rows = [None] * (ROWS + 1)
    found = list(law.predictions(rows, range(3)))
    assert len(found) == len(rows)
    for ds in (found[0], found[-1]):
        np.testing.assert_allclose(ds.predicted_path.transpose(*direct.predicted_path.dims), direct.predicted_path, rtol=1e-12)


def test_a_gain_on_the_last_product_scales_the_law():
    grid = jd.grid(toys.Decay, lr=[0.005, 0.01])
    law = Law.of(Request(toys.trial, grid, range(2)))
    (slot,) = [slot for slot in law.slots if slot.primitive == "mul" and "law = start" in line(slot.place) and slot.nth == 1]
    plain, doubled = law.predictions([None, (slot, 2.0)], range(2))
    np.testing.assert_allclose(doubled.predicted_path, 2 * plain.predicted_path, rtol=1e-12)


def line(place):
    """The code at a place."""
    from jaxdyn.attacks.law import source_line

    return source_line(place)


# Traced trials as flat lists of equations, which evaluate to the same numbers.


@jax.custom_jvp
def cubed(x):
    return x**3


cubed.defjvps(lambda dx, out, x: 3 * x**2 * dx)


@jax.jit
def inner(x):
    return jax.checkpoint(lambda y: jnp.sin(cubed(y)) + jax.nn.silu(y))(x)


def nested(s, key):
    """Calls within calls, keys, branches and loops."""
    x = inner(s.lr * jax.random.normal(jax.random.fold_in(key, 1), (3,), jnp.float64))
    y = jax.lax.cond(s.lr > 0.005, lambda v: v * 2, lambda v: v, x)
    z, _ = jax.lax.scan(lambda c, _: (c * 0.5 + y.sum(), None), jnp.float64(1), None, 4)
    return jd.observables(
        predicted={"x": jd.named(inner(x), "i")},
        measured={"x": jd.named(x, "i"), "z": z, "y": jd.named(jnp.linalg.norm(y)[None], "j")},
    )


def parts():
    request = Request(nested, jd.grid(toys.Decay, lr=[0.01]), range(3))
    (program, cell), *_ = request.cells
    return program, cell, flatten(trace(program))


def test_the_flat_list_evaluates_to_the_trial():
    program, cell, flat = parts()
    swept = {name: values[0] for name, values in swept_arrays(program, [cell]).items()}
    with jax.enable_x64(True):
        env = dict(enumerate(jax.tree.leaves((swept, np.uint32(7), ()))))
        evaluate(flat, range(len(flat.equations)), env, {})
        direct = run_one(program)(swept, np.uint32(7), ())
    for group in ("predicted", "measured"):
        for name, item in getattr(direct, group).items():
            out = flat.outs[getattr(flat.results, group)[name].value]
            found = out.value if isinstance(out, Known) else env[out]
            np.testing.assert_allclose(found, item.value, rtol=1e-12)


def test_calls_are_inlined_and_loops_are_not():
    _, _, flat = parts()
    names = [equation.primitive for equation in flat.equations]
    assert not {"jit", "pjit", "checkpoint", "custom_jvp_call"} & set(names)
    assert {"scan", "cond"} <= set(names)
    assert [e.primitive for e in flat.equations if is_loop(e) and e.primitive in ("scan", "cond")] == ["scan"]


def test_slots_have_the_line_that_made_them():
    _, _, flat = parts()
    theory = behind(flat, values_of(flat, flat.results.predicted))
    found = slots(flat, theory)
    assert all("test_case.py" in slot.place for slot in found)
    assert {slot.primitive for slot in found} >= {"sin", "mul"}
    assert len(set(map(str, found))) == len(found)


def test_a_gain_multiplies_one_number():
    program, cell, flat = parts()
    theory = sorted(behind(flat, values_of(flat, flat.results.predicted)))
    last = [slot for slot in slots(flat, theory).values()][-1]
    swept = {name: values[0] for name, values in swept_arrays(program, [cell]).items()}
    ends = []
    with jax.enable_x64(True):
        for gain in (1.0, 3.0):
            env = dict(enumerate(jax.tree.leaves((swept, np.uint32(7), ()))))
            evaluate(flat, theory, env, {last: gain})
            ends.append(np.asarray(env[flat.outs[flat.results.predicted["x"].value]]))
    np.testing.assert_allclose(ends[1], 3 * ends[0], rtol=1e-12)


# Which equations are the theory's: by what depends on what, and by numbers where both sides share an array.


@jd.setting
class Two:
    """A theory and a network."""

    rate: jd.Swept = 0.1
    apart: bool = True


def descended(start, rate):
    """A network's training."""
    return jax.lax.fori_loop(0, 5, lambda _, w: w - rate * w, start)


def both(s, key):
    """The theory's end and the network's, apart or through one function."""
    start = 1 + jax.random.uniform(key, (3,), jnp.float64)
    theory, network = start * jnp.exp(-5 * s.rate), descended(start, s.rate)
    if s.apart:
        return jd.observables(predicted={"end": jd.named(theory, "w")}, measured={"end": jd.named(network, "w")})
    square = jnp.stack([theory, network]) ** 2
    return jd.observables(predicted={"end": jd.named(square[0], "w")}, measured={"end": jd.named(square[1], "w")})


def after(s, key):
    """A theory that begins where the network ends."""
    end = descended(1 + jax.random.uniform(key, (3,), jnp.float64), s.rate)
    return jd.observables(
        predicted={"next": jd.named(end * (1 - s.rate), "w")}, measured={"next": jd.named(descended(end, s.rate), "w")}
    )


def switched(s, key):
    """What the theory says depends on the network by a threshold alone."""
    end = descended(1 + jax.random.uniform(key, (3,), jnp.float64), s.rate)
    rows = jnp.stack([jnp.exp(-s.rate * jnp.arange(3.0)), end])
    chosen = rows[0, jnp.sum(rows[1] > 100.0)]
    return jd.observables(predicted={"x": chosen}, measured={"x": rows[1, 0]})


def divided(trial, **fields):
    request = Request(trial, jd.grid(Two, **fields), range(1))
    (program, cell), *_ = request.cells
    flat = flatten(trace(program))
    return flat, divide(flat, program, cell)


@pytest.mark.parametrize("apart", [True, False])
def test_the_training_is_no_theory_and_is_not_made_again(apart):
    flat, division = divided(both, apart=apart)
    names = [flat.equations[i].primitive for i in division.theory]
    assert "exp" in names and not any(is_loop(flat.equations[i]) for i in division.theory)
    assert not division.trains(flat)


def test_a_theory_that_begins_where_the_network_ends_has_the_training_before_it():
    flat, division = divided(after)
    assert division.trains(flat)
    assert [flat.equations[i].primitive for i in division.theory if flat.equations[i].primitive == "mul"]


def test_dependence_by_a_threshold_is_dependence():
    flat, division = divided(switched)
    assert division.trains(flat), "a shift by a third does not cross the threshold, but a larger one does"
