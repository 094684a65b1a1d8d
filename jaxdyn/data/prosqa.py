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
import operator
import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from jaxdyn.engine.base.parsing import from_home, parse_json
from jaxdyn.errors import UsageError, shown, whole

__all__ = ["HOPS", "VARIANTS", "Problem", "draw", "fault", "load", "records", "shortcuts", "statistics"]

VARIANTS = ("released", "printed", "balanced")
NODES = {"released": 28, "printed": 26, "balanced": 28}  # before isolated ones are dropped
LEAST = {"released": 10, "printed": 10, "balanced": 14}  # nodes: below, hardly a graph in ten thousand has such candidates
MOST = 256  # nodes: the time of a graph grows with the square
SEEDS = 2**32 - 1  # NumPy takes a larger seed apart into words of 32 bits, and another seed's problems come back
TRIES = 50_000  # graphs of one problem: at the least number of nodes one in 2,000 is taken
FAR = 3  # least distance of the target
LENGTHS = {3: 0.48, 4: 0.52}  # distances of the balanced variant's target: the released shares among these two
HOPS = (1, 2, 3)
KEYS = ("idx_to_symbol", "edges", "root", "target", "neg_target")  # of a record; further ones are not read


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

    Args:
        seed: 0 to 2**32 - 1.
        count: of problems.
        variant: one of :data:`VARIANTS`.
        nodes: of a graph before isolated ones are dropped, from :data:`LEAST` of the variant to :data:`MOST`; None: the variant's.

    Raises:
        UsageError: for a variant or a number that is not allowed; if no graph of so few nodes was found that has such candidates.
    """
    if variant not in VARIANTS:
        raise UsageError(f"variant={variant!r} is not allowed: it is one of {', '.join(VARIANTS)}")
    seed, count = whole("seed", seed, least=0, most=SEEDS), whole("count", count, least=0, most=SEEDS)
    size = NODES[variant] if nodes is None else whole("nodes", nodes, least=LEAST[variant], most=MOST)
    return [_one(np.random.default_rng((seed, i)), variant, size) for i in range(count)]


def records(path: str | Path) -> list[Any]:
    """The records of a released file.

    Raises:
        UsageError: if there is no such file, or it is no list of records in JSON.
    """
    if not isinstance(path, str | os.PathLike):
        raise UsageError(f"path={shown(path)} is not allowed: it is the path of a file")
    file = from_home(path)
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UsageError(f"{file} is not there: give a released file of ProsQA, valid.json or test.json") from None
    except (OSError, ValueError) as error:
        raise UsageError(f"{file} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    try:
        entries = parse_json(text)
    except ValueError as error:
        raise UsageError(f"{file} is no released file of ProsQA: it is not JSON ({error})") from None
    if not isinstance(entries, list) or not entries:
        raise UsageError(f"{file} is no released file of ProsQA: it holds {_kind(entries)}, and not a list of records")
    return entries


def load(path: str | Path) -> list[Problem]:
    """The problems of a released file; the roots of its graphs are nodes 0 and 1.

    Raises:
        UsageError: as :func:`records`, or if a record is no problem; the sentence has the record's number, counted from 1.
    """
    source = f"{path} is no released file of ProsQA: record"
    return [_read(entry, f"{source} {i}") for i, entry in enumerate(records(path), 1)]


def fault(problem: Problem) -> str:
    """What is wrong with a problem, in words; nothing if it is sound.

    Nodes are whole numbers from 0, edges are different and form no cycle, and the root alone leads to the target, the other root
    alone to the negative, each by an edge or more.
    """
    p = problem
    if reason := _outside(p):
        return reason
    if len(np.unique(p.edges, axis=0)) < len(p.edges):
        return "an edge is listed twice"
    if p.root == p.other:
        return f"both of its roots are node {p.root}"
    if _cyclic(p):
        return "its edges form a cycle"
    away, far = (_distances(p.edges, root, p.nodes) < p.nodes for root in (p.root, p.other))
    if not away[p.target] or far[p.target]:
        return f"its target {p.target} is not below its root {p.root} alone"
    if not far[p.negative] or away[p.negative]:
        return f"its negative {p.negative} is not below the other root {p.other} alone"
    for name, node, root in (("target", p.target, p.root), ("negative", p.negative, p.other)):
        if node == root:  # reached without a step
            return f"its {name} is the root {root} itself"
    return ""


def _outside(p: Problem) -> str:
    """Which node of a problem is none of its graph, in words; nothing if there is none."""
    if p.nodes < 1:
        return "it has no nodes"
    ends = {"root": p.root, "other root": p.other, "target": p.target, "negative": p.negative}
    for name, node in ends.items():
        if not 0 <= node < p.nodes:
            return f"its {name} is {node}, and its nodes are 0 to {p.nodes - 1}"
    outside = p.edges[((p.edges < 0) | (p.edges >= p.nodes)).any(1)]
    if len(outside):
        return f"it has the edge {outside[0].tolist()}, and its nodes are 0 to {p.nodes - 1}"
    return ""


def statistics(problems: list[Problem]) -> dict[str, np.ndarray]:
    """One number a problem for each property of graphs and candidates by which variants differ.

    Raises:
        UsageError: without problems.
    """
    _require_some(problems)
    rows = [_properties(p) for p in problems]
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def shortcuts(problems: list[Problem]) -> dict[str, float]:
    """Accuracy of rules that look for no path, or for short ones only; where a rule is silent it tosses a coin.

    Keys: ``other_h`` a candidate within h steps of the other root is wrong; ``forward_h`` one within h steps of the root is right;
    ``deeper`` the one with the longer longest path to it; ``fewer_parents``; ``larger_number``.

    Raises:
        UsageError: without problems.
    """
    _require_some(problems)
    rows = [_votes(p) for p in problems]
    return {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}


def _require_some(problems: list[Problem]) -> None:
    if not problems:
        raise UsageError("problems=[] is not allowed: there is at least one problem")


def _one(rng: np.random.Generator, variant: str, nodes: int) -> Problem:
    """Graphs until one has candidates; repeated draws come from one generator."""
    length = int(rng.choice(list(LENGTHS), p=list(LENGTHS.values())))
    for _ in range(TRIES):
        parents, label = _grow(rng, variant, nodes)
        found = _candidates(rng, parents, label, variant, length)
        if found is not None:
            return _tidy(rng, parents, *found, variant)
    raise UsageError(f"nodes={nodes} is not allowed: of {TRIES} {variant} graphs none has such candidates; take more nodes")


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


def _read(entry: Any, where: str) -> Problem:
    """The problem of a record; ``where`` begins the sentence that refuses it."""
    if not isinstance(entry, dict):
        raise UsageError(f"{where} is {_kind(entry)}, and not a record")
    if missing := [key for key in KEYS if key not in entry]:
        raise UsageError(f"{where} has no {missing[0]}")
    symbols, edges = entry["idx_to_symbol"], entry["edges"]
    for key, value in (("idx_to_symbol", symbols), ("edges", edges)):
        if not isinstance(value, list):
            raise UsageError(f"{where} has {_kind(value)} for {key}, and not a list")
    for edge in edges:
        if not isinstance(edge, list) or len(edge) != 2 or not all(map(_is_node, edge)):
            raise UsageError(f"{where} has the edge {shown(edge)}, and an edge is two nodes' numbers")
    for key in ("root", "target", "neg_target"):
        if not _is_node(entry[key]):
            raise UsageError(f"{where} has the {key} {shown(entry[key])}, and it is a node's number")
    if entry["root"] not in (0, 1):
        raise UsageError(f"{where} has the root {entry['root']}, and a root is 0 or 1")
    root = entry["root"]
    table = np.array(edges, int).reshape(-1, 2)
    problem = Problem(len(symbols), table, root, 1 - root, entry["target"], entry["neg_target"])
    if reason := fault(problem):
        raise UsageError(f"{where} is no problem: {reason}")
    return problem


def _is_node(value: Any) -> bool:
    """Whether a value of JSON can be the number of a node: whole, and not beyond NumPy's integers."""
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**31


def _kind(value: Any) -> str:
    """A value of JSON in words."""
    if isinstance(value, list | dict) and not value:
        return "an empty list" if isinstance(value, list) else "an empty object"
    names = {list: "a list", dict: "an object", str: "a string", bool: "a truth value", type(None): "null"}
    return names.get(type(value), "a number")


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


def _cyclic(p: Problem) -> bool:
    """Whether edges lead from a node back to it: nodes without edges into them are taken away until none is left."""
    parents, children = np.bincount(p.edges[:, 1], minlength=p.nodes), [p.edges[p.edges[:, 0] == v, 1] for v in range(p.nodes)]
    free = np.flatnonzero(parents == 0).tolist()
    for node in free:  # grows while it is read
        parents[children[node]] -= 1
        free += [v for v in children[node].tolist() if parents[v] == 0]
    return len(free) < p.nodes


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
