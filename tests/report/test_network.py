"""The page of the transformer: every field with its kinds, and a picture of any block."""

import dataclasses

import pytest
from matplotlib.figure import Figure

from jaxdyn import nn
from jaxdyn.errors import UsageError
from jaxdyn.report import network

ALONE = dataclasses.replace(network.SHAPE, mlp="none", hidden=None, window=3, output_gate=True)


def test_the_table_has_every_field_with_its_kinds_and_default():
    rows = network.table().splitlines()[2:]
    assert [row.split("`")[1] for row in rows] == [field.name for field in dataclasses.fields(nn.Transformer)]
    assert all(len(row.split(" | ")) == 4 and row.split(" | ")[3].strip(" |") for row in rows)
    by_name = {row.split("`")[1]: row for row in rows}
    assert all(kind in by_name["attention"] for kind in nn.KINDS) and "`softmax`" in by_name["attention"]
    assert "arXiv:2505.06708" in by_name["output_gate"] and "traced" in by_name["residual"]
    with pytest.raises(UsageError, match="lacks the marks"):
        network.with_table("nothing")
    page = network.with_table("a\n<!-- fields: x -->\nold\n<!-- end of fields -->\nb")
    assert "old" not in page and page.endswith("<!-- end of fields -->\nb") and network.table() in page


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        (network.SHAPE, ["rms norm", "rms norm", "q, k, v: 4 heads, 2 of keys; rotary", "silu(gate) times up, 128 units"]),
        (nn.encoder_lm(9, width=8), ["layer norm", "layer norm", "q, k, v: one head", "up, relu, 200 units", "output matrix"]),
        (dataclasses.replace(network.SHAPE, parallel=True, residual=0.5), ["1 x + 0.5 …", "1 x + 0.5 …"]),
        (ALONE, ["gate", "softmax attention to the last 3"]),
    ],
)
def test_a_block_is_drawn_with_the_parts_that_it_has(shape, words):
    fig = Figure()
    network.draw(shape, fig)
    drawn = [text.get_text() for text in fig.axes[0].texts]
    for word in words:
        assert drawn.count(word) >= words.count(word), (word, drawn)
    assert ("down" in drawn) == (shape.mlp != "none")


def test_the_picture_is_the_same_every_time():
    assert network.figure() == network.figure() and "<svg" in network.figure()[:100]
