"""What a map of the atlas is."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["Plate"]


@dataclasses.dataclass(frozen=True)
class Plate:
    """A map of the atlas.

    Args:
        name: its file's and its anchor's.
        title: a few words.
        claim: the claim's id.
        over: the axes, as ``jaxdyn map --over`` takes them.
        finding: where the claim holds, where it stops, and whether that is where the theorem's assumptions say so.
        cells: the most cells.
        seeds: how many; None for the claim's own.
        sets: other fields, with their values.
    """

    name: str
    title: str
    claim: str
    over: tuple[str, ...]
    finding: str
    cells: int = 243
    seeds: int | None = None
    sets: Mapping[str, Sequence[Any]] = dataclasses.field(default_factory=dict)
