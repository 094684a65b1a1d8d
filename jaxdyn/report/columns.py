"""Names of the columns of tables of runs: a field keeps its name, and an observable of the same name gets another."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["observable_columns"]


def observable_columns(names: Iterable[str], taken: Iterable[str]) -> dict[str, str]:
    """The columns of observables by their names: ``recorded lr`` where ``lr`` is the name of a field or another column."""
    names, columns = list(names), dict[str, str]()
    used = {*taken, *names}
    for name in names:
        column = name
        if name in set(taken):
            while column in used:
                column = f"recorded {column}"
        used.add(column)
        columns[name] = column
    return columns
