"""The published numbers agree among themselves."""

import pytest

from jaxdyn.theories.galore import published


@pytest.mark.parametrize("method", published.MEMORY)
def test_totals_are_weights_and_states_to_their_digits(method):
    split = published.SPLIT[method]
    for total, weights, states in zip(published.MEMORY[method], split.weights, split.states, strict=True):
        assert abs(total - weights - states) <= 0.0151 + 0.005 * (total > 1)


def test_every_model_has_a_rank_and_every_row_all_models():
    assert set(published.MODELS) <= set(published.RANKS)
    rows = (*published.MEMORY.values(), *published.PERPLEXITY.values(), published.STEPS)
    assert all(len(row) == len(published.MODELS) for row in rows)
