"""Steps of a series from its names: tables written by hand, and names made from templates whose numbers are known."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxdyn.errors import UsageError
from jaxdyn.models.series import given_steps, steps_of


@pytest.mark.parametrize(
    ("names", "steps"),
    [
        (["step100-bf16", "step20-bf16"], [100, 20]),
        (["checkpoint-500-v2", "checkpoint-1000-v2"], [500, 1000]),
        (["step10-seed1", "step2-seed1"], [10, 2]),
        (["step1000-160m", "step512-160m"], [1000, 512]),
        (["step1e3", "step500", "step2e+03"], [1000, 500, 2000]),
        (["step10k", "step1.5k", "step1M", "step2K", "step900"], [10_000, 1500, 1_000_000, 2000, 900]),
        (["4B", "10B"], [4 * 10**9, 10**10]),
        (["step00010", "step00200", "step9"], [10, 200, 9]),
        (["run3/step8/model.gguf", "run3/step16/model.gguf"], [8, 16]),
        (["org/net-step1", "org/net-step0"], [1, 0]),
        (["step1e3f", "step2e3f"], [1, 2]),  # e3f is a word
        (["step100bf16", "step200bf16"], [100, 200]),
        (["v1.5-step3", "v1.5-step4"], [3, 4]),
        (["base", "chat"], [0, 1]),
    ],
)
def test_the_number_that_varies_is_the_step(names, steps):
    assert steps_of(names) == steps


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (
            ["step1-seed1", "step2-seed2"],
            "step2-seed2 are not allowed as a series without steps: they differ in several",
        ),
        (["step1-seed1", "step1-seed2", "step2-seed1"], "they differ in several numbers; --steps (steps= in Python) gives them"),
        (["a/step1", "b/step2"], "they differ in more than a number"),
        (["step100", "final"], "step100, final are not allowed as a series without steps: they differ in more than a number"),
        (["step10", "step010"], "they hold the same numbers"),
        (["step1e3", "step1000", "step1k"], "they hold the same numbers"),
        (["step5", "step05", "step6"], "they hold the same number more than once"),
        (["epoch0.5", "epoch1"], "they differ in a number that is not whole"),
        (["step-1", "step1"], "they differ in more than a number"),
        (["step1", "step1"], "step1 is not allowed twice in a series"),
        (["chat", "chat"], "chat is not allowed twice in a series"),
        ([f"step{i}-{i}" for i in range(9)], "step5-5, … are not allowed"),
    ],
)
def test_names_that_leave_the_order_open_are_refused(names, words):
    with pytest.raises(UsageError) as error:
        steps_of(names)
    assert words in str(error.value) and "\n" not in str(error.value)


WORDS = st.text("abcdxyz", min_size=1, max_size=4)
SEPARATORS = st.sampled_from(["-", "_", "/", "."])
SPELLINGS = {
    "plain": str,
    "padded": lambda n: f"{n:012d}",
    "thousands": lambda n: f"{n // 1000}.{n % 1000:03d}k",
    "power": lambda n: f"{n}e0",
}


@settings(deadline=None, max_examples=200)
@given(
    st.lists(st.integers(0, 10**9), min_size=2, max_size=6, unique=True),
    st.lists(st.tuples(WORDS, SEPARATORS, st.integers(0, 999)), max_size=3),
    st.lists(st.tuples(WORDS, SEPARATORS, st.integers(0, 999)), max_size=3),
    WORDS,
    st.lists(st.sampled_from(sorted(SPELLINGS)), min_size=6, max_size=6),
    st.data(),
)
def test_names_from_a_template(steps, before, after, word, spellings, data):
    """Words with numbers around the step: however it is spelt, it is found; a second number that varies is refused."""
    left = "".join(f"{text}{number}{mark}" for text, mark, number in before)
    right = "".join(f"_{text}{mark}{number}" for text, mark, number in after)
    spelt = [SPELLINGS[how](n) for how, n in zip(spellings, steps, strict=False)]
    names = [f"{left}{word}-{n}{right}" for n in spelt]
    assert steps_of(names) == steps
    others = data.draw(st.lists(st.integers(0, 999), min_size=len(steps), max_size=len(steps)))
    both = [f"{name}_of{other}" for name, other in zip(names, others, strict=True)]
    if len(set(others)) == 1:
        assert steps_of(both) == steps
    else:
        with pytest.raises(UsageError, match="they differ in several numbers"):
            steps_of(both)


def test_steps_that_are_given():
    for steps in ([3, 1], (3, 1), "3,1", " 3, 1", np.asarray([3, 1]), range(3, 0, -2)):
        assert given_steps(steps, 2) == [3, 1]


@pytest.mark.parametrize(
    ("steps", "count", "words"),
    [
        ("1,x", 2, "steps=1,x is not allowed: steps are whole numbers with commas between them"),
        ("1,", 2, "steps are whole numbers with commas"),
        ("-1,2", 2, "steps are whole numbers with commas"),
        ([1, 2.0], 2, "an entry of steps=2.0 is not allowed: an entry of steps is a whole number"),
        ([1, True], 2, "an entry of steps=True is not allowed"),
        ([1, -2], 2, "an entry of steps=-2 is not allowed"),
        (5, 2, "steps=5 is not allowed: steps are a list of whole numbers"),
        ({1, 2}, 2, "steps are a list of whole numbers"),
        (np.ones((2, 2), int), 2, "steps are a list of whole numbers"),
        ([1, 2], 3, "each of two or more models has its own, and there is a series of 3 models"),
        ([2, 2], 2, "steps=[2, 2] is not allowed: each of two or more models has its own"),
        ([2], 1, "and there is 1 model"),
    ],
)
def test_steps_that_are_refused(steps, count, words):
    with pytest.raises(UsageError) as error:
        given_steps(steps, count)
    assert words in str(error.value)
