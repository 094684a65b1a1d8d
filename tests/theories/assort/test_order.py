"""Sequences of every kind, what is generated after prompts and how it is scored; judges on made-up runs."""

import functools

import jax
import jax.numpy as jnp
import matplotlib
import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import nn
from jaxdyn.errors import Inconclusive, UsageError
from jaxdyn.theories.assort.coder import begun, problems, recode
from jaxdyn.theories.assort.order import (
    EMPTY,
    KINDS,
    LABELS,
    SAVED,
    SURE,
    WRITTEN,
    Assorted,
    generate,
    judge_order,
    judge_used,
    kinds_as,
    plot,
    right,
    score,
    sequences,
    trial,
)

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


@pytest.mark.slow
def test_what_is_generated_starts_with_the_prompt_and_is_greedy():
    s = Assorted(**SMALL)
    net = nn.network(s.decoder())
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


@pytest.mark.parametrize("wrong", [{"steps": 9}, {"samples": 7}, {"heads": 3}, {"rate": 3}])
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(UsageError, match="not allowed"):
        Assorted(**wrong)


matplotlib.use("Agg")
SHARES = {"solution": 0.5, "text": 0.95, "all": 0.75, "curriculum": 0.625, "random": 0.875, "permuted": 0.9375}
USED = {"solution": 0.0, "text": 0.0, "all": 4.0, "curriculum": 4.0, "random": 2.0, "permuted": 0.0}


def made_up() -> xr.Dataset:
    """Three runs of each kind, 128 problems."""
    share = np.array([[SHARES[k] + d for d in (-1 / 64, 0, 1 / 64)] for k in KINDS])
    used = np.array([[USED[k]] * 3 for k in KINDS]) + [0, 0.01, -0.01] * np.array([[USED[k] > 0] for k in KINDS])
    both = np.stack([np.zeros_like(share), share / 2, share], -1)
    dims = ("kind", "seed", "step")
    data = {
        "measured_accuracy": (dims, both),
        "measured_used": (dims, np.stack([used] * 3, -1)),
        "measured_length": (dims, np.stack([13 - used] * 3, -1)),
        "asked": (("kind", "seed"), np.full((6, 3), 128.0)),
        "restored": (("kind", "seed"), np.full((6, 3), 0.95)),
        "status": (("kind", "seed"), np.zeros((6, 3), int)),
    }
    return xr.Dataset(data, {"kind": list(KINDS), "seed": range(3)})


def test_the_share_is_a_mean_over_runs():
    value, (low, high) = right(made_up(), "all")
    half = 4.3027 / 64 / 3**0.5  # Student's t with two degrees of freedom
    assert value == pytest.approx(0.75) and (low, high) == pytest.approx((0.75 - half, 0.75 + half), abs=1e-5)


def test_judges_read_the_end_and_the_course():
    checks = {c.name: c for c in judge_order(made_up())}
    assert checks["right solutions with the trace as text, mean over runs"].passed
    for kind in ("text", "all", "curriculum", "permuted"):
        gap = SHARES["random"] - SHARES[kind]
        assert checks[f"at the end, random m minus {LABELS[kind]}"].value == pytest.approx(gap)
        assert checks[f"along training, random m minus {LABELS[kind]}"].value == pytest.approx(0.75 * gap)  # half, then all of it
    for kind in ("solution", "curriculum", "random", "permuted"):
        assert checks[f"right solutions, {LABELS[kind]}"].value == pytest.approx(SHARES[kind])
    assert checks[SURE.format(LABELS["text"])].value == pytest.approx(2 / 3) and checks[SURE.format(LABELS["all"])].value == 0
    used = {c.name: c.value for c in judge_used(made_up())}
    assert used[WRITTEN] == pytest.approx(2) and used[EMPTY] == 0 and used[SAVED] == pytest.approx(2)


def test_kinds_take_the_values_of_others():
    ds = made_up()
    other = kinds_as("measured_accuracy", text="solution", solution="text", all=0.25)(ds)
    for kind, of in (("text", "solution"), ("solution", "text"), ("random", "random")):
        np.testing.assert_array_equal(other.measured_accuracy.sel(kind=kind), ds.measured_accuracy.sel(kind=of))
    assert float(other.measured_accuracy.sel(kind="all").max()) == 0.25
    np.testing.assert_array_equal(other.measured_used, ds.measured_used)


def test_a_network_that_learned_nothing_fails_the_gate():
    bad = made_up()
    bad["measured_accuracy"] = bad.measured_accuracy * 0.5
    assert [c.passed for c in judge_order(bad)[:2]] == [False, True]  # the gates


def test_codes_that_say_little_fail_the_gate():
    bad = made_up()
    bad["restored"] = bad.restored * 0.8
    for judge in (judge_order, judge_used):
        assert [c.passed for c in judge(bad)[:2]] == [True, False]


def test_all_kinds_are_needed():
    with pytest.raises(Inconclusive, match="random"):
        judge_order(made_up().drop_sel(kind="random"))


def test_the_figure_has_three_panels():
    fig = Figure()
    plot(made_up(), fig)
    assert len(fig.axes) == 3
