"""Claims of a theory, grouped by chapter."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from jaxdyn.engine.catalogue.theory import Theory

__all__ = ["by_chapter"]

T = TypeVar("T")


def by_chapter(theory: Theory, claims: Iterable[tuple[str | None, T]]) -> dict[str, list[T]]:
    """Claims by the title of their topic's chapter, in the order of the title page.

    Claims without a chapter come first, under an empty title; if the title page has no chapters, these are all claims.

    Args:
        theory: the title page.
        claims: pairs of a topic and a claim; a claim may be any object.
    """
    groups: dict[str, list[T]] = {title: [] for title in ("", *theory.chapters)}
    titles = {topic: title for title, topics in theory.chapters.items() for topic in topics}
    for topic, claim in claims:
        groups[titles.get(topic or "", "")].append(claim)
    return {title: group for title, group in groups.items() if group}
