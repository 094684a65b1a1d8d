"""The superposition construction on one digraph: attention maps of both layers, thoughts by vertex, and the table of sets by step.

A second table has ProsQA: the construction next to rules that look for no path, or for short ones only, on generated problems such
as the released ones and on balanced ones; `--prosqa FILE` adds a released file. A third one has the sets of thoughts on random
digraphs of four kinds, next to thoughts of which one vertex alone is fed back. `--scale paper` has 64 vertices and 96 edges there.
Nothing is trained. Papers: arXiv 2505.12514, arXiv 2412.06769.
"""

import sys
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import experiment
from jaxdyn.data import digraphs, prosqa
from jaxdyn.theories.sup import dynamics, model
from jaxdyn.theories.sup.graph_search import Search, instance, posed, sizes, think, trial
from jaxdyn.theories.sup.superposition import plot_steps, plot_thought
from jaxdyn.theories.sup.supports import wrong

TALKS = ("practical:sup-theorem", "practical:sup-figure-search")

ONE = {"kind": "tree", "nodes": 12.0, "names": 12, "edges": 14, "thoughts": 5, "graphs": 1, "rows": 17.0}
GRAPHS = {
    "quick": {"nodes": [8.0, 24.0, 48.0]},
    "paper": {"nodes": [8.0, 24.0, 48.0, 64.0], "names": 64, "edges": 96, "thoughts": 16},
}
OPTIONS = {"--prosqa": {"metavar": "FILE", "help": "a released file of ProsQA, valid.json or test.json (default: none)"}}
PROBLEMS = {"quick": 100, "paper": 500}
RULES = {
    "other_1": "a candidate within 1 step of the other root is wrong",
    "other_2": "within 2 steps",
    "other_3": "within 3 steps",
    "forward_3": "search from the root, 3 steps",
    "forward_4": "search from the root, 4 steps",
    "deeper": "the candidate at the end of a longer path",
    "fewer_parents": "the candidate with fewer parents",
    "larger_number": "the candidate with the larger number",
}
KINDS = ["random", "tree", "cycle", "dense"]
SEED = 3


class Shown(NamedTuple):
    """One graph: its edges, root and candidates, weights of vertices in thoughts, and the maps of both layers."""

    edges: np.ndarray  # [m, 2]
    root: int
    candidates: np.ndarray  # [2]
    thoughts: np.ndarray  # [C + 1, N], the root first
    first: np.ndarray  # [h, T, T]
    second: np.ndarray  # [T, T]
    logits: np.ndarray  # [N], of the vertices after all thoughts


def one(seed: int) -> Shown:
    """A graph through the construction: thoughts with the cache, then everything in one pass for the maps."""
    with jax.enable_x64(True):
        s = Search(**ONE)
        size = sizes(s)
        found = instance(s, jax.random.key(seed))
        vectors, logits = jax.jit(think)(s, found, jax.random.key(0))
        first, second = found.params.layers
        params = found.params._replace(layers=(first, second._replace(threshold=found.threshold[0])))
        decoded = vectors[0, : s.thoughts, 0]
        root = int(found.graphs.root[0])
        parts = [params.embed[found.tokens[0]], decoded @ params.embed, params.embed[s.names + 4][None]]
        x = model.inputs(params, jnp.concatenate(parts), jnp.arange(size.places))
        _, _, (b1, b2) = jax.jit(model.forward)(params, x)
        start = dynamics.thoughts((jnp.arange(s.names) == root)[None], s.names)
        thoughts = np.concatenate([start, decoded[:, : s.names]])
        answer = np.asarray(logits[0, s.thoughts, 0, : s.names])
        return Shown(
            np.asarray(found.graphs.edges[0]),
            root,
            np.asarray(found.candidates[0]),
            thoughts,
            *map(np.asarray, (b1, b2[0])),
            answer,
        )


def labels(shown: Shown) -> list[str]:
    """The sequence in letters."""
    text = ["<s>"] + [t for a, b in shown.edges.tolist() for t in (f"{a}", f"{b}", "<e>")]
    ends = ["<Q>", *map(str, shown.candidates.tolist()), "<R>", str(shown.root)]
    return text + ends + [f"t{c}" for c in range(1, len(shown.thoughts))] + ["<A>"]


def supports(shown: Shown) -> list[dict]:
    """A line per thought: what breadth-first search reaches, what the thought holds, with which weights."""
    reached = np.zeros(shown.thoughts.shape[1], bool)
    reached[shown.root] = True
    rows = []
    for c, weights in enumerate(shown.thoughts):
        held = np.flatnonzero(weights > 0.5 * len(weights) ** -0.5)
        rows.append({
            "thought": c,
            "within reach": " ".join(map(str, np.flatnonzero(reached))),
            "in the thought": " ".join(map(str, held)),
            "least weight": float(weights[held].min()),
            "largest weight": float(weights[held].max()),
            "by the theorem": float(reached.sum() ** -0.5),
        })  # fmt: skip
        after = reached.copy()
        after[shown.edges[reached[shown.edges[:, 0]], 1]] = True
        reached = after
    return rows


def kinds(ds: object) -> list[dict]:
    """A line per kind of graph: sizes of sets, wrong ones, errors, and thoughts needed."""
    rows = []
    for kind in KINDS:
        part = ds.sel(kind=kind)
        differ = wrong(part)
        discrete = wrong(part.assign(measured_thought=part.discrete_thought))
        line = {"digraphs": kind, "graphs": int(part.measured_steps.size), "vertices within reach": float(part.reached.mean())}
        line |= {
            "wrong sets": float((differ > 0).mean()),
            "largest error": float(abs(part.measured_thought - part.predicted_thought).max()),
        }
        line |= {"mean distance": float(part.predicted_steps.mean()), "thoughts needed": float(part.measured_steps.mean())}
        rows.append(
            line
            | {"needed, one vertex fed back": float(part.discrete_steps.mean()), "wrong sets, same": float((discrete > 0).mean())}
        )
    return rows


def solved(problems: list[prosqa.Problem]) -> tuple[float, float]:
    """Share of problems that the construction answers, and of thoughts with a wrong set; edges are filled up with repeated ones."""
    names, most = max(p.nodes for p in problems), max(len(p.edges) for p in problems)
    away = [digraphs.distances(p.edges, p.root) for p in problems]
    steps = max(a[p.target] for a, p in zip(away, problems, strict=True))
    with jax.enable_x64(True):
        s = Search(names=names, edges=most, thoughts=steps, rows=names + 5.0, nodes=8.0)
        edges = np.stack([p.edges[np.arange(most) % len(p.edges)] for p in problems]).astype(np.int32)
        ends = [jnp.asarray([getattr(p, name) for p in problems], jnp.int32) for name in ("root", "target", "negative")]
        graphs = digraphs.Digraph(jnp.asarray(edges), *ends)
        both = jax.random.permutation(jax.random.key(1), jnp.stack(ends[1:], 1), axis=1, independent=True)
        one = posed(s, jax.random.key(0), graphs, both)
        vectors, logits = jax.jit(think)(s, one, jax.random.key(0))
        right = np.asarray(jnp.argmax(logits[0, -1], -1) == graphs.target)
        held = np.asarray(vectors[0, : s.thoughts, :, :names]) > 0.5 * names**-0.5
    reach = np.array([[[a.get(v, names) <= c for v in range(names)] for a in away] for c in range(1, s.thoughts + 1)])
    return float(right.mean()), float(np.any(held != reach, -1).mean())


def rules(groups: dict[str, list[prosqa.Problem]]) -> list[dict]:
    """A line per rule, a column per group of problems; the construction last."""
    found = {name: prosqa.shortcuts(problems) for name, problems in groups.items()}
    rows = [{"rule": text} | {name: found[name][rule] for name in groups} for rule, text in RULES.items()]
    ours = {name: solved(problems) for name, problems in groups.items()}
    rows.append({"rule": "construction, as many thoughts as the longest path"} | {name: right for name, (right, _) in ours.items()})
    return [*rows, {"rule": "its thoughts with a wrong set"} | {name: differ for name, (_, differ) in ours.items()}]


def draw(shown: Shown, fig: Figure) -> None:
    """Layer 1 by head, layer 2 at thoughts and answer, thoughts by vertex."""
    names, count = labels(shown), len(shown.thoughts)
    top, bottom = fig.subfigures(2, 1, height_ratios=(1.5, 1))
    left, right = top.subplots(1, 2, width_ratios=(1.25, 1))
    look = shown.first.copy()
    look[:, :, 0] = 0  # heads with nothing to copy rest there
    image = np.ma.masked_less(np.max(look, 0), 1e-3)
    left.imshow(image, vmin=0, vmax=1, cmap="viridis", aspect="auto", interpolation="nearest")
    left.set_xticks(range(len(names)), names, rotation=90, fontsize=4.5)
    left.set_yticks(range(len(names)), names, fontsize=4.5)
    left.set(title="layer 1: the head that copies (rest on <s> left out)", xlabel="looks at", ylabel="token")
    order = sorted(range(shown.thoughts.shape[1]), key=lambda v: (int(np.argmax(np.append(shown.thoughts[:, v] > 0.1, True))), v))
    picture = right.imshow(shown.thoughts[:, order].T, vmin=0, vmax=1, cmap="viridis", aspect="auto", interpolation="nearest")
    right.set_xticks(range(count), ["root", *(f"t{c}" for c in range(1, count))])
    right.set_yticks(range(len(order)), order)
    right.set(title=r"weights of vertices in thoughts, $\langle t_c, u_v\rangle$", xlabel="thought", ylabel="vertex, by distance")
    top.colorbar(picture, ax=right)
    ax = bottom.subplots()
    rows = range(len(names) - count - 1, len(names))
    image = np.ma.masked_less(shown.second[list(rows)], 1e-3)
    picture = ax.imshow(image, vmin=0, vmax=1, cmap="viridis", aspect="auto", interpolation="nearest")
    edges = {3 + 3 * i: f"{a} to {b}" for i, (a, b) in enumerate(shown.edges.tolist())}
    last = 3 * len(shown.edges) + 4  # <R>
    ax.set_xticks([*edges, last], [*edges.values(), names[last]], rotation=90)
    ax.set_yticks(range(len(rows)), [f"root {names[rows[0]]}", *(names[i] for i in rows[1:])])
    ax.set(
        title="layer 2: the root and thoughts look at edges that start in them, <A> at <R>", xlabel="looks at the end of an edge"
    )
    bottom.colorbar(picture, ax=ax)
    for axes in (left, right, ax):
        axes.grid(False)
        axes.tick_params(length=0)


def draw_steps(ds: object, fig: Figure) -> None:
    """Thoughts needed by distance."""
    left, right = fig.subfigures(1, 2)
    plot_thought(ds, left)
    plot_steps(ds, right)


def run(scale: str, out: Path, **chosen: str | None) -> None:
    """Run one graph and a sweep; print, draw and save."""
    shown, file = one(SEED), chosen.get("prosqa")
    experiment.table(out, "supports", supports(shown), f"Sets by step, root {shown.root}, candidates {shown.candidates.tolist()}")
    experiment.figure(out, "sup_construction", lambda fig: draw(shown, fig), (11, 8.5))
    groups = {"generated": prosqa.draw(0, PROBLEMS[scale]), "balanced": prosqa.draw(0, PROBLEMS[scale], "balanced")}
    if file is not None:
        groups = {Path(file).name: prosqa.load(file)} | groups
    experiment.table(out, "prosqa", rules(groups), f"ProsQA, accuracy ({PROBLEMS[scale]} generated problems a column)")
    ds = experiment.sweep(out, "runs", trial, jd.grid(Search, kind=KINDS, **GRAPHS[scale]), 3).isel(form=0)
    experiment.table(out, "kinds", kinds(ds), "Sets of thoughts on random digraphs, by kind")
    experiment.figure(out, "sup_steps", lambda fig: draw_steps(ds, fig), (9, 3.8))
    experiment.save(out, "runs", ds.drop_vars(["measured_thought", "predicted_thought", "discrete_thought"]))


if __name__ == "__main__":
    sys.exit(experiment.main(run, __doc__, options=OPTIONS))
