"""Tables of runs as CSV: names of columns, where an observable may have that of a field, and quotes around texts."""

from __future__ import annotations

import io
from collections.abc import Iterable

__all__ = ["CsvText", "observable_columns"]


class CsvText(io.StringIO):
    r"""Takes the rows of a CSV writer whose lines end in ``CsvText.ENDS``, and ends them in ``\n``.

    Before Python 3.13 the writer puts quotes around a text with ``\r``, which readers take for the end of a row, only if its own
    lines end so.
    """

    ENDS = "\r\n"

    def write(self, text: str, /) -> int:
        """Add one row, which a writer gives as a whole."""
        return super().write(text.removesuffix(self.ENDS) + "\n")


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
