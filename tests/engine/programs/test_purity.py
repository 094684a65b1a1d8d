"""Trials that break their contract, one way each, are told by ``assert_trial``; the strategy draws what a setting allows."""

import dataclasses
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

import jaxdyn as jd
from jaxdyn.errors import UsageError
from jaxdyn.testing import assert_trial, settings


@jd.setting
class Walk:
    """A random walk with drift."""

    steps: int = jd.field(6, at_least=1)
    rate: jd.Swept = jd.field(0.1, above=0)
    drift: jd.Swept = jd.field(0.0, at_least=-1, at_most=1)
    noise: jd.Swept = 1.0
    law: jd.Code = jd.code("normal", "uniform")
    dtype: str = "float32"

    def __post_init__(self):
        jd.require(self, self.rate + self.drift < 5, "rate plus drift is below 5", "rate", "drift")


def walk(s, key, *, draw=None, dtype=None):
    """The walk's places, drawn outside a loop; ``draw`` replaces the key, ``dtype`` that of the draws."""
    x = jax.random.normal(key if draw is None else draw(s, key), (s.steps,), dtype or s.dtype)
    x = jnp.where(s.law == "normal", x, jnp.clip(x, -1, 1))

    def step(place, jump):
        place = place + s.rate * jump + s.drift
        return place, place

    _, places = jax.lax.scan(step, jnp.zeros((), x.dtype), x)
    return jd.observables(measured={"x": jd.named(places, "step")}, predicted={"x": jd.named(jnp.zeros_like(places), "step")})


def folded(s, key):
    """A key that the step size moves."""
    return jax.random.fold_in(key, (1000 * s.rate).astype(jnp.int32))


def test_a_trial_that_keeps_it():
    assert_trial(walk, Walk(), others=[Walk(rate=0.3), Walk(drift=0.5, law="uniform")])


@pytest.mark.slow
def test_one_in_double_precision_also_without_jit():
    assert_trial(walk, Walk(dtype="float64"), eager=True)


def moved_in_a_loop(s, key):
    """The key goes through a loop that the rate enters."""
    return jax.lax.fori_loop(0, 3, lambda i, k: jax.random.fold_in(k, i + (9 * s.rate).astype(jnp.int32)), key)


def moved_in_a_branch(s, key):
    """The key of one branch depends on the rate."""
    return jax.lax.cond(s.drift > 0, lambda: folded(s, key), lambda: key)


@jd.setting
class Records:
    """Steps between records, once by a number of any kind and once by a whole one."""

    every: jd.Swept = 2.0
    counted: jd.Swept = jd.field(2.0, at_least=1, whole=True)
    law: jd.Code = jd.code("normal", "uniform")


@pytest.mark.parametrize(
    ("read", "told"),
    [
        (lambda s: jnp.round(s.every), True),
        (lambda s: jnp.asarray(s.every).astype(int), True),
        (lambda s: jnp.where(s.every > 0, jnp.floor(s.every), 9), True),
        (lambda s: jax.jit(lambda x: jnp.ceil(x))(s.every), True),
        (lambda s: jax.vmap(lambda x: jnp.round(x))(jnp.full(2, s.every)).sum(), True),
        (lambda s: jnp.sum(jnp.arange(4) < s.every), True),
        (lambda s: jnp.sum(jnp.arange(1, 5, dtype=jnp.float32) <= s.every), True),
        (lambda s: jnp.where(s.every > 2, 1, 0), False),
        (lambda s: jnp.sum(jnp.arange(4) / 4 < s.every), False),
        (lambda s: jnp.sum(jnp.arange(4) < s.counted), False),
        (lambda s: jnp.round(s.counted) + s.law.index, False),
        (lambda s: jnp.round(s.every) * s.every, False),
        (lambda s: jnp.round(8 / s.every), False),
        (lambda s: jax.jit(lambda x: x)(s.every) * 2 + jnp.round(s.every), False),
        (lambda s: 2 * s.every, False),
    ],
)
def test_a_field_that_a_trial_rounds_is_declared_a_count(read, told):
    def trial(s, key):
        x = jnp.asarray(read(s), jnp.float64) + jax.random.normal(key)
        return jd.observables(measured={"x": x}, predicted={"x": x})

    if told:
        with pytest.raises(AssertionError, match=r"counts with every, and would round 2.5: declare it jd.field\(..., whole=True"):
            assert_trial(trial, Records(), run=False)
    else:
        assert_trial(trial, Records(), run=False)


@examples(deadline=None, max_examples=30)
@given(settings(Records))
def test_drawn_counts_are_whole(drawn):
    assert float(drawn.counted).is_integer() and drawn.counted >= 1


@pytest.mark.parametrize("draw", [folded, moved_in_a_loop, moved_in_a_branch])
def test_draws_that_a_field_moves(draw):
    def trial(s, key):
        return walk(s, key, draw=draw)

    with pytest.raises(AssertionError, match="random numbers depend on the field rate"):
        assert_trial(trial, Walk(), run=False)
    noise = ("rate", "drift") if draw is moved_in_a_branch else ("rate",)
    assert_trial(trial, Walk(), run=False, noise=noise)


def test_fields_may_scale_what_is_drawn():
    """Draws between bounds, probabilities and the number of steps of a loop depend on fields; keys do not."""

    def trial(s, key):
        a, b = jax.random.split(key)
        x = jax.random.uniform(a, (3,), s.dtype, maxval=s.rate) + jax.random.bernoulli(b, s.noise / 2, (3,))
        return jd.observables(recorded={"x": jd.named(x, "place")})

    assert_trial(trial, Walk(), run=False)


def test_silent_double_precision():
    """``jnp.linspace`` without a dtype, and draws in float64."""

    def trial(s, key):
        x = walk(s, key)
        return dataclasses.replace(x, recorded={"t": jd.named(jnp.linspace(0, 1, 3), "time")})

    for one in (trial, lambda s, key: walk(s, key, dtype="float64")):
        with pytest.raises(AssertionError, match="arrays of float64 arise where dtype=float32"):
            assert_trial(one, Walk(), run=False)
        assert_trial(one, Walk(), run=False, wide=True)
        assert_trial(one, Walk(dtype="float64"), run=False)


def test_what_is_returned():
    with pytest.raises(AssertionError, match="the trial does not return jd.observables"):
        assert_trial(lambda s, key: 1.0, Walk(), run=False)
    with pytest.raises(UsageError, match="name its axes"):
        assert_trial(lambda s, key: jd.observables(recorded={"x": jnp.zeros(3)}), Walk(), run=False)


def test_other_bits_for_the_same_key():
    count = itertools.count()

    def trial(s, key):
        late = jax.pure_callback(lambda: np.float32(next(count)), jax.ShapeDtypeStruct((), jnp.float32))
        return jd.observables(recorded={"x": jax.random.normal(key, (), s.dtype) + late})

    with pytest.raises(AssertionError, match="two runs of one key differ in .*x"):
        assert_trial(trial, Walk())


def test_a_batch_that_is_no_loop():
    """An estimate that looks at its neighbours in the batch."""

    @jax.custom_batching.custom_vmap
    def centred(x):
        return x

    @centred.def_vmap
    def rule(size, batched, x):
        return x - jnp.mean(x), True

    def trial(s, key):
        return jd.observables(recorded={"x": centred(jax.random.normal(key, (), s.dtype))})

    with pytest.raises(AssertionError, match="vmap and a loop differ by more than 0.01"):
        assert_trial(trial, Walk())


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"trial": None}, "trial=None is not allowed: it is a function"),
        ({"setting": Walk}, "setting=.* is not allowed: it is an instance of a class made by jd.setting"),
        ({"setting": {"rate": 1.0}}, "setting=.* is not allowed"),
        ({"seeds": [-1]}, "seeds=.* is not allowed"),
        ({"seeds": []}, "seeds=.* is not allowed"),
        ({"others": [3]}, "others=3 is not allowed: a further setting has the static fields of Walk"),
        ({"others": [Walk(steps=7)]}, "others=.* is not allowed"),
        ({"noise": ["speed"]}, "noise='speed' is not allowed: swept fields of Walk are rate, drift"),
        ({"rtol": float("nan")}, "rtol=nan is not allowed"),
        ({"rtol": "small"}, "rtol=small is not allowed"),
    ],
)
def test_odd_arguments_are_refused(given, message):
    arguments = {"trial": walk, "setting": Walk()} | given
    with pytest.raises(UsageError, match=message):
        assert_trial(arguments.pop("trial"), arguments.pop("setting"), **arguments)


def test_what_is_no_setting_has_no_strategy():
    for wrong in (None, int, Walk()):
        with pytest.raises(UsageError, match="is not allowed: it is a class made by jd.setting"):
            settings(wrong)
    with pytest.raises(UsageError, match="rate=-3.0 is not allowed: rate is above 0"):
        settings(Walk, rate=-3.0)


@given(settings(Walk))
@examples(deadline=None, max_examples=50)
def test_settings_are_drawn_in_their_ranges(one):
    assert one.rate > 0 and -1 <= one.drift <= 1 and one.rate + one.drift < 5 and one.noise == 1.0
    assert (one.steps, one.dtype, str(one.law) in ("normal", "uniform")) == (6, "float32", True)


@given(settings(Walk, steps=st.sampled_from([2, 3]), noise=0.5))
@examples(deadline=None, max_examples=10)
def test_further_fields_can_be_given(one):
    assert one.steps in (2, 3) and one.noise == 0.5


def test_other_fields_and_missing_libraries_are_refused(monkeypatch):
    with pytest.raises(UsageError, match="size is not allowed: fields of Walk are steps, rate"):
        settings(Walk, size=3)
    monkeypatch.setitem(__import__("sys").modules, "chex", None)
    with pytest.raises(UsageError, match=r"jaxdyn.testing needs the library chex: pip install 'jaxdyn\[testing\]'"):
        assert_trial(walk, Walk())
