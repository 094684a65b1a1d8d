"""Parameters are found, cast and stacked; each is placed once, under its own path."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from jaxdyn.errors import UsageError
from jaxdyn.models.archive import Archive, Entry
from jaxdyn.models.families import FAMILIES
from jaxdyn.models.reading import located, parameters
from jaxdyn.models.tensor_slice import inserted, sizes
from tests.models.small import SHAPE

LLAMA = FAMILIES["llama"]


def archive(**more):
    """The tensors of a llama, each full of a number of its own; and those numbers."""
    values = {}
    for path, size in sizes(SHAPE).items():
        for layer in range(SHAPE.layers if path.startswith("blocks/") else 1):
            at = LLAMA.slices(SHAPE)[path]
            tensor = np.zeros(at.size, np.float64)
            inserted(at, tensor, np.full(size, len(values) + 0.1))
            values[at.name.replace("{i}", str(layer))] = tensor
    values |= more
    entries = {name: Entry(Path("model"), x.shape, "F64") for name, x in values.items()}
    return Archive(Path("model"), entries, values.__getitem__, ()), values


def test_layers_are_stacked_and_cast():
    found, values = archive()
    placed = {}
    params = parameters(SHAPE, located(SHAPE, LLAMA, found), found, lambda path, x: placed.setdefault(path, x))
    assert set(placed) == set(sizes(SHAPE)) and set(params) == {"embed", "blocks", "norm", "head"}
    gate = params["blocks"]["gate"]
    assert gate.dtype == np.float32 and gate.shape == (2, 12, 10)
    np.testing.assert_allclose(gate[:, 0, 0], [values[f"model.layers.{i}.mlp.gate_proj.weight"][0, 0] for i in (0, 1)])
    assert params["norm"].shape == (12,)


def test_buffers_pass_and_other_tensors_are_refused():
    buffer = {"model.layers.0.self_attn.rotary_emb.inv_freq": np.ones(2)}
    assert located(SHAPE, LLAMA, archive(**buffer)[0])
    with pytest.raises(UsageError, match="model: the model's configuration has no place for the tensor more and 1 others"):
        located(SHAPE, LLAMA, archive(more=np.ones(2), others=np.ones(2))[0])


@pytest.mark.parametrize(
    ("kind", "dtype", "fits", "large"),
    [("float64", "float32", 3.4e38, 1e39), ("float64", "bfloat16", 3e38, 3.4e38), ("float32", "bfloat16", 3e38, 3.4e38)],
)
def test_numbers_that_the_cast_makes_infinite_are_refused(kind, dtype, fits, large):
    """They are finite in the file; the neighbouring tensor's name would be wrong."""
    shape, name = dataclasses.replace(SHAPE, dtype=dtype), "model.layers.1.mlp.gate_proj.weight"
    found, values = archive()
    for number in (fits, -large):
        values[name] = values[name].astype(kind)
        values[name][3, 4] = number
        if number == fits:
            gate = parameters(shape, located(shape, LLAMA, found), found, lambda path, x: x)["blocks"]["gate"]
            assert gate[1, 4, 3] == np.asarray(fits, gate.dtype)
            continue
        with pytest.raises(UsageError, match=f"tensor {name} has numbers that are too large for {dtype}: choose another"):
            parameters(shape, located(shape, LLAMA, found), found, lambda path, x: x)
