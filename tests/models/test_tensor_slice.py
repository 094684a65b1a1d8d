"""Pieces of tensors: what is put in comes out, for every family and every way of sharing a tensor."""

import dataclasses
import math

import numpy as np
import pytest

from jaxdyn.models.families import FAMILIES
from jaxdyn.models.tensor_slice import TensorSlice, extracted, inserted, sizes
from jaxdyn.nn import Transformer

LAYER = {"norm": "layer", "mlp": "plain", "biases": ("q", "k", "v", "o", "up", "down")}
PLAIN = Transformer(vocabulary=7, width=12, layers=2, heads=3, hidden=5)
SHAPES = {
    "llama": dataclasses.replace(PLAIN, groups=1, head_size=6, biases=("q", "gate")),
    "qwen2": dataclasses.replace(PLAIN, tied=True, biases=("q", "k", "v")),
    "gpt_neox": dataclasses.replace(PLAIN, **LAYER),
    "gpt2": dataclasses.replace(PLAIN, position="learned", length=4, tied=True, **LAYER),
    "opt": dataclasses.replace(PLAIN, position="learned", length=4, **LAYER),
}


@pytest.mark.parametrize("name", SHAPES)
def test_what_is_put_in_comes_out(name):
    shape, rng = SHAPES[name], np.random.default_rng(0)
    slices, own, files = FAMILIES[name].slices(shape), sizes(shape), {}
    assert set(slices) == set(own), "every parameter has its place"
    values = {path: rng.normal(size=size) for path, size in own.items()}
    for path, value in values.items():
        tensor = files.setdefault(slices[path].name, np.full(slices[path].size, np.nan))
        inserted(slices[path], tensor, value)
    for path, value in values.items():
        np.testing.assert_array_equal(extracted(slices[path], files[slices[path].name], value.shape), value)
    unused = {name: int(np.isnan(x).sum()) for name, x in files.items()}
    assert sum(unused.values()) == (2 * 12 if name == "opt" else 0), "but for two positions of OPT nothing is left over"
    assert sum(map(np.size, values.values())) == sum(math.prod(x.shape) for x in files.values()) - sum(unused.values())


def test_queries_keys_and_values_of_neox_stand_head_by_head():
    slices = FAMILIES["gpt_neox"].slices(SHAPES["gpt_neox"])
    fused = np.arange(36.0)[:, None] * np.ones(12)
    q, k = (extracted(slices[f"blocks/{name}"], fused, (12, 12))[0] for name in "qk")
    np.testing.assert_array_equal(q, [*range(4), *range(12, 16), *range(24, 28)])
    np.testing.assert_array_equal(k, q + 4)


def test_a_turned_matrix_is_transposed():
    x = np.arange(6).reshape(3, 2)
    np.testing.assert_array_equal(extracted(TensorSlice("w", (3, 2), transposed=True), x, (2, 3)), x.T)
