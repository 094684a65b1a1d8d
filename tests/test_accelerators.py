"""What accelerators run, tested without one: every program lowers for them, and its runs at once are its runs one by one."""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.linalg import schur

from jaxdyn.engine.base.devices import Devices
from jaxdyn.engine.programs import program as engine
from jaxdyn.engine.programs.chunk import Chunk
from jaxdyn.engine.runs.planning import facts_here
from tests.programs import cases, faults

OFF_CPU = facts_here({}, Devices("gpu"))["executor"]
BY_TRIAL = {}  # trial -> its programs that do different things
for case in cases().values():
    BY_TRIAL.setdefault(case.trial, {}).setdefault(case.path, case)
RUNS = 4


@pytest.fixture
def not_compiled(monkeypatch):
    """A function: what is compiled of a program off CPU, and the shapes of its arguments."""
    monkeypatch.setattr(engine, "compile_block", lambda program, block, *args: (jax.jit(block), *args))
    engine.compiled_list.cache_clear()
    yield lambda program: engine.compiled_list(dataclasses.replace(program, executor=OFF_CPU), RUNS, 0)[0]
    engine.compiled_list.cache_clear()
    jax.clear_caches()


@pytest.mark.thinned
@pytest.mark.parametrize("trial", sorted(BY_TRIAL, key=lambda trial: (trial != "sink.softmax_variants:trial", trial)))
def test_the_programs_of_a_trial_lower_for_accelerators(trial, not_compiled):
    for one in BY_TRIAL[trial].values():
        if reason := one.absent():
            pytest.skip(reason)
        with jax.enable_x64(True), jax.default_matmul_precision("highest"):
            assert faults(*not_compiled(one.program)) == []


def printed(x):
    def step(x, _):
        jax.debug.print("{}", x)
        return x, None

    return jax.lax.scan(step, x, None, 3)[0]


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x: jax.device_put(x, jax.devices()[0]) + 1, ["names cpu:0"]),
        (lambda x: jax.pure_callback(np.sin, x, x), ["calls the host: pure_callback"]),
        (printed, ["calls the host: debug_print"]),
        (lambda x: schur(jnp.outer(x, x))[0], ["cuda: ", "tpu: "]),  # known on CPU alone
        (lambda x: jnp.linalg.eigvals(jnp.outer(x, x)), ["cuda: ", "tpu: "]),  # of a library that may change
    ],
    ids=["device", "callback", "print", "unknown", "unstable"],
)
def test_what_accelerators_would_not_do_is_told(function, expected):
    found = faults(jax.jit(function), jax.ShapeDtypeStruct((3,), jnp.float32))
    assert len(found) == len(expected) and all(map(str.startswith, found, expected))


STEPS = 20  # of trainings: in whole ones, rounding grows into another network
UNITS = ("every", "records", "samples")  # what the number of steps is a multiple of
LENGTHS = {  # shorter runs of other trials
    "cal.eos:uv_trial": {"steps": 20},  # large steps are chaotic
    "coc.training:trial": {"every": 10.0},
    "li2.features.thm4_retention:trial": {"steps": 30},
    "li2.grokking.phase_decay:trial": {"epochs": 20, "every": 10},
    "omnigrok.shell_delay:trial": {"settle": 60},
    "prieto.arithmetic:trial": {"steps": 20},
    "galore.text.trial:trial": {"steps": 40},
    "joma.invariant.classes:fig2_trial": {"every": 1.0},
    "joma.invariant.stationarity:trial": {"every": 5.0},
    "varma.ungrok_efficiency:trial": {"epochs": 40},
}
RTOL, ATOL = 2e-14, 1e-14  # of the largest entry of an array; of numbers that are themselves rounding
LOOSER = {  # reason -> tolerance, and where it is needed
    "the steps of an adaptive solver depend on rounding, within its tolerance": (
        2e-9,
        "icl.gf_limit:trial icl.sgd:trial joma.convergence:trial joma.linear.lowrank_link:link_trial "
        "joma.linear.lowrank_link:trained_trial li2.interaction.stage3:trial li2.lazy.gf_ridge:trial lyu.dichotomy_path:trial "
        "snap.gradient.reparam:xi_trial "
        "snap.scan.random_laws_flow:trial snap.scan.unequal_flow:trial snap.snapping.memory_rate:trial",
    ),
    "the same, over twelve decades of time": (2e-6, "emer.direction:trial emer.search:flow_trial"),
    "differences of numbers that are nearly equal": (
        2e-8,
        "galore.descent:fixed_trial li2.lazy.lemma1_width:equal_trial "
        "li2.lazy.lemma1_width:trial li2.lazy.eta_beta_regimes:trial scal.fitted:noisy_trial",
    ),
    "trainings whose number of steps is not static": (
        2e-11,
        "coc.training:trial hyper.linear_mlp:trial joma.experiments.table1.trial:trial joma.hierarchy.hier_order:trial "
        "sink.backcopy:trial",
    ),
    "least squares with many unknowns": (1e-12, "li2.features.thm3_reconstruct:trial"),
    "a product of two layers that a compiler sums in another order": (1e-13, "cal.saxe:two_layer_trial"),
    "first steps of Adam, where a gradient is rounding": (1e-6, "prieto.arithmetic:trial"),
    "trainings in float32 that know no other precision": (1e-6, "varma.ungrok_efficiency:trial galore.text.trial:trial"),
}
SINGLE = ("galore.text.trial:trial",)  # has a dtype that some of its optimisers do not follow
RTOLS = {trial: rtol for rtol, trials in LOOSER.values() for trial in trials.split()}
# A program whose last cell, of a single tanh, never comes near enough to its limit for a speed: another cell, and the tolerance of
# distances down to 1e-9, whose logarithms have errors of 2e-16 / 1e-9 over a span of ln 1000. And one in whose last cell everything
# has arrived, so that the stable rank of the speed is that of a solver's errors: a cell that still moves.
OTHER_CELLS = {"joma.convergence:trial nodes=1": (5, 3e-8), "joma.linear.lowrank_link:trained_trial": (12, 2e-9)}
LEFT_OUT = {  # variables that rounding decides
    "emer.search:flow_trial": ("rest",),  # what is left of numbers that are nearly equal, as the next two
    "li2.lazy.lemma1_width:trial": ("apart",),
    "lyu.dichotomy_path:trial": ("assumed_left",),
    "joma.invariant.fig3:fig3_trial": ("measured_srank_v", "measured_srank_rate", "drift", "loss"),  # to the end of training
    "joma.linear.lowrank_link:link_trial": ("measured_srank_rate",),  # of a speed that has decayed to a solver's errors
    "margin.vector_matrix:trial": ("assumed_optimality",),  # where a solver ends that has not converged
    "rev.mlt.trial:trial": ("z",),  # of logits that are still equal
    "scal.fitted:trial": ("measured_parameters", "measured_exponent", "value", "steps"),  # where L-BFGS ends, by whichever path
    "snap.gradient.reparam:xi_trial": ("steps",),  # of an adaptive solver
}


def compared(one):
    """The program as it is compared: trainings in float64, and their first steps only."""
    fields = dict(one.program.static)
    fields |= {name: value for name, value in LENGTHS.get(one.trial, {}).items() if name in fields}
    if fields.get("dtype") == "float32" and one.trial not in SINGLE:
        unit = math.lcm(*(fields.get(name, 1) for name in UNITS))
        fewer = {name: min(fields[name], unit * -(-STEPS // unit)) for name in ("epochs", "steps", "fits") if name in fields}
        fields |= fewer | {"dtype": "float64"}
    return dataclasses.replace(one.program, static=tuple(fields.items()), compiler="light")


def shorter(one, cell):
    """The cell, if its fields say how long its run is."""
    lengths = LENGTHS.get(one.trial, {})
    return tuple(lengths.get(name, value) for name, value in zip(one.request.grid.setting.swept_fields, cell, strict=True))


def both_ways(one, last=-1):
    """Two runs of a program, one by one and at once; they differ in the seed and, if there are several, in the cell."""
    program, pairs = compared(one), ((shorter(one, one.cells[0]), 0), (shorter(one, one.cells[last]), 1))
    each = dataclasses.replace(program, executor="map")
    alone = [engine.run_chunk(Chunk(each, (cell,), (seed,))) for cell, seed in pairs]
    at_once = engine.run_chunk(Chunk(dataclasses.replace(program, executor=OFF_CPU), (), (), zipped=True).part(pairs))
    return alone, at_once


def assert_same(alone, at_once, rtol, left_out=()):
    """Every array of every run, where its numbers are finite, to ``rtol`` of its largest one."""
    assert all((one.dims, one.coords) == (at_once.dims, at_once.coords) for one in alone)
    for name in at_once.arrays.keys() - set(left_out):
        for one, other in zip((one.arrays[name][0] for one in alone), at_once.arrays[name], strict=True):
            assert one.dtype == other.dtype
            largest = np.max(np.abs(one), initial=0, where=np.isfinite(one)) if one.dtype.kind in "fc" else 0
            np.testing.assert_allclose(other, one, rtol=0, atol=rtol * largest + ATOL, err_msg=name)


@pytest.mark.slow
@pytest.mark.parametrize("name", cases())
def test_runs_at_once_are_the_runs_one_by_one(name):
    one = cases()[name]
    if reason := one.absent():
        pytest.skip(reason)
    last, rtol = OTHER_CELLS.get(name, (-1, RTOLS.get(one.trial, RTOL)))
    assert_same(*both_ways(one, last), rtol, LEFT_OUT.get(one.trial, ()))
    jax.clear_caches()


def test_another_run_is_not_the_same():
    alone, at_once = both_ways(cases()["snap.scan.overlap:overlap_trial"])
    assert_same(alone, at_once, RTOL)
    with pytest.raises(AssertionError):
        assert_same(alone[::-1], at_once, RTOL)


def test_exceptions_are_trials():
    assert BY_TRIAL.keys() >= {*LENGTHS, *RTOLS, *LEFT_OUT} and cases().keys() >= OTHER_CELLS.keys()
