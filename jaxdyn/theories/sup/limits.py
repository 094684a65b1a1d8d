"""Where the construction ends: its printed threshold, roots without exits, and blocks narrower than the vocabulary."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.sup.graph_search import Search, trial
from jaxdyn.theories.sup.supports import STILL, members, wrong


def judge_thought(ds: xr.Dataset) -> list[jd.Check]:
    """Sets of all thoughts."""
    return [jd.at_most("tokens in which a thought's set is wrong", wrong(ds), 0)]


def judge_threshold(ds: xr.Dataset) -> list[jd.Check]:
    """Sets of all thoughts, and vertices within reach that the last one lacks, by number of vertices."""
    jd.need(ds, nodes=(7.0, 8.0))
    missing = (ds.reached - members(ds.measured_thought.isel(thought=-1)).sum("token")).where(ds.status == 0)
    few, many = missing.where(ds.nodes < 7.5, drop=True), missing.where(ds.nodes > 7.5, drop=True)
    return [
        *judge_thought(ds),
        jd.at_most("vertices missing, up to 7 vertices", few, 0),
        jd.within("vertices missing, from 8 vertices on", many, 1, 1),
    ]


def judge_exit(ds: xr.Dataset) -> list[jd.Check]:
    """Sets of all thoughts, and the least size of a first one."""
    size = members(ds.measured_thought.isel(thought=0)).sum("token").where(ds.status == 0)
    return [*judge_thought(ds), jd.at_least("vertices in the first thought", size, 2)]


def judge_narrow(ds: xr.Dataset) -> list[jd.Check | jd.Reading]:
    """Share of graphs all of whose thoughts hold the right sets, by numbers in a block."""
    jd.need(ds, rows=ROWS)
    right = (wrong(ds).max("thought") == 0).where(ds.status == 0)
    runs = [str(d) for d in right.dims if d != "rows"]
    return [
        jd.share_reading(f"graphs with the right sets, {rows:.0f} numbers in a block", right.sel(rows=rows), over=runs)
        for rows in ROWS
    ]


def plot_sets(ds: xr.Dataset, fig: Figure) -> None:
    """Vertices in the last thought against those within reach."""
    ax = fig.subplots()
    have = members(ds.measured_thought.isel(thought=-1)).sum("token").transpose("nodes", ...)
    reach = ds.reached.transpose("nodes", ...)
    ax.plot(
        ds.nodes, have.values.reshape(ds.sizes["nodes"], -1).mean(1), "o-", color=plotting.COLORS["measured"], label="last thought"
    )
    ax.plot(
        ds.nodes, reach.values.reshape(ds.sizes["nodes"], -1).mean(1), "--", color=plotting.COLORS["theory"], label="within reach"
    )
    ax.set(xlabel="vertices of the graph", ylabel="vertices, mean over graphs")
    ax.legend()


def plot_sizes(ds: xr.Dataset, fig: Figure) -> None:
    """Vertices in thoughts against those within reach."""
    ax = fig.subplots()
    expected, measured = (members(ds[name]).sum("token") for name in ("predicted_thought", "measured_thought"))
    x, y = expected.values.ravel(), measured.broadcast_like(expected).transpose(*expected.dims).values.ravel()
    (reach, held), count = np.unique(np.stack([x, y]), axis=1, return_counts=True)
    ax.scatter(reach, held, s=2 + np.sqrt(count) * 4, color=plotting.COLORS["measured"])
    ax.plot([1, x.max()], [1, x.max()], "--", color=plotting.COLORS["theory"])
    ax.set(xlabel="vertices within reach", ylabel="vertices in the thought")


def plot_narrow(ds: xr.Dataset, fig: Figure) -> None:
    """Share of graphs with the right sets over the numbers in a block."""
    ax = fig.subplots()
    right = wrong(ds).max("thought") == 0
    ax.plot(ds.rows, right.mean([d for d in right.dims if d != "rows"]), "o-", color=plotting.COLORS["measured"])
    ax.set(xlabel="numbers in a block (53 tokens)", ylabel="graphs with the right sets")


WHOLE = 53.0  # as many numbers as tokens
ROWS = (26.0, 45.0, 52.0, WHOLE)
STUDY = jd.Study(
    trial=trial,
    quick=jd.grid(Search, kind=["random", "tree"], nodes=24.0),
    paper=jd.grid(Search, kind=["random", "tree"], nodes=24.0, names=64, edges=96, thoughts=16),
    seeds=1,
    paper_seeds=8,
    evidence="algebra",
    bounds="derived: a set is right or not; vertices are counted",
    form="printed",
    source="arXiv:2505.12514, Lemma 2, Theorem 1 and appendix B",
)
DISCRETE = {"one vertex of a thought is fed back": jd.swap(measured_thought="discrete_thought")}
SETUP = "{edges} edges, with one set of token vectors; {thoughts} thoughts; explicit weights in float64, no training."


THRESHOLD = STUDY.claim(
    id="sup.threshold_erratum",
    title="The printed threshold loses a vertex on some nearly complete graphs",
    statement=r"On nearly complete digraphs of $n$ vertices, with orthonormal token vectors and the printed threshold "
    r"$\epsilon_2 = 1/(4n)$ of layer 2, the construction loses a vertex if it is the end of only $k$ of the $m_c$ edges that start "
    r"within $c$ steps of the root and $k / (\sqrt 3\,m_c) < \epsilon_2$: for $n = 6$ and 7 none, and for $n = 8$ and 9 the one "
    "that hangs by a single edge.",
    talks=("practical:sup-theorem",),
    quick=jd.grid(Search, kind="dense", nodes=[6.0, 7.0, 8.0, 9.0], threshold="printed"),
    paper=jd.grid(
        Search, kind="dense", nodes=[6.0, 7.0, 8.0, 9.0, 10.0, 11.0], threshold="printed", names=64, edges=96, thoughts=16
    ),
    form="derived",
    source="derived; arXiv:2505.12514, Lemma 2 for the threshold",
    tested="{graphs} digraphs of {nodes} vertices each: all edges among $n - 3$ vertices, one of them the root, one more vertex "
    "that "
    f"hangs on these by a single edge, and an edge apart; {SETUP}",
    judge=judge_threshold,
    controls={
        r"the threshold $1/(4\max(m, n))$: nothing is lost": {"threshold": "corrected"},
        r"$\tau$ a fiftieth": jd.Control({"tau": 0.02}, breaks="for $n = 6$ and 7 none"),
        **DISCRETE,
    },
    rivals=STILL,
    plot=plot_sets,
    caption="Mean number of vertices in the eighth thought with the printed threshold, and within reach (dashed), by number of "
    "vertices of the nearly complete digraphs.",
)
EXIT = STUDY.claim(
    id="sup.no_exit",
    title="If no edge leaves the root, a thought may hold what is out of reach",
    statement="If no edge leaves the root and the token vectors are orthonormal, the construction's attention in the first "
    r"thought is uniform over all $t = 3m + 6$ places, so that each vertex with $k$ of the $m$ edges into it enters if "
    r"$k / (\sqrt 3\,t) \ge \epsilon_2$ (a candidate counts as one edge more); later thoughts add the ends of edges that leave "
    r"them. This holds for layer 2's threshold $\epsilon_2 = 1/(4\max(m, n))$ with $n$ possible vertices; if more edges "
    "lead to vertices other than the root than there are such vertices, the first thought never is the root alone.",
    talks=("practical:sup-theorem",),
    quick=jd.grid(Search, kind="no_exit", nodes=[8.0, 24.0]),
    paper=jd.grid(Search, kind="no_exit", nodes=[8.0, 24.0, 48.0], names=64, edges=96, thoughts=16),
    form="derived",
    source="derived, for the construction of arXiv:2505.12514, appendix B",
    tested=f"{{graphs}} random digraphs of {{nodes}} vertices each, none of whose edges starts or ends at the root; {SETUP}",
    judge=judge_exit,
    decides={"never": ("vertices in the first thought", r"threshold $\epsilon_2 = 1/2$")},
    controls={r"threshold $\epsilon_2 = 1/2$": {"threshold": "half"}, **DISCRETE},
    rivals=STILL,
    plot=plot_sets,
    caption="Mean number of vertices in the eighth thought, and within reach (dashed), by number of vertices; no edge leaves the "
    "root.",
)

CLAIMS = (
    STUDY.claim(
        id="sup.dim",
        title="Blocks as wide as the vocabulary suffice for the graph search",
        statement="Three blocks of as many numbers as there are tokens, and 16 numbers for positions, suffice for the "
        "construction: with orthonormal token vectors, along the axes or in random directions, and layer 2's threshold "
        r"$1/(4\max(m, n))$ for $m$ edges and $n$ possible vertices, thought $c$ holds the vertices within $c$ steps of the root, "
        "and no other token, if an edge leaves the root.",
        talks=("practical:sup-theorem-dimension",),
        quick=jd.grid(Search, kind=["random", "tree"], nodes=24.0, embedding=["orthogonal", "axes"]),
        paper=jd.grid(
            Search,
            kind=["random", "tree"],
            nodes=24.0,
            embedding=["orthogonal", "axes"],
            names=64,
            edges=96,
            thoughts=16,
            rows=69.0,
        ),
        tested="{graphs} random digraphs and {graphs} trees with forward edges, of {nodes} vertices out of {names} names, with "
        f"5 special tokens; {SETUP}",
        judge=judge_thought,
        excused={"law": "the claim is on which tokens a thought holds; their common size is decided by sup.superposition"},
        controls={
            "random vectors of 26 numbers": jd.Control(
                {"embedding": "random", "rows": 26.0}, why="The number of rows is that of random vectors alone."
            ),
            "no edge leaves the root": {"kind": "no_exit"},
            **DISCRETE,
        },
        rivals=STILL,
        plot=plot_sizes,
        caption="Vertices in each of the 8 thoughts against those within reach, all graphs; larger dots for more of them.",
    ),
    STUDY.claim(
        id="sup.narrow",
        title="The graph search in blocks narrower than the vocabulary",
        statement="On what share of graphs are the sets of all thoughts right if the vectors of 53 tokens have fewer numbers: "
        "26, 45 or 52, or all 53? The vectors are the columns of the first rows of a random orthogonal matrix, scaled to length "
        "one; the rest of the construction is unchanged.",
        talks=("practical:sup-theorem-dimension",),
        expected="measured",
        recorded={
            "graphs with the right sets, 26 numbers in a block": (0, 0, 0.0644),
            "graphs with the right sets, 45 numbers in a block": (0, 0, 0.0644),
            "graphs with the right sets, 52 numbers in a block": (0, 0, 0.0644),
            "graphs with the right sets, 53 numbers in a block": (0.935, 1, 1),
        },
        quick=jd.grid(Search, kind=["random", "tree"], nodes=24.0, embedding="frame", rows=list(ROWS)),
        paper=jd.grid(Search, kind=["random", "tree"], nodes=24.0, embedding="frame", rows=list(ROWS)),
        seeds=4,
        paper_seeds=4,
        tested="Explicit weights, no training: {graphs} random digraphs and {graphs} trees with forward edges, of {nodes} "
        "vertices and {edges} edges, for each of {seeds} random matrices; {thoughts} thoughts.",
        judge=judge_narrow,
        controls={"orthonormal vectors of 53 numbers": {"embedding": "orthogonal"}, **DISCRETE},
        rivals=STILL,
        plot=plot_narrow,
        caption="Share of graphs all of whose 8 thoughts hold the right sets, over the numbers in a block of a token's vector.",
    ),
    THRESHOLD,
    THRESHOLD.as_printed(
        id="sup.superposition_as_printed",
        title="With the printed threshold a thought holds all vertices within reach",
        form="printed",
        printed=r"arXiv:2505.12514, Lemma 2, with layer 2's threshold $\epsilon = 1/(4n)$ of appendix B: "
        r"$[t_c] = |V_c|^{-1/2} \sum_{v \in V_c} u_v$",
        statement=r"With the threshold $\epsilon_2 = 1/(4n)$ of layer 2, for $n$ vertices, thought $c$ of the construction "
        "holds all vertices within $c$ steps of the root, also on nearly complete digraphs.",
        talks=("practical:sup-theorem",),
        judge=judge_thought,
    ),
    EXIT,
    EXIT.as_printed(
        id="sup.no_exit_beyond",
        title="Thoughts hold what is within reach even if no edge leaves the root",
        form="printed",
        statement="Thought $c$ of the construction holds exactly the vertices within $c$ steps of the root, also where no edge "
        "leaves the root. (The paper assumes a root with an edge.)",
        talks=("practical:sup-theorem",),
        judge=judge_thought,
    ),
)
