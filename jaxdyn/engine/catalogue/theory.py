"""The title page of a theory (its subject, papers and topics), and its maps in the atlas.

Every theory's package has ``THEORY = jd.Theory(...)`` in its ``__init__.py``, and may have a module ``maps`` with ``MAPS``, a tuple
of ``jd.AtlasMap``. This module imports neither JAX nor NumPy, so that title pages can be read without them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from jaxdyn.errors import UsageError

__all__ = ["AtlasMap", "Paper", "Theory"]


@dataclasses.dataclass(frozen=True)
class Paper:
    """A paper: its arXiv number, title, authors, and venue with year."""

    arxiv: str
    title: str
    authors: str
    venue: str

    @property
    def url(self) -> str:
        """URL of the abstract."""
        return f"https://arxiv.org/abs/{self.arxiv}"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Theory:
    """The title page of a theory.

    Args:
        title: a few words, the heading of its section in the report.
        about: one paragraph; mathematics in LaTeX between dollar signs.
        setup: one paragraph for its page in the documents, on the networks and data on which its claims are tested.
        papers: the publications that state it; a bare arXiv number refers to a paper that another theory declares.
        topics: names of the modules with claims, relative to the theory's package, in the order of the report: ``("bounce",
            "table1")``, or by chapter, ``{"Near a critical point": ("nonlinear.bounce", …)}``. A topic is a module with a
            ``CLAIMS`` tuple, or a folder whose module ``claims`` has one.
        shown: ids of the claims whose figures the gallery shows.
        instruments: names of the modules with instruments for models' own weights, relative to the theory's package. Each has an
            ``INSTRUMENTS`` tuple of :class:`jaxdyn.instruments.Instrument`.

    Raises:
        UsageError: a topic that is listed twice.
    """

    title: str
    about: str = ""
    setup: str = ""
    papers: tuple[Paper | str, ...] = ()
    topics: tuple[str, ...] | Mapping[str, tuple[str, ...]] = ()
    shown: tuple[str, ...] = ()
    instruments: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        names = self.topic_names
        if twice := [name for name in names if names.count(name) > 1]:
            raise UsageError(f"topics={twice[0]!r} is not allowed: {self.title} lists it twice")

    @property
    def topic_names(self) -> tuple[str, ...]:
        """All topics in order, across chapters."""
        if isinstance(self.topics, Mapping):
            return tuple(name for chapter in self.topics.values() for name in chapter)
        return tuple(self.topics)

    @property
    def chapters(self) -> Mapping[str, tuple[str, ...]]:
        """Topics by the title of their chapter; empty if there are no chapters."""
        return self.topics if isinstance(self.topics, Mapping) else {}


@dataclasses.dataclass(frozen=True)
class AtlasMap:
    """A map of the atlas, made once by ``jaxdyn map`` and stored in the theory's folder as ``recorded/maps/NAME.json``.

    Args:
        name: name of its file and its anchor.
        title: a few words.
        claim: the claim's id.
        over: the axes, as ``jaxdyn map --over`` takes them.
        finding: where the claim holds, where it stops, and whether that agrees with the theorem's assumptions.
        cells: upper limit on judged cells.
        seeds: number of seeds; None for the claim's own.
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

    @property
    def theory(self) -> str:
        """The prefix of its claim."""
        return self.claim.split(".")[0]
