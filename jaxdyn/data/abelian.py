r"""Finite Abelian groups and their characters.

A group is a product of cyclic ones, :math:`G = Z_{n_1} \times \dots \times Z_{n_r}`, written additively and numbered row by row
(the last factor runs fastest); it is named "23", "2x4", "2x3x2". Its characters have the same numbers as its elements,

.. math:: \varphi_k(g) = e^{2\pi i \sum_t k_t g_t / n_t}, \qquad \varphi_{-k} = \overline{\varphi_k}, \qquad \varphi_0 = 1.

A character with :math:`2k = 0` is its own conjugate, thus real; there is one such besides :math:`\varphi_0` in every cyclic
group of even order. Letters: d elements, r factors.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import re

import numpy as np
from jaxtyping import Complex, Int

from jaxdyn.errors import UsageError, whole

__all__ = ["LIMIT", "Abelian", "parse"]

LIMIT = 4096  # largest order: tables have the square of it entries


@dataclasses.dataclass(frozen=True)
class Abelian:
    """A product of cyclic groups; hashable, so usable as a static argument. Its tables are NumPy arrays, made once.

    Args:
        sizes: orders of the cyclic factors.
    """

    sizes: tuple[int, ...]

    def __post_init__(self) -> None:
        """Refuse an empty product, factors that are no group of at least two elements, and too large a group."""
        try:
            object.__setattr__(self, "sizes", tuple(whole("order", n, least=2) for n in self.sizes))
        except UsageError as error:
            raise UsageError(
                f"a group is a product of cyclic groups with at least 2 elements each, e.g. 23 or 2x4: {error}"
            ) from None
        if not self.sizes:
            raise UsageError("a group is a product of cyclic groups with at least 2 elements each, e.g. 23 or 2x4, got nothing")
        if self.order > LIMIT:
            raise UsageError(f"group {self} is too large: at most {LIMIT} elements are allowed")

    def __str__(self) -> str:
        """The name that :func:`parse` reads."""
        return "x".join(map(str, self.sizes))

    @property
    def order(self) -> int:
        """d, the number of elements."""
        return math.prod(self.sizes)

    @functools.cached_property
    def elements(self) -> Int[np.ndarray, "d r"]:
        """Every element in coordinates."""
        return np.stack(np.unravel_index(np.arange(self.order), self.sizes), -1)

    def number(self, elements: Int[np.ndarray, "*n r"]) -> Int[np.ndarray, "*n"]:
        """Numbers of elements given in coordinates, which are reduced first."""
        return np.ravel_multi_index(tuple(np.moveaxis(elements % np.array(self.sizes), -1, 0)), self.sizes)

    @functools.cached_property
    def add(self) -> Int[np.ndarray, "d d"]:
        """The table of g1 + g2."""
        return self.number(self.elements[:, None] + self.elements[None])

    @functools.cached_property
    def negative(self) -> Int[np.ndarray, " d"]:
        """The number of -g."""
        return self.number(-self.elements)

    @functools.cached_property
    def characters(self) -> Complex[np.ndarray, "d d"]:
        """phi_k(g): row k, column g. The exponent is reduced in whole numbers, so roots of unity are as exact as exp is."""
        period = math.lcm(*self.sizes)
        weights = np.array([period // n for n in self.sizes])
        turns = (self.elements * weights) @ self.elements.T % period
        return np.exp(2j * np.pi * turns / period)

    @functools.cached_property
    def real(self) -> Int[np.ndarray, " s"]:
        """Numbers of the real characters but the first: k with 2k = 0, k != 0."""
        return np.flatnonzero((self.negative == np.arange(self.order)) & (np.arange(self.order) > 0))

    @functools.cached_property
    def pairs(self) -> Int[np.ndarray, " p"]:
        """The smaller number of each pair k, -k of conjugate characters: with :attr:`real` all frequencies up to conjugation."""
        return np.flatnonzero(np.arange(self.order) < self.negative)


def parse(name: str) -> Abelian:
    """The group of that name: orders of cyclic factors joined by "x".

    Raises:
        UsageError: if the name is not of that form.
    """
    parts = name.split("x")
    if not all(re.fullmatch(r"[0-9]{1,6}", part) for part in parts):
        raise UsageError(f"group={name!r:.80} is not allowed: a group is named by the orders of its cyclic factors, e.g. 23 or 2x4")
    return Abelian(tuple(map(int, parts)))
