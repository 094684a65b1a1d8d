"""ProsQA in natural language: problems as sentences, as the released files have them.

Edges are sentences "Every rempus is a yimpus.", or "Tom is a terpus." from a node that no edge enters, which has a person's name;
the question closes with "Is Tom a lempus or scrompus?". Source: arXiv:2412.06769, section 4.1 and appendix A; released files (MIT).
Departure: names for drawn problems are ours (:func:`symbols`), made of syllables, since the lists behind the released ones are not
published with them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from jaxdyn.data import prosqa
from jaxdyn.errors import UsageError, whole

__all__ = ["Words", "load", "symbols", "worded"]

PEOPLE = "Ada Ben Cleo Dan Eva Finn Gus Hana Ivo June Kai Lea Max Nora Otto Pia Quin Rosa Sam Tess Uma Vic Wim Zoe".split()
STARTS, MIDDLES, END = "b br d f g gl h j k l m n p r s st t tr v w y z".split(), "a e i o u om um imp orp".split(), "pus"


class Words(NamedTuple):
    """A problem as text: sentences and question, the steps of a shortest path, and the answer."""

    question: str
    steps: tuple[str, ...]
    answer: str


def symbols(problem: prosqa.Problem, seed: int) -> tuple[str, ...]:
    """A name for each node: a person's for those that no edge enters, a kind's for all others; none twice.

    Raises:
        UsageError: if the problem is not sound, or has more nodes than there are names.
    """
    rng = np.random.default_rng(whole("seed", seed, least=0, most=prosqa.SEEDS))
    entered = _entered(problem)
    kinds = [start + middle + END for start in STARTS for middle in MIDDLES]
    people = list(PEOPLE)
    if len(entered) > len(kinds) or problem.nodes - len(entered) > len(people):
        raise UsageError(f"nodes={problem.nodes} is not allowed: there are {len(people)} people and {len(kinds)} kinds")
    rng.shuffle(kinds)
    rng.shuffle(people)
    return tuple(kinds.pop() if node in entered else people.pop() for node in range(problem.nodes))


def worded(problem: prosqa.Problem, names: Sequence[str], seed: int) -> Words:
    """The problem as text; the orders of the sentences and of the candidates are drawn.

    Raises:
        UsageError: if the problem is not sound, or there is another number of names than of nodes.
    """
    entered = _entered(problem)
    if len(names) != problem.nodes:
        raise UsageError(f"{len(names)} names are not allowed: the problem has {problem.nodes} nodes")
    rng = np.random.default_rng(whole("seed", seed, least=0, most=prosqa.SEEDS))

    def sentence(a: int, b: int) -> str:
        return f"Every {names[a]} is a {names[b]}." if a in entered else f"{names[a]} is a {names[b]}."

    facts = [sentence(int(a), int(b)) for a, b in rng.permutation(problem.edges)]
    first, second = rng.permutation([problem.target, problem.negative])
    question = f"Is {names[problem.root]} a {names[first]} or {names[second]}?"
    path = _path(problem)
    steps = tuple(sentence(a, b) for a, b in zip(path, path[1:], strict=False))
    return Words(" ".join([*facts, question]), steps, f"{names[problem.root]} is a {names[problem.target]}.")


def load(path: str | Path) -> list[Words]:
    """The texts of a released file as they stand there.

    Raises:
        UsageError: as :func:`jaxdyn.data.prosqa.load`, and if a record has no texts.
    """
    records = prosqa.records(path)
    for i, record in enumerate(records, 1):
        texts = [record.get("question"), record.get("answer"), *(record.get("steps") or [None])]
        if not all(isinstance(text, str) for text in texts):
            raise UsageError(f"{path} is no released file of ProsQA: record {i} lacks question, steps or answer")
    return [Words(record["question"], tuple(record["steps"]), record["answer"]) for record in records]


def _entered(problem: prosqa.Problem) -> set[int]:
    """Nodes that an edge enters."""
    if wrong := prosqa.fault(problem):
        raise UsageError(f"the problem is not allowed: {wrong}")
    return {int(b) for b in problem.edges[:, 1]}


def _path(problem: prosqa.Problem) -> list[int]:
    """A shortest path from the root to the target."""
    paths = [[problem.root]]
    for path in paths:
        if path[-1] == problem.target:
            return path
        paths += [[*path, int(b)] for a, b in problem.edges if a == path[-1] and all(int(b) not in other for other in paths)]
    raise UsageError("the problem is not allowed: no path leads to its target")
