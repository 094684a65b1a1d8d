"""Token Assorted: replaced traces, the coder and its codebook, and settings that are refused.

Sequences of every kind, what is generated after prompts and how it is scored; judges on made-up runs.
"""

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
from jaxdyn.data.traces import Forest
from jaxdyn.errors import Inconclusive, UsageError
from jaxdyn.nn import vq
from jaxdyn.theories.assort import model, published
from jaxdyn.theories.assort.autoencoder_capacity import Capacity, largest
from jaxdyn.theories.assort.hybrid import Hybrid
from jaxdyn.theories.assort.hybrid import trial as hybrid_trial
from jaxdyn.theories.assort.model import Coding, begun, fitted, pieces, problems, recode, restored
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
from jaxdyn.theories.assort.quantiser import brute
from jaxdyn.theories.assort.table_means import Tables, judge
from jaxdyn.theories.assort.table_means import trial as means_trial

# Replaced traces beside lists cut and joined by Python, opened again, and whole sequences.

FOREST = Forest(children=2, height=2)  # 14 names, 9 tokens a trace
TRACE = jnp.arange(9) % 14
RATE = 2
CODES = jnp.array([7, 3, 0, 5])
NONE = FOREST.special("none")


@pytest.mark.slow
@pytest.mark.parametrize("m", [0, 1, 2, 3, 5, 8, 9, 50])
def test_replaced_and_opened(m):
    row, length = model.replaced(FOREST, TRACE, CODES, m, RATE)
    k = min(m, 9) // RATE
    codes = [FOREST.text + int(c) for c in CODES[:k]]
    expected = [FOREST.special("begin latent"), *codes, FOREST.special("end latent"), *TRACE[RATE * k :].tolist()]
    assert int(length) == len(expected) == 2 + k + 9 - RATE * k
    assert row.tolist() == expected + [NONE] * (11 - len(expected))
    texts = jnp.zeros((8, RATE), jnp.int32).at[CODES].set(TRACE[:8].reshape(4, RATE))
    opened, size = model.opened(FOREST, row, length, texts)
    np.testing.assert_array_equal(opened, TRACE)
    assert int(size) == 9
    if k:
        assert (model.opened(FOREST, row, length, texts[::-1])[0] != TRACE).any()


@pytest.mark.parametrize(("delimited", "kept"), [(True, True), (False, True), (True, False)])
def test_sequences_end_with_the_solution(delimited, kept):
    prompt, target = jnp.full(FOREST.prompt, 4), jnp.int32(11)
    row, length = model.middle(FOREST, TRACE, CODES, 4, RATE, delimited, kept)
    whole = model.whole(FOREST, prompt, row, length, target)
    assert whole.tokens.shape == whole.due.shape == (model.longest(FOREST),)
    between = model.replaced(FOREST, TRACE, CODES, 4, RATE)[0][:9].tolist() if delimited else TRACE.tolist()
    between = between if kept else []
    said = [*between, FOREST.special("answer"), 11, FOREST.special("end")]
    assert whole.tokens[FOREST.prompt :].tolist()[: len(said)] == said
    np.testing.assert_array_equal(whole.tokens[: FOREST.prompt], prompt)
    np.testing.assert_array_equal(np.flatnonzero(whole.due), FOREST.prompt + np.arange(len(said)))


# The best set of codes, and settings that are refused.


def test_the_best_set_is_that_of_the_largest():
    np.testing.assert_allclose(largest(np.float32([0.2, 0.5, 0.3])), [0.5, 0.8, 1.0], rtol=1e-6)


@pytest.mark.parametrize("wrong", [{"vocabulary": 2}, {"distinct": 40.0}, {"codes": 40}])
def test_wrong_settings_of_capacity_are_refused(wrong):
    with pytest.raises(UsageError, match="not allowed"):
        Capacity(**wrong)


# Training of the autoencoder: chunks come from traces, codes say something, and settings are checked.

SMALL = Coding(height=2, codes=30, vq_steps=250.0)


def test_pieces_are_chunks_of_traces_of_their_prompts():
    chunk, prompt = jax.jit(lambda key: pieces(SMALL, key, 20))(jax.random.key(0))
    for (source, target), row in zip(np.asarray(chunk), np.asarray(prompt), strict=True):
        assert row[1 + source] == target  # with one child, the prompt lists it at its parent's place


def test_a_code_stands_for_a_sentence():
    s = Coding(sentences=True, rate=8, codes=16)
    f = s.forest()
    chunk, prompt = (np.asarray(x) for x in jax.jit(lambda key: pieces(s, key, 20))(jax.random.key(0)))
    assert f.trace == 32 and (chunk[:, 0] == f.word("take")).all() and (chunk[:, -1] == f.word(".")).all()
    np.testing.assert_array_equal(prompt[np.arange(20), 1 + chunk[:, 1]], chunk[:, 4])


@pytest.mark.parametrize("book", ["gradient", "averages"])
@pytest.mark.slow  # a verification runs the same trial, at its full size
def test_trained_codes_restore_what_untrained_ones_do_not(book):
    s = Coding(book=book, height=2, codes=30, vq_steps=250.0)
    key = jax.random.key(1)
    held = problems(s, jax.random.key(2), 64)
    shares = {}
    for name, coder in (("before", begun(s, jax.random.split(key)[0])), ("after", jax.jit(lambda k: fitted(s, k))(key))):
        codes = recode(s, coder, held.trace)
        assert codes.shape == (64, 2) and int(codes.max()) < 30
        shares[name] = float(restored(s, coder, held.trace, held.prompt, codes).mean())
    assert shares["after"] > 0.7 > 0.5 > shares["before"]


def test_equal_chunks_have_equal_codes():
    coder = jax.jit(lambda key: vq.init(SMALL.chunks(), key))(jax.random.key(0))
    codes = jax.jit(lambda coder: recode(SMALL, coder, jnp.array([[1, 2, 1, 2]])))(coder)
    assert int(codes[0, 0]) == int(codes[0, 1])


@pytest.mark.parametrize("wrong", [{"rate": 3}, {"codes": 0}, {"height": 0}])
def test_wrong_settings_of_the_coder_are_refused(wrong):
    with pytest.raises(UsageError, match="not allowed"):
        Coding(**wrong)


# Lengths and opened traces of the trial.


@pytest.mark.slow
def test_lengths_and_traces():
    ds = jd.sweep(hybrid_trial, jd.grid(Hybrid, replaced=[0.0, 5.0, 100.0], problems=3), 1)
    np.testing.assert_array_equal(ds.measured_length.isel(seed=0, problem=0), [23, 20, 8])
    np.testing.assert_array_equal(ds.measured_used.isel(seed=0, problem=0), [0, 1, 5])
    np.testing.assert_array_equal(ds.measured_trace, ds.predicted_trace)
    assert bool((ds.other.sel(replaced=100.0) != ds.predicted_trace.sel(replaced=100.0)).any())


@pytest.mark.parametrize("wrong", [{"rate": 22}, {"codes": 4}])
def test_wrong_settings_of_hybrids_are_refused(wrong):
    with pytest.raises(UsageError, match="not allowed"):
        Hybrid(**wrong)


# The quantiser's distances against SciPy's.


def test_distances_are_those_of_scipy():
    from scipy.spatial.distance import cdist

    x, y = np.random.default_rng(0).normal(size=(2, 5, 3))
    np.testing.assert_allclose(brute(x, y), cdist(x, y), rtol=1e-5)


# The averages of the published tables: which are the means of their cells, in plain numbers.

MEANS = {name: sum(cells) / len(published.SETS) for name, (cells, _) in published.AVERAGES.items()}


def test_the_corrected_rows_are_those_that_are_off():
    off = {name for name, (_, average) in published.AVERAGES.items() if abs(average - MEANS[name]) > 0.1}
    assert off == published.CORRECTED.keys() and all(len(cells) == 7 for cells, _ in published.AVERAGES.values())
    assert all(abs(value - MEANS[name]) < 0.05 + 1e-9 for name, value in published.CORRECTED.items())


def test_both_forms_and_the_judge():
    ds = jd.sweep(means_trial, jd.grid(Tables), 1)
    np.testing.assert_allclose(ds.measured_average.squeeze(), list(MEANS.values()), rtol=1e-12)
    printed, derived = (judge(ds.sel(form=form)) for form in ("printed", "derived"))
    assert [c.passed for c in printed] == [False, False] and [c.passed for c in derived] == [True, True]
    np.testing.assert_allclose([c.value for c in printed], [0.6, 2.994286], atol=1e-6)


ORDER_SMALL = {"height": 2, "codes": 12, "batch": 32, "steps": 20, "width": 8, "heads": 1, "hidden": 8}


@functools.cache
def batch(kind: str, step: int = 19) -> tuple[np.ndarray, np.ndarray]:
    """A batch late in training."""
    s = Assorted(kind=kind, **ORDER_SMALL)
    drawn = sequences(s, begun(s, jax.random.key(0)), jnp.int32(step), jax.random.key(5))
    return np.asarray(drawn.tokens), np.asarray(drawn.due)


def said(kind: str, step: int = 19) -> list[list[int]]:
    """What is to be predicted."""
    return [row[mask].tolist() for row, mask in zip(*batch(kind, step), strict=True)]


@pytest.mark.slow  # a verification runs the same trial, at its full size
def test_kinds_share_their_problems_and_differ_in_the_middle():
    s = Assorted(**ORDER_SMALL)
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
    f = Assorted(**ORDER_SMALL).forest()
    assert [set(count(said("curriculum", i), f)) for i in (0, 6, 12, 19)] == [{0}, {1}, {2}, {2}]
    drawn = count(said("random"), f)
    assert set(drawn) == {0, 1, 2} and drawn == count(said("permuted"), f)
    assert said("random") != said("permuted")


@pytest.mark.slow
def test_what_is_generated_starts_with_the_prompt_and_is_greedy():
    s = Assorted(**ORDER_SMALL)
    net = nn.network(s.decoder())
    params = jax.jit(net.init)(jax.random.key(0))
    prompt = np.asarray(jax.jit(lambda key: problems(s, key, 3).prompt)(jax.random.key(1)))
    tokens = np.asarray(jax.jit(lambda p: generate(s, net, p, prompt))(params))
    np.testing.assert_array_equal(tokens[:, : prompt.shape[1]], prompt)
    best = np.argmax(jax.jit(net.apply)(params, tokens), -1)
    np.testing.assert_array_equal(tokens[:, prompt.shape[1] :], best[:, prompt.shape[1] - 1 : -1])


def test_score():
    s = Assorted(**ORDER_SMALL)
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
    fields = ORDER_SMALL | {"steps": 120, "width": 16, "batch": 16}
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
    for judged in (judge_order, judge_used):
        assert [c.passed for c in judged(bad)[:2]] == [True, False]


def test_all_kinds_are_needed():
    with pytest.raises(Inconclusive, match="random"):
        judge_order(made_up().drop_sel(kind="random"))


def test_the_figure_has_three_panels():
    fig = Figure()
    plot(made_up(), fig)
    assert len(fig.axes) == 3
