"""Rates by name against formulas by hand and optax's own, with traced numbers, and what is refused."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jaxdyn.errors import UsageError
from jaxdyn.optim.methods import method
from jaxdyn.optim.schedules import SCHEDULES, schedule
from jaxdyn.text import pretraining

T, W = 40, 8
FORMULAS = {  # after the warm-up, by hand, of a peak 1
    "constant": lambda s: 1.0,
    "linear": lambda s: 1 - 0.8 * min((s - W) / (T - W), 1),
    "cosine": lambda s: 0.2 + 0.8 * (1 + math.cos(math.pi * min((s - W) / (T - W), 1))) / 2,
    "inverse_sqrt": lambda s: math.sqrt(W / s),
    "step": lambda s: 0.5 ** ((s - W) // 7),
    "wsd": lambda s: 1 - 0.8 * min(max(s - 30, 0) / 10, 1),
}
NUMBERS = {
    "constant": {},
    "linear": {"steps": T, "end": 0.2},
    "cosine": {"steps": T, "end": 0.2},
    "inverse_sqrt": {},
    "step": {"every": 7, "factor": 0.5},
    "wsd": {"steps": T, "end": 0.2, "cooldown": 10},
}


def values(rate, last=T + 5):
    return np.asarray(jax.jit(jax.vmap(rate))(jnp.arange(last, dtype=jnp.int32)))


@pytest.mark.parametrize("kind", SCHEDULES)
def test_a_schedule_is_its_formula(kind):
    expected = [0.3 * (s / W if s < W else FORMULAS[kind](s)) for s in range(T + 5)]
    rate = schedule(kind, 0.3, warmup=W, **NUMBERS[kind])
    np.testing.assert_allclose(np.broadcast_to(values(rate), T + 5), expected, rtol=1e-5, atol=1e-7)
    at_once = schedule(kind, 0.3, **NUMBERS[kind])
    assert float(at_once(0)) == pytest.approx(0.3)


@pytest.mark.parametrize("kind", SCHEDULES)
def test_all_numbers_may_be_traced(kind, x64):
    """A sweep over peaks, warm-ups and all other numbers in one program is the loop."""
    names = ["peak", "warmup", *NUMBERS[kind]]
    cells = [
        {"peak": 0.3, "warmup": W} | NUMBERS[kind],
        {"peak": 0.1, "warmup": 0}
        | {name: value / 2 if isinstance(value, float) else value - 3 for name, value in NUMBERS[kind].items()},
    ]
    columns = {name: jnp.asarray([cell[name] for cell in cells]) for name in names}
    traces = 0

    def curve(numbers):
        nonlocal traces
        traces += 1
        return jax.vmap(schedule(kind, **numbers))(jnp.arange(T + 5)) * jnp.ones(T + 5)

    found = jax.jit(jax.vmap(curve))(columns)
    assert traces == 1
    for row, cell in zip(found, cells, strict=True):
        np.testing.assert_allclose(row, np.broadcast_to(values(schedule(kind, **cell)), T + 5), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("wide", [False, True])
def test_linear_and_cosine_are_optaxs_to_the_bit(wide):
    with jax.enable_x64(wide):
        for steps in (7, 40, 1000):
            warm = steps // 10
            theirs = optax.schedules.warmup_cosine_decay_schedule(0.0, 1.0, warm, steps, 0.1)
            ours = schedule("cosine", 1.0, steps, warmup=warm, end=0.1)
            np.testing.assert_array_equal(values(ours, steps + 3), values(theirs, steps + 3))
            np.testing.assert_array_equal(values(ours, steps + 3), values(pretraining.schedule(steps), steps + 3))
            parts = optax.linear_schedule(0.0, 1.0, warm), optax.linear_schedule(1.0, 0.1, steps - warm)
            theirs = optax.schedules.join_schedules(parts, [warm])
            np.testing.assert_array_equal(
                values(schedule("linear", 1.0, steps, warmup=warm, end=0.1), steps + 3), values(theirs, steps + 3)
            )


def test_a_schedule_is_a_rate_of_optax_and_of_a_method():
    params = {"w": jnp.asarray([1.0, -2.0])}
    rate = schedule("wsd", 0.1, 10, warmup=3, cooldown=4)
    ends = []
    for tx in (optax.sgd(rate), method("sgd", rate).tx):
        p, state = params, tx.init(params)
        for _ in range(10):
            updates, state = tx.update(p, state, p)
            p = optax.apply_updates(p, updates)
        ends.append(p["w"])
    hand = params["w"] * math.prod(1 - 0.1 * float(min(s / 3, 1, (10 - s) / 4)) for s in range(10))
    for end in ends:
        np.testing.assert_allclose(end, hand, rtol=1e-5)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: schedule("exponential", 0.1), "schedule='exponential' is not allowed: it is one of constant, linear"),
        (lambda: schedule(["cosine"], 0.1), "is not allowed: it is one of constant"),
        (lambda: schedule("cosine", 0.1), "steps=None is not allowed: the schedule cosine needs it"),
        (lambda: schedule("step", 0.1), "every=None is not allowed: the schedule step needs it"),
        (lambda: schedule("wsd", 0.1, 10), "cooldown=None is not allowed: the schedule wsd needs it"),
        (
            lambda: schedule("constant", 0.1, 10),
            "steps is not allowed for the schedule constant: it belongs to linear, cos",
        ),
        (lambda: schedule("step", 0.1, every=3, end=0.1), "end is not allowed for the schedule step"),
        (lambda: schedule("linear", -1.0, 10), "peak=-1.0 is not allowed"),
        (lambda: schedule("linear", 1.0, 10, warmup=10), "warmup=10 is not allowed: warmup is at"),
        (lambda: schedule("linear", 1.0, 10, warmup=-1), "warmup=-1 is not allowed"),
        (lambda: schedule("linear", 1.0, 2.5), "steps=2.5 is not allowed"),
        (lambda: schedule("linear", 1.0, 10, end=math.nan), "end=nan is not allowed"),
        (lambda: schedule("step", 1.0, every=0), "every=0 is not allowed"),
        (lambda: schedule("step", 1.0, every=2, factor=1.5), "factor=1.5 is not allowed"),
        (lambda: schedule("wsd", 1.0, 10, warmup=6, cooldown=5), "cooldown=5 is not allowed"),
    ],
)
def test_wrong_names_and_numbers_are_refused(make, sentence):
    with pytest.raises(UsageError) as caught:
        make()
    assert sentence in str(caught.value) and "\n" not in str(caught.value)


def test_numpys_and_jaxs_numbers_are_numbers():
    given = functools.partial(schedule, "cosine", warmup=np.int64(2), end=np.float32(0.1))
    np.testing.assert_allclose(given(jnp.float32(0.2), jnp.int32(20))(jnp.int32(11)), 0.2 * 0.55, rtol=1e-6)
