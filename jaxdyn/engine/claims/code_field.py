"""Switches: swept fields that choose among names; one compiled program serves all choices."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax
from jaxtyping import Array, Bool, Int

from jaxdyn.errors import UsageError

__all__ = ["Code", "code"]


@jax.tree_util.register_pytree_node_class
class Code:
    """The value of a field declared by :func:`code`: one of several names, possibly traced.

    ``s.optimizer == "adam"`` is a truth value, traced inside a trial; ``s.optimizer.index`` is for ``lax.switch``.
    Comparing it with a number, or with a name that the switch does not have, raises an error, so that typos are noticed.
    """

    __slots__ = ("index", "names")

    def __init__(self, index: int | Int[Array, ""], names: tuple[str, ...]) -> None:
        """The switch whose value is the name at this index."""
        self.index, self.names = index, names

    @classmethod
    def of(cls, name: str, names: Sequence[str]) -> Code:
        """The switch with this name as its value.

        Raises:
            UsageError: the name is not one of the switch's.
        """
        if name not in tuple(names):
            raise UsageError(f"{name!r} is not allowed: it is one of {', '.join(names)}")
        return cls(tuple(names).index(name), tuple(names))

    def __eq__(self, other: object) -> Bool[Array, ""] | bool:  # type: ignore[override]
        if isinstance(other, Code):
            return self.names == other.names and self.index == other.index
        if not isinstance(other, str):
            raise TypeError(f"a switch is compared with one of its names ({', '.join(self.names)}), not with {other!r}")
        return self.index == Code.of(other, self.names).index

    def __ne__(self, other: object) -> Bool[Array, ""] | bool:  # type: ignore[override]
        equal = self == other
        return not equal if isinstance(equal, bool) else ~equal

    def __hash__(self) -> int:
        return hash((self.index, self.names))

    def __str__(self) -> str:
        return self.names[self.index] if isinstance(self.index, int) else f"one of {', '.join(self.names)}"

    __repr__ = __str__

    def tree_flatten(self) -> tuple[tuple[Any], tuple[str, ...]]:
        """The index is the child, the names are static."""
        return (self.index,), self.names

    @classmethod
    def tree_unflatten(cls, names: tuple[str, ...], children: tuple[Any]) -> Code:
        """The inverse of :meth:`tree_flatten`; the child may be any placeholder."""
        return cls(children[0], names)


def code(*names: str) -> Any:
    """A ``Code`` field that chooses among these names, by default the first: ``optimizer: jd.Code = jd.code("gd", "adam")``."""
    return dataclasses.field(default=Code(0, names), metadata={"names": names})
