"""A finite group as its Cayley table: checks, what derives from the table, and tables read from a file.

Letters: m elements numbered 0 to M - 1, T[i, j] the number of h_i h_j, e the identity, c conjugacy classes.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import pathlib
import re

import numpy as np
from jaxtyping import Bool, Int
from numpy.typing import ArrayLike

from jaxdyn.engine.base.parsing import from_home
from jaxdyn.errors import UsageError, shown, whole

__all__ = ["LIMIT", "Group", "read", "require_room"]

LIMIT = 1024  # largest order: tables have M^2 entries, and irreps need the eigenvectors of an M x M matrix


@dataclasses.dataclass(frozen=True, eq=False)
class Group:
    """A finite group; hashable by name and table, so usable as a static argument. What derives from the table is made once.

    Args:
        name: what messages call it, and what :func:`parse` reads if the group was built here.
        table: the Cayley table, M x M whole numbers from 0 to M - 1; kept as a read-only int32 array.

    Raises:
        UsageError: if the table is not that of a group; the sentence says which axiom fails and where.
    """

    name: str
    table: np.ndarray = dataclasses.field(repr=False)

    def __post_init__(self) -> None:
        """Check every axiom; associativity for all triples at every order, by way of the generators."""
        table = _whole(self.name, self.table)
        object.__setattr__(self, "table", table)
        _check_latin(self.name, table)
        _check_identity(self.name, table)
        _check_inverses(self)
        _check_associative(self)

    def __str__(self) -> str:
        return self.name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Group) and self.name == other.name and np.array_equal(self.table, other.table)

    def __hash__(self) -> int:
        return hash((self.name, self.fingerprint))

    @functools.cached_property
    def fingerprint(self) -> str:
        """Eight hexadecimal digits of the table's SHA-256."""
        return hashlib.sha256(self.table.tobytes()).hexdigest()[:8]

    @property
    def order(self) -> int:
        """M, the number of elements."""
        return len(self.table)

    @functools.cached_property
    def identity(self) -> int:
        """The number of the identity e."""
        return int(np.flatnonzero((self.table == np.arange(self.order)).all(1))[0])

    @functools.cached_property
    def inverse(self) -> Int[np.ndarray, " m"]:
        """The number of the inverse of each element."""
        return np.argmax(self.table == self.identity, 1).astype(np.int32)

    @functools.cached_property
    def quotient(self) -> Int[np.ndarray, "m m"]:
        r"""The number of :math:`h_i h_j^{-1}`: :math:`x[quotient]` is the matrix :math:`\sum_g x(g) R_g`."""
        return self.table[:, self.inverse]

    @functools.cached_property
    def generators(self) -> tuple[int, ...]:
        """A generating set: the smallest number outside of the subgroup generated so far, until that is everything."""
        return _generators(self.table, self.identity)

    @functools.cached_property
    def abelian(self) -> bool:
        """Whether all elements commute."""
        return bool((self.table == self.table.T).all())

    @functools.cached_property
    def centre(self) -> Int[np.ndarray, " z"]:
        """Numbers of the elements that commute with all."""
        return np.flatnonzero((self.table == self.table.T).all(1))

    @functools.cached_property
    def classes(self) -> Int[np.ndarray, " m"]:
        """The conjugacy class of each element; class 0 is that of the identity, the others follow by their smallest number."""
        smallest = self.table[self.table, self.inverse[:, None]].min(0)
        smallest[self.identity] = -1
        return np.unique(smallest, return_inverse=True)[1]

    @functools.cached_property
    def class_sizes(self) -> Int[np.ndarray, " c"]:
        """Number of elements in each conjugacy class."""
        return np.bincount(self.classes)

    @functools.cached_property
    def representatives(self) -> Int[np.ndarray, " c"]:
        """The smallest element of each conjugacy class."""
        return np.unique(self.classes, return_index=True)[1]

    @functools.cached_property
    def element_orders(self) -> Int[np.ndarray, " m"]:
        """The smallest n >= 1 with h^n = e, of each element."""
        return np.array([len(self.powers(h)) for h in range(self.order)])

    def powers(self, h: int) -> list[int]:
        """The numbers of e, h, h^2, ... up to the last before e recurs, which in a group it does.

        Raises:
            UsageError: if there is no element h.
        """
        h = whole("h", h, least=0, most=self.order - 1)
        numbers = [self.identity]
        while (following := int(self.table[numbers[-1], h])) != self.identity:
            numbers.append(following)
        return numbers


def _whole(name: str, values: ArrayLike) -> Int[np.ndarray, "m m"]:
    """The table as a read-only int32 array of its own, refused unless square and filled with numbers of elements."""
    table = np.array(values)
    if table.ndim != 2 or table.shape[0] != table.shape[1] or not table.size:
        raise _refusal(name, f"its table must be square, got shape {'x'.join(map(str, table.shape))}")
    require_room(name, len(table))
    if table.dtype.kind not in "iu":
        raise _refusal(name, f"its table must hold whole numbers, got {table.dtype}")
    outside = np.argwhere((table < 0) | (table >= len(table)))
    if len(outside):
        i, j = outside[0]
        raise _refusal(name, f"row {i}, column {j} of its table holds {table[i, j]}, elements are numbered 0 to {len(table) - 1}")
    table = table.astype(np.int32)
    table.setflags(write=False)
    return table


def _refusal(name: str, reason: str) -> UsageError:
    return UsageError(f"{name} is not a group: {reason}")


def require_room(name: str, order: int) -> None:
    """Refuse an order above :data:`LIMIT`, before anything of that size is made."""
    if order > LIMIT:
        raise UsageError(f"group {name} is too large: at most {LIMIT} elements are allowed, got {order}")


def _check_latin(name: str, table: Int[np.ndarray, "m m"]) -> None:
    for kind, lines in (("row", table), ("column", table.T)):
        ordered = np.sort(lines, 1)
        wrong = np.argwhere(ordered[:, 1:] == ordered[:, :-1])
        if len(wrong):
            line, place = wrong[0]
            raise _refusal(name, f"{kind} {line} of its table holds element {ordered[line, place]} more than once")


def _check_identity(name: str, table: Int[np.ndarray, "m m"]) -> None:
    numbers = np.arange(len(table))
    if not ((table == numbers).all(1) & (table.T == numbers).all(1)).any():
        raise _refusal(name, "no element is a two-sided identity")


def _check_inverses(group: Group) -> None:
    wrong = np.flatnonzero(group.table[group.inverse, np.arange(group.order)] != group.identity)
    if len(wrong):
        raise _refusal(group.name, f"element {wrong[0]} has no two-sided inverse")


def _check_associative(group: Group) -> None:
    """Light's test: the a with (xa)y = x(ay) for all x, y are closed under products, so checking the generators suffices."""
    table = group.table
    for a in group.generators:
        wrong = np.argwhere(table[table[:, a]] != table[:, table[a]])
        if len(wrong):
            x, y = wrong[0]
            left, right = table[table[x, a], y], table[x, table[a, y]]
            raise _refusal(group.name, f"({x} {a}) {y} is {left}, but {x} ({a} {y}) is {right}")


def _generators(table: Int[np.ndarray, "m m"], identity: int) -> tuple[int, ...]:
    """Greedy; each doubles the closure at least (in any Latin square with identity), so there are at most log2 M."""
    inside = np.arange(len(table)) == identity
    chosen = []
    while not inside.all():
        chosen.append(int(np.argmin(inside)))
        inside[chosen[-1]] = True
        inside = _closure(table, inside)
    return tuple(chosen)


def _closure(table: Int[np.ndarray, "m m"], inside: Bool[np.ndarray, " m"]) -> Bool[np.ndarray, " m"]:
    while True:
        grown = inside.copy()
        grown[table[np.ix_(inside, inside)]] = True
        if (grown == inside).all():
            return inside
        inside = grown


def read(path: str | pathlib.Path) -> Group:
    """The group whose Cayley table is in a text file: one row per line, numbers from 0 separated by blanks or commas.

    A # starts a comment. The group's name is ``file:PATH#FINGERPRINT``, which :func:`parse` reads; results kept under that name
    belong to this very table.

    Raises:
        UsageError: if the file cannot be read, an entry is not a whole number, rows differ in length, or it is not a group's table.
    """
    file = from_home(path)
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError) as error:  # ValueError: not UTF-8, or no path at all
        raise UsageError(f"the group table {shown(path)} cannot be read: {error}") from error
    rows: list[list[int]] = []
    for number, line in enumerate(lines, 1):
        fields = re.split(r"\s*,\s*|\s+", line.partition("#")[0].strip())
        if fields == [""]:
            continue
        wrong = [field for field in fields if not re.fullmatch(r"[0-9]{1,6}", field)]
        if wrong:
            raise UsageError(f"line {number} of the group table {path} must hold numbers of elements, 0, 1, ..., got {wrong[0]!r}")
        rows.append([int(field) for field in fields])
        if len(rows[-1]) != len(rows[0]):
            raise UsageError(f"line {number} of the group table {path} has {len(rows[-1])} entries, the first has {len(rows[0])}")
    if not rows:
        raise UsageError(f"the group table {path} is empty")
    group = Group(str(path), np.array(rows))
    return dataclasses.replace(group, name=f"file:{path}#{group.fingerprint}")
