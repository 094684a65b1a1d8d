"""Where each of our parameters stands in a checkpoint: a tensor's name and size, and which part of it is ours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Shaped

from jaxdyn.nn import Transformer
from jaxdyn.nn.transformer import init

__all__ = ["TensorSlice", "extracted", "inserted", "sizes"]


class TensorSlice(NamedTuple):
    """A part of a tensor.

    Args:
        name: of the tensor in the file; ``{i}`` stands for the layer.
        size: of the tensor in the file.
        view: its axes taken apart, where several parameters share it; () as they are.
        part: what of the view is ours, an index.
        transposed: whether a matrix is (output, input) in the file; ours are (input, output).
    """

    name: str
    size: tuple[int, ...]
    view: tuple[int, ...] = ()
    part: tuple[Any, ...] = ()
    transposed: bool = False


def extracted(at: TensorSlice, tensor: Shaped[np.ndarray, "..."], size: tuple[int, ...]) -> Shaped[np.ndarray, "..."]:
    """The parameter, of this size, in the tensor."""
    part = tensor.reshape(at.view or at.size)[at.part]
    return part.reshape(size[::-1]).T if at.transposed else part.reshape(size)


def inserted(at: TensorSlice, tensor: Shaped[np.ndarray, "..."], value: Shaped[np.ndarray, "..."]) -> None:
    """Write the parameter into its part of the tensor; the inverse of :func:`extracted`."""
    view = tensor.reshape(at.view or at.size)
    part = view[at.part]
    part[...] = (value.T if at.transposed else value).reshape(part.shape)


def sizes(shape: Transformer) -> Mapping[str, tuple[int, ...]]:
    """The size of each parameter by its path, ``blocks/q``; those of blocks without the axis of layers."""
    leaves = jax.tree_util.tree_leaves_with_path(jax.eval_shape(lambda: init(shape, jax.random.key(0))))
    named = {"/".join(step.key for step in path): leaf.shape for path, leaf in leaves}
    return {name: size[1:] if name.startswith("blocks/") else size for name, size in named.items()}
