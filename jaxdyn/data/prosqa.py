r"""ProsQA: which of two concepts a named entity belongs to, as reachability in a digraph; generator, loader, and shortcuts.

Two roots grow two families of descendants. A new node draws :math:`k \sim \mathrm{Poisson}(1.5)` parents from the first family
(probability .35), the second (.45) or all nodes so far (.2), with probability proportional to 1.5 depth + 1; its label is the union
of its parents' (bit 1: below node 0, bit 2: below node 1). Candidates are leaves with one label alone: the target below the root
asked for, the negative below the other. Variants:

- "released": root and target such as in the released data: the root is that of the family whose deepest leaf is deeper, the target
  one of its deepest leaves, the negative any leaf of the other family;
- "printed": the paper's pseudo-code: probabilities .35, .35 and .3, the first two with nodes of neither family too; root 0, and any
  leaf;
- "balanced": as released, with the target 3 or 4 steps away, but the negative is as far from the other root, with an
  in-degree as near as can be; either family may be the root's, and node numbers are random.

Source: arXiv:2412.06769, appendix A.2 (task, pseudo-code); the released variant is fitted to the released files, whose statistics
the pseudo-code does not have; the balanced one is ours.
Letters: n nodes, m edges.
"""

from __future__ import annotations

import functools
import json
import operator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from jaxdyn.errors import UsageError

__all__ = ["HOPS", "VARIANTS", "Problem", "draw", "load", "shortcuts", "statistics"]

VARIANTS = ("released", "printed", "balanced")
NODES = {"released": 28, "printed": 26, "balanced": 28}  # before isolated ones are dropped
LEAST = 10  # nodes
FAR = 3  # least distance of the target
LENGTHS = {3: 0.48, 4: 0.52}  # distances of the balanced variant's target: the released shares among these two
HOPS = (1, 2, 3)


class Problem(NamedTuple):
    """A digraph of ``nodes`` nodes, two roots, the target below ``root`` and the negative below ``other``."""

    nodes: int
    edges: np.ndarray  # [m, 2], source and target
    root: int
    other: int
    target: int
    negative: int


def draw(seed: int, count: int, variant: str = "released", nodes: int | None = None) -> list[Problem]:
    """Problems of a variant; problem i depends on the seed, i and the number of nodes alone.

    ``nodes``: of a graph before isolated ones are dropped; None: the variant's.

    Raises:
        UsageError: for a variant that is none of :data:`VARIANTS`, and fewer than 10 nodes, which have too few such targets.
    """
    if variant not in VARIANTS:
        raise UsageError(f"variant={variant!r} is not allowed: it is one of {', '.join(VARIANTS)}")
    if nodes is not None and nodes < LEAST:
        raise UsageError(f"nodes={nodes} is not allowed: it is at least {LEAST}, or no target is {FAR} steps away")
    size = NODES[variant] if nodes is None else nodes
    return [_one(np.random.default_rng((seed, i)), variant, size) for i in range(count)]


def load(path: str | Path) -> list[Problem]:
    """The problems of a released file; the roots of its graphs are nodes 0 and 1.

    Raises:
        UsageError: if there is no such file, or it holds something else.
    """
    file = Path(path)
    if not file.is_file():
        raise UsageError(f"{file} is not there: give a released file of ProsQA, valid.json or test.json")
    try:
        return [_read(entry) for entry in json.loads(file.read_text())]
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise UsageError(f"{file} is no released file of ProsQA: {error!r}") from error


def statistics(problems: list[Problem]) -> dict[str, np.ndarray]:
    """One number a problem for each property of graphs and candidates by which variants differ."""
    rows = [_properties(p) for p in problems]
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def shortcuts(problems: list[Problem]) -> dict[str, float]:
    """Accuracy of rules that look for no path, or for short ones only; where a rule is silent it tosses a coin.

    Keys: ``other_h`` a candidate within h steps of the other root is wrong; ``forward_h`` one within h steps of the root is right;
    ``deeper`` the one with the longer longest path to it; ``fewer_parents``; ``larger_number``.
    """
    rows = [_votes(p) for p in problems]
    return {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}


def _one(rng: np.random.Generator, variant: str, nodes: int) -> Problem:
    """Graphs until one has candidates; repeated draws come from one generator."""
    length = int(rng.choice(list(LENGTHS), p=list(LENGTHS.values())))
    while True:
        parents, label = _grow(rng, variant, nodes)
        found = _candidates(rng, parents, label, variant, length)
        if found is not None:
            return _tidy(rng, parents, *found, variant)


def _grow(rng: np.random.Generator, variant: str, nodes: int) -> tuple[list[list[int]], list[int]]:
    """Parents and labels of all nodes."""
    printed = variant == "printed"
    parents: list[list[int]] = [[], []]
    label, depth = [1, 2], [0, 0]
    for node in range(2, nodes):
        count, u = rng.poisson(1.5), rng.uniform()
        family = 1 if u <= 0.35 else 2 if u <= (0.7 if printed else 0.8) else -1
        allowed = (family, 0) if printed else (family,)
        old = np.array([v for v in range(node) if family < 0 or label[v] in allowed])  # never empty: a root is among them
        weight = 1.5 * np.array(depth)[old] + 1
        chosen = rng.choice(old, min(count, old.size), replace=False, p=weight / weight.sum()).tolist()
        parents.append(chosen)
        label.append(functools.reduce(operator.or_, (label[v] for v in chosen), 0))
        depth.append(1 + min(depth[v] for v in chosen) if chosen else 0)
    return parents, label


def _candidates(
    rng: np.random.Generator, parents: list[list[int]], label: list[int], variant: str, length: int
) -> tuple[int, int, int] | None:
    """Root, target and negative, or None if the graph has none; ``length`` is the balanced variant's."""
    edges = _edges(parents)
    inner = set(edges[:, 0].tolist())
    leaves = [[v for v in range(2, len(parents)) if label[v] == bit and v not in inner] for bit in (1, 2)]
    if not all(leaves):
        return None
    away = [_distances(edges, root, len(parents)) for root in (0, 1)]
    if variant == "balanced":
        return _matched(rng, parents, leaves, away, length)
    deepest = [max(away[r][v] for v in leaves[r]) for r in (0, 1)]
    root = 0 if variant == "printed" or deepest[0] > deepest[1] else 1 if deepest[1] > deepest[0] else int(rng.integers(2))
    pool = leaves[root] if variant == "printed" else [v for v in leaves[root] if away[root][v] == deepest[root]]
    target = int(rng.choice(pool))
    if away[root][target] < FAR:
        return None
    return root, target, int(rng.choice(leaves[1 - root]))


def _matched(
    rng: np.random.Generator, parents: list[list[int]], leaves: list[list[int]], away: list[np.ndarray], length: int
) -> tuple[int, int, int] | None:
    """Two leaves this far from their own roots, with in-degrees as near as they can be."""
    root = int(rng.integers(2))
    pairs = [(a, b) for a in leaves[root] for b in leaves[1 - root] if away[root][a] == away[1 - root][b] == length]
    if not pairs:
        return None
    apart = np.array([abs(len(parents[a]) - len(parents[b])) for a, b in pairs])
    target, negative = pairs[int(rng.choice(np.flatnonzero(apart == apart.min())))]
    return root, target, negative


def _tidy(rng: np.random.Generator, parents: list[list[int]], root: int, target: int, negative: int, variant: str) -> Problem:
    """The problem without isolated nodes, with nodes numbered in order, or at random."""
    edges = _edges(parents)
    kept = sorted({0, 1} | set(edges.ravel().tolist()))
    number = np.full(len(parents), -1)
    number[kept] = rng.permutation(len(kept)) if variant == "balanced" else np.arange(len(kept))
    new = number[[root, 1 - root, target, negative]].tolist()
    return Problem(len(kept), number[edges], *new)


def _read(entry: dict[str, Any]) -> Problem:
    root = int(entry["root"])
    if root not in (0, 1):
        raise ValueError(f"root {root}")
    edges = np.array(entry["edges"], int).reshape(-1, 2)
    return Problem(len(entry["idx_to_symbol"]), edges, root, 1 - root, int(entry["target"]), int(entry["neg_target"]))


def _edges(parents: list[list[int]]) -> np.ndarray:
    return np.array([(p, v) for v, old in enumerate(parents) for p in old], int).reshape(-1, 2)


def _distances(edges: np.ndarray, root: int, nodes: int) -> np.ndarray:
    """Steps from the root, ``nodes`` where there is no path."""
    after: list[list[int]] = [[] for _ in range(nodes)]
    for source, target in edges.tolist():
        after[source].append(target)
    away, front, steps = np.full(nodes, nodes), [root], 0
    while front:
        away[front] = steps
        steps += 1
        front = sorted({t for v in front for t in after[v] if away[t] == nodes})
    return away


def _properties(p: Problem) -> dict[str, float]:
    """One problem's row of :func:`statistics`."""
    away = _distances(p.edges, p.root, p.nodes)
    far = _distances(p.edges, p.other, p.nodes)
    back = p.edges[:, ::-1]
    label = (away < p.nodes).astype(int), (far < p.nodes).astype(int)
    first, second = label if p.root == 0 else label[::-1]
    indegree = np.bincount(p.edges[:, 1], minlength=p.nodes)
    row = {
        "nodes": p.nodes,
        "edges": len(p.edges),
        "length": int(away[p.target]),
        "paths": _paths(p, away),
        "parentless": int(np.sum(indegree == 0)),
        "out_degree": np.mean([np.sum(p.edges[:, 0] == r) for r in (p.root, p.other)]),
        "ancestors": int(np.sum(_distances(back, p.target, p.nodes) < p.nodes)),
        "negative_ancestors": int(np.sum(_distances(back, p.negative, p.nodes) < p.nodes)),
        "negative_length": int(far[p.negative]),
        "root": p.root,
    }
    row |= {f"label_{bits}": int(np.sum(first + 2 * second == bits)) for bits in range(4)}
    return row | {f"in_degree_{k}": int(np.sum(indegree == k)) for k in range(6)}


def _paths(p: Problem, away: np.ndarray) -> int:
    """Number of shortest paths from the root to the target."""
    count = np.zeros(p.nodes)
    count[p.root] = 1
    for steps in range(int(away[p.target])):
        for source, target in p.edges.tolist():
            if away[source] == steps and away[target] == steps + 1:
                count[target] += count[source]
    return int(count[p.target])


def _longest(p: Problem) -> np.ndarray:
    """Edges of the longest path to every node of an acyclic graph."""
    depth = np.zeros(p.nodes, int)
    for _ in range(p.nodes):
        np.maximum.at(depth, p.edges[:, 1], depth[p.edges[:, 0]] + 1)
    return depth


def _votes(p: Problem) -> dict[str, float]:
    """What each rule gives for one problem: 1 the target, 0 the negative, 1/2 a coin."""
    away, far = _distances(p.edges, p.root, p.nodes), _distances(p.edges, p.other, p.nodes)
    indegree, depth = np.bincount(p.edges[:, 1], minlength=p.nodes), _longest(p)
    rules = {f"other_{h}": -(far <= h).astype(int) for h in HOPS}
    rules |= {f"forward_{h}": (away <= h).astype(int) for h in (3, 4)}
    rules |= {"deeper": depth, "fewer_parents": -indegree, "larger_number": np.arange(p.nodes)}
    return {name: 0.5 + 0.5 * float(np.sign(score[p.target] - score[p.negative])) for name, score in rules.items()}
