"""Published perplexities against what the paper says of them."""

import pytest

from jaxdyn.theories.stream import published


def test_first_tokens_and_recomputation_agree_and_windows_break():
    assert published.FIGURE_1["4 sinks"] == pytest.approx(published.FIGURE_1["recomputed"], rel=0.01)
    assert min(published.FIGURE_1["dense"], published.FIGURE_1["window"]) > 900 * published.FIGURE_1["recomputed"]
    assert published.LINEBREAK["replaced"] < 1.05 * published.LINEBREAK["4 sinks"], "position, not content"


def test_four_sinks_are_enough():
    for model, row in published.FOUR_HUNDRED_K.items():
        assert row["4 sinks"] == pytest.approx(row["8 sinks"], rel=0.01), model
        assert row["window"] > 1.4 * row["4 sinks"]


def test_one_slot_is_enough_with_a_sink_token_only():
    rows = published.PRETRAINED
    assert rows["sink token"]["1 sink"] == pytest.approx(rows["sink token"]["4 sinks"], rel=1e-3)
    assert all(rows[name]["1 sink"] > 1.02 * rows[name]["4 sinks"] for name in ("vanilla", "zero sink"))


def test_columns_go_with_networks():
    assert set(published.columns("vanilla")) == {"160M", "Llama-2-13B", "Llama-2-7B"}
    assert published.columns("sink token") == {"160M": published.PRETRAINED["sink token"]}
