"""The tensors of a checkpoint under their names: sizes at once, numbers one tensor at a time."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
from jaxtyping import Shaped

from jaxdyn.errors import UsageError

__all__ = ["Archive", "Entry"]

FLOATS = ("F64", "F32", "F16", "BF16")


@dataclasses.dataclass(frozen=True)
class Entry:
    """What is known of a tensor before it is read: its file, size and kind of numbers, in the file's own words."""

    file: Path
    size: tuple[int, ...]
    kind: str


@dataclasses.dataclass(frozen=True)
class Archive:
    """All tensors of a checkpoint.

    Args:
        listing: the file that says which tensors there are, for messages.
        entries: by name.
        reader: the numbers of a tensor, in floats.
        files: all files that hold weights.
    """

    listing: Path
    entries: Mapping[str, Entry]
    reader: Callable[[str], Shaped[np.ndarray, "..."]]
    files: tuple[Path, ...]

    @property
    def bytes(self) -> int:
        """Bytes on disk."""
        return sum(file.stat().st_size for file in self.files)

    def read(self, name: str, size: tuple[int, ...]) -> Shaped[np.ndarray, "..."]:
        """The numbers of a tensor of this size.

        Raises:
            UsageError: if it has another size, or numbers that are not finite.
        """
        self.check(name, size)
        tensor = self.reader(name)
        if not np.isfinite(tensor).all():
            raise UsageError(f"{self.entries[name].file}: tensor {name} has numbers that are not finite")
        return tensor

    def check(self, name: str, size: tuple[int, ...]) -> None:
        """Raise UsageError unless there is a tensor of this name and size."""
        if name not in self.entries:
            raise UsageError(f"{self.listing} has no tensor {name}, which the model's configuration asks for")
        entry = self.entries[name]
        if entry.size != size:
            given, needed = ("x".join(map(str, each)) for each in (entry.size, size))
            raise UsageError(f"{entry.file}: tensor {name} has the size {given}, the model's configuration says {needed}")
