r"""Bytes of a method's training state, from shapes alone: weights, moments, bases, factors; equal to those of the real arrays.

With lo and hi the smaller and larger side of a matrix W (m, n) and rank r, its entries are

================  =============  =============  =========  ====================
method            weights        moments        bases      total
================  =============  =============  =========  ====================
full              mn             2mn            0          3mn
low_rank          (m + n) r      2 (m + n) r    0          3 (m + n) r
lora              mn + (m + n) r 2 (m + n) r    0          mn + 3 (m + n) r
galore, short     mn             2 hi r         lo r       mn + lo r + 2 hi r
galore, long      mn             2 lo r         hi r       mn + hi r + 2 lo r
================  =============  =============  =========  ====================

Source: arXiv:2403.03507, table 1 (for m ≤ n, short side). All other parameters have full Adam states.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import PyTree

from jaxdyn.errors import require, whole
from jaxdyn.optim.axes import Dims, Matrix, hidden_matrices, matrix_shape, place, specs
from jaxdyn.optim.blocks import BLOCK, SMALL
from jaxdyn.optim.subspace import SIDES, Subspace, low_shape, sides
from jaxdyn.optim.trees import check_dtype

__all__ = ["METHODS", "Bytes", "MemoryLayout", "Row", "Table", "account", "compiled_bytes", "estimate", "listing", "nbytes"]

METHODS = ("full", "low_rank", "lora", "galore")


class Bytes(NamedTuple):
    """Bytes of a training state; ``counters`` are the numbers of steps made."""

    weights: int
    moments: int
    bases: int
    counters: int

    @property
    def states(self) -> int:
        """The optimizer's state: moments and bases."""
        return self.moments + self.bases

    @property
    def total(self) -> int:
        """All bytes."""
        return sum(self)


@dataclasses.dataclass(frozen=True, kw_only=True)
class MemoryLayout:
    """A method and how it stores its numbers.

    Args:
        method: one of :data:`METHODS`; the factors of ``lora`` and ``low_rank`` count as weights.
        rank: of bases and factors.
        side: GaLore's, see :class:`jaxdyn.optim.subspace.Subspace`.
        moments: dtype of Adam's moments; None: each parameter's own; "8bit": blocks of one byte per number.
        bases: dtype of bases; None: each parameter's own.
    """

    method: str = "galore"
    rank: int = 128
    side: str = "short"
    moments: str | None = None
    bases: str | None = None

    def __post_init__(self) -> None:
        require(self, self.method in METHODS, f"method is one of {', '.join(METHODS)}", "method")
        require(self, self.side in SIDES, f"side is one of {', '.join(SIDES)}", "side")
        object.__setattr__(self, "rank", whole("rank", self.rank, least=1))
        check_dtype("moments", None if self.moments == "8bit" else self.moments)
        check_dtype("bases", self.bases)


def estimate(params: PyTree, layout: MemoryLayout, dims: Dims = hidden_matrices) -> Bytes:
    """Bytes of the training state of parameters, arrays or their shapes (``jax.eval_shape``); nothing is allocated.

    Counters are Adam's and, for all methods but full, the method's own.
    """
    own = 0 if layout.method == "full" else 4
    total = Bytes(0, 0, 0, 4 + own)
    for spec, x in zip(specs(dims, params), jax.tree.leaves(params), strict=True):
        weights = x.size * x.dtype.itemsize
        leaf = (weights, _moments(layout, x.size, x.dtype), 0) if spec is None else _matrix(layout, spec, x)
        total = Bytes(*(a + b for a, b in zip(total, (*leaf, 0), strict=True)))
    return total


def _matrix(layout: MemoryLayout, spec: Matrix, x: Any) -> tuple[int, int, int]:
    """Bytes of weights, moments and bases of one parameter of matrices."""
    *batch, m, n = matrix_shape(spec, x.shape)
    count, r, size = math.prod(batch), min(layout.rank, m, n), x.dtype.itemsize
    if layout.method == "full":
        return x.size * size, _moments(layout, x.size, x.dtype), 0
    if layout.method == "galore":
        s = Subspace(rank=layout.rank, side=layout.side)
        bases = count * r * sum(length for length, on in zip((m, n), sides(s, m, n), strict=True) if on)
        low = count * math.prod(low_shape(s, (m, n)))
        return x.size * size, _moments(layout, low, x.dtype), bases * jnp.dtype(layout.bases or x.dtype).itemsize
    factors = (count * m * r, count * n * r)
    weights = (x.size if layout.method == "lora" else 0) + sum(factors)
    return weights * size, sum(_moments(layout, f, x.dtype) for f in factors), 0


def _moments(layout: MemoryLayout, size: int, dtype: Any) -> int:
    """Bytes of two moments with that many numbers each."""
    if layout.moments == "8bit":
        return 2 * (size + 4 * -(-size // BLOCK) if size >= SMALL else 4 * size)
    return 2 * size * jnp.dtype(layout.moments or dtype).itemsize


class Row(NamedTuple):
    """One parameter: its name and shape, the shape [*batch, m, n] of its matrices (None: not chosen), and bytes of states."""

    name: str
    shape: tuple[int, ...]
    matrices: tuple[int, ...] | None
    full: int
    states: int

    @property
    def saved(self) -> int:
        """Bytes that the method saves of full Adam's states; what its factors add is counted."""
        return self.full - self.states


class Table(tuple[Row, ...]):
    """A row for each parameter; printed with bytes saved."""

    @property
    def chosen(self) -> tuple[Row, ...]:
        """The parameters that the method projects or factorises."""
        return tuple(row for row in self if row.matrices is not None)

    @property
    def useless(self) -> tuple[Row, ...]:
        """Those of them from which nothing is saved."""
        return tuple(row for row in self.chosen if row.saved <= 0)

    def __str__(self) -> str:
        """The table."""
        lines = [("parameter", "shape", "matrices", "Adam's bytes", "bytes", "saved")]
        for row in self:
            *batch, m, n = row.matrices or (0, 0)
            count = math.prod(batch)
            held = "-" if row.matrices is None else f"{m} x {n}" if count == 1 else f"{count} of {m} x {n}"
            lines.append((row.name, str(list(row.shape)), held, f"{row.full:,}", f"{row.states:,}", f"{row.saved:,}"))
        full, states = sum(row.full for row in self), sum(row.states for row in self)
        lines.append((f"{len(self.chosen)} of {len(self)} chosen", "", "", f"{full:,}", f"{states:,}", f"{full - states:,}"))
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        cells = [[c.ljust(w) if i < 3 else c.rjust(w) for i, (c, w) in enumerate(zip(line, widths, strict=True))] for line in lines]
        return "\n".join("  ".join(line).rstrip() for line in cells)


def listing(params: PyTree, layout: MemoryLayout, dims: Dims = hidden_matrices) -> Table:
    """What a method does with each parameter, and the bytes that it saves; arguments as those of :func:`estimate`."""
    named, _ = jax.tree_util.tree_flatten_with_path(params)
    rows = []
    for spec, (path, x) in zip(specs(dims, params), named, strict=True):
        full = _moments(layout, x.size, x.dtype)
        if spec is None:
            rows.append(Row(place(path), x.shape, None, full, full))
            continue
        weights, moments, bases = _matrix(layout, spec, x)
        states = weights - x.size * x.dtype.itemsize + moments + bases
        rows.append(Row(place(path), x.shape, matrix_shape(spec, x.shape), full, states))
    return Table(rows)


def nbytes(tree: PyTree) -> int:
    """Bytes of all arrays of a tree, or of their shapes."""
    return sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(tree))


def compiled_bytes(f: Callable[..., Any], *args: Any, donated: tuple[int, ...] = ()) -> dict[str, int]:
    """:func:`account` of a function at arguments, or at their shapes; those numbered in ``donated`` may be overwritten."""
    return account(jax.jit(f, donate_argnums=donated).lower(*args).compile())


def account(compiled: Any) -> dict[str, int]:
    """Bytes of a compiled program by the compiler's own account: arguments, outputs, what they share, and work space.

    ``peak`` is their sum, what they share counted once.
    """
    analysis = compiled.memory_analysis()
    parts = {
        "arguments": analysis.argument_size_in_bytes,
        "outputs": analysis.output_size_in_bytes,
        "shared": analysis.alias_size_in_bytes,
        "work": analysis.temp_size_in_bytes,
    }
    return parts | {"peak": parts["arguments"] + parts["outputs"] - parts["shared"] + parts["work"]}
