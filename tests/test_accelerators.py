"""What accelerators run, tested without one: every program lowers for them, and its runs at once are its runs one by one."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.linalg import schur

from jaxdyn.engine import program as engine
from jaxdyn.engine.devices import Devices
from jaxdyn.engine.planning import suited
from tests.programs import cases, faults

OFF_CPU = suited({}, Devices("gpu"))["executor"]
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
@pytest.mark.parametrize("trial", sorted(BY_TRIAL, key=lambda trial: (trial != "cal.uv_eos:trial", trial)))
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
