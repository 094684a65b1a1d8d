"""Token Assorted: replaced traces, the coder and its codebook, and settings that are refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.data.traces import Forest
from jaxdyn.errors import UsageError
from jaxdyn.nn import vq
from jaxdyn.theories.assort import model, published
from jaxdyn.theories.assort.capacity import Capacity, largest
from jaxdyn.theories.assort.coder import Coding, begun, fitted, pieces, problems, recode, restored
from jaxdyn.theories.assort.hybrid import Hybrid
from jaxdyn.theories.assort.hybrid import trial as hybrid_trial
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
