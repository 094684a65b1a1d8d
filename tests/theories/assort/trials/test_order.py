"""Sequences of every kind, what is generated after prompts, and how it is scored."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn import nn
from jaxdyn.errors import UsageError
from jaxdyn.theories.assort.coder import begun, problems, recode
from jaxdyn.theories.assort.trials.order import KINDS, Assorted, generate, score, sequences, trial

SMALL = {"height": 2, "codes": 12, "batch": 32, "steps": 20, "width": 8, "heads": 1, "hidden": 8}


@functools.cache
def batch(kind: str, step: int = 19) -> tuple[np.ndarray, np.ndarray]:
    """A batch late in training."""
    s = Assorted(kind=kind, **SMALL)
    drawn = sequences(s, begun(s, jax.random.key(0)), jnp.int32(step), jax.random.key(5))
    return np.asarray(drawn.tokens), np.asarray(drawn.due)


def said(kind: str, step: int = 19) -> list[list[int]]:
    """What is to be predicted."""
    return [row[mask].tolist() for row, mask in zip(*batch(kind, step), strict=True)]


@pytest.mark.slow  # a verification runs the same trial, at its full size
def test_kinds_share_their_problems_and_differ_in_the_middle():
    s = Assorted(**SMALL)
    f = s.forest()
    text = said("text")
    for kind in KINDS:
        tokens, _ = batch(kind)
        np.testing.assert_array_equal(tokens[:, : f.prompt], batch("text")[0][:, : f.prompt])
        assert all(a[-3:] == b[-3:] for a, b in zip(said(kind), text, strict=True))
    assert all(len(row) == f.trace + 3 for row in text) and all(len(row) == 3 for row in said("solution"))
    coder = begun(s, jax.random.key(0))
    for row, plain in zip(said("all"), text, strict=True):
        codes = recode(s, coder, jnp.asarray(plain[: f.trace]))
        assert row[1:3] == (f.text + codes).tolist() and len(row) == 2 + 2 + 3


@pytest.mark.slow
def test_the_curriculum_grows_and_random_parts_vary():
    count = lambda rows, f: [sum(t >= f.text for t in row) for row in rows]  # noqa: E731
    f = Assorted(**SMALL).forest()
    assert [set(count(said("curriculum", i), f)) for i in (0, 6, 12, 19)] == [{0}, {1}, {2}, {2}]
    drawn = count(said("random"), f)
    assert set(drawn) == {0, 1, 2} and drawn == count(said("permuted"), f)
    assert said("random") != said("permuted")


def test_what_is_generated_starts_with_the_prompt_and_is_greedy():
    s = Assorted(**SMALL)
    net = nn.decoder(s.decoder())
    params = jax.jit(net.init)(jax.random.key(0))
    prompt = np.asarray(jax.jit(lambda key: problems(s, key, 3).prompt)(jax.random.key(1)))
    tokens = np.asarray(jax.jit(lambda p: generate(s, net, p, prompt))(params))
    np.testing.assert_array_equal(tokens[:, : prompt.shape[1]], prompt)
    best = np.argmax(jax.jit(net.apply)(params, tokens), -1)
    np.testing.assert_array_equal(tokens[:, prompt.shape[1] :], best[:, prompt.shape[1] - 1 : -1])


def test_score():
    s = Assorted(**SMALL)
    f = s.forest()
    answer, end, none = (f.special(name) for name in ("answer", "end", "none"))
    rest = [
        [f.text, f.text + 1, answer, 4, end, none, f.text, f.text, f.text],  # right, two codes
        [1, 2, answer, 3, end, none, none, none, none],  # wrong
        [4] * 9,  # neither solves nor ends
    ]
    tokens = jnp.concatenate([jnp.zeros((3, f.prompt), jnp.int32), jnp.asarray(rest)], 1)
    seen = score(s, tokens, jnp.array([4, 4, 4]))
    assert float(seen["accuracy"]) == pytest.approx(1 / 3)
    assert float(seen["length"]) == pytest.approx((5 + 5 + 9) / 3)
    assert float(seen["used"]) == pytest.approx(2 / 3)


@pytest.mark.slow  # a verification runs the same trial, at its full size
def test_a_short_run_learns_the_form_of_text():
    fields = SMALL | {"steps": 120, "width": 16, "batch": 16}
    ds = jd.sweep(trial, jd.grid(Assorted, kind=["solution", "text"], lr=1e-2, vq_steps=2.0, **fields), 1)
    assert int(ds.status.max()) == 0 and ds.sizes["step"] == 2
    np.testing.assert_allclose(ds.measured_length.isel(step=-1, seed=0), [3, 7])
    assert float(ds.measured_used.isel(step=-1).max()) == 0
    np.testing.assert_array_equal(ds.steps.isel(kind=0, seed=0), [0, 120])


@pytest.mark.parametrize(
    "wrong", [{"lr": 0.0}, {"ramp": 1.0}, {"batch": 0}, {"steps": 9}, {"samples": 7}, {"heads": 3}, {"rate": 3}]
)
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(UsageError, match="not allowed"):
        Assorted(**wrong)
