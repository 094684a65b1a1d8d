r"""Layer 1 of the construction: its heads look at one place, in two forms of positions and precisions, with the outputs printed.

The layer reads whole sequences in one pass: prompt, the right thoughts, the answer's token. Recorded are each head's weight at the
one place where it should look, and the layer's outputs, decoded by :math:`U^\top` block by block, with what is left of positions.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.data import digraphs
from jaxdyn.theories.sup import construction, dynamics, model
from jaxdyn.theories.sup.construction import Knobs, Sizes

POSITIONS = ("sinusoids", "rotary")


@jd.setting
class Copying:
    """Digraphs, and layer 1 of the construction with factors on its numbers."""

    positions: jd.Code = jd.code(*POSITIONS)  # added sinusoids, or rotary
    base: jd.Swept = jd.field(200.0, above=1)  # of the rotary positions
    eta: jd.Swept = jd.field(1.0, role="none")  # factor on eta, of the keys in layer 1
    xi: jd.Swept = 1.0  # factor on xi, of the queries that look at place 1
    position: jd.Swept = 1.0  # factor on the positions; 0: none
    names: int = jd.field(20, at_least=digraphs.LEAST)  # N, vertices of a digraph
    edges: int = jd.field(30, at_least=9)  # m, edges of a digraph
    thoughts: int = jd.field(4, at_least=1)  # C, correct thoughts after the prompt
    width: int = jd.field(32, at_least=4)  # of positions
    graphs: int = jd.field(8, at_least=1)  # digraphs for one set of weights
    dtype: str = "float64"

    def __post_init__(self) -> None:
        jd.require(self, self.width % 2 == 0, "width is even", "width")


def trial(s: Copying, key: PRNGKeyArray) -> jd.Observables:
    """Weights of all heads at their places, and outputs next to the formulas."""
    # graphs with their prompts and the right thoughts
    size = Sizes(names=s.names, edges=s.edges, thoughts=s.thoughts, width=s.width)
    k_u, k_graph = jax.random.split(key)
    keys = jax.random.split(k_graph, s.graphs)
    graphs = jax.vmap(lambda k: digraphs.draw(k, 0, s.names, names=s.names, edges=s.edges, steps=s.thoughts))(keys)
    both = jnp.stack([graphs.target, graphs.other], 1)
    tokens = jax.vmap(lambda e, c, r: construction.prompt(size, e, c, r))(graphs.edges, both, graphs.root)
    members = jax.vmap(lambda e, r: digraphs.within(e, r, s.names, s.thoughts)[1:])(graphs.edges, graphs.root)  # [g, c, N]
    # the weights, and the layer on whole sequences
    rotary = model.Rotary(jnp.asarray(s.base, s.dtype), jnp.asarray(s.positions == "rotary", s.dtype))
    safe = construction.safe(size, rotary, s.dtype)
    knobs = Knobs(s.eta * safe.eta, s.xi * safe.xi, safe.tau, safe.first, safe.second, s.position)
    u = construction.orthogonal(k_u, size.tokens, s.dtype)
    params = construction.build(size, u, knobs, rotary)
    thoughts = dynamics.thoughts(members, size.tokens, s.dtype) @ params.embed
    answer = jnp.broadcast_to(params.embed[s.names + construction.SPECIAL.index("A")], (s.graphs, 1, params.embed.shape[1]))
    x = model.inputs(params, jnp.concatenate([params.embed[tokens], thoughts, answer], 1), jnp.arange(size.places))
    (y, _), _, (b, _) = model.forward(params, x)
    # outputs by token, the weight at the right places, and the formulas
    d = size.tokens
    decoded = jnp.einsum("gnad,dv->gnav", y[..., : 3 * d].reshape(s.graphs, -1, 3, d), u)
    at = jax.vmap(lambda t: dynamics.places(size, t))(tokens)  # [g, h, T]
    seen = jnp.take_along_axis(b, at[..., None], -1)[..., 0]
    expected = jax.vmap(lambda t, h: dynamics.outputs(size, t, h, s.dtype))(tokens, members)
    uniform = jnp.broadcast_to(1 / (1 + jnp.arange(size.places).astype(s.dtype)), seen.shape)
    alone = jnp.pad(expected[:, :, :1], ((0, 0), (0, 0), (0, 2), (0, 0)))
    heads, blocks = "graph head place", "graph place block token"
    return jd.observables(
        predicted={"weight": jd.named(jnp.ones_like(seen), heads), "output": jd.named(expected, blocks)},
        measured={"weight": jd.named(seen, heads), "output": jd.named(decoded, blocks)},
        recorded={
            "uniform": jd.named(uniform, heads),
            "alone": jd.named(alone / jnp.linalg.norm(alone, axis=(2, 3), keepdims=True), blocks),
            "left": jnp.max(jnp.abs(y[..., 3 * d :])),
            "allowed": safe.first / 5,
        },
    )


PRECISIONS = ["float64", "float32"]


def judge_weight(ds: xr.Dataset) -> list[jd.Check]:
    """Weight that is not at the right place, of every head at every place, over what the theorem allows."""
    missing = abs(ds.predicted_weight - ds.measured_weight)
    return [jd.at_most("weight elsewhere over that allowed", missing / ds.allowed, 1.0)]


def judge_layer(ds: xr.Dataset) -> list[jd.Check]:
    """Outputs against the formulas, and what is left of positions, for both precisions."""
    jd.need(ds, dtype=PRECISIONS)
    error = abs(ds.measured_output - ds.predicted_output)
    return [
        jd.at_most("outputs in float64: absolute error", error.sel(dtype="float64"), 1e-12),
        jd.at_most("outputs in float32: absolute error", error.sel(dtype="float32"), 1e-6),
    ]


def plot_weight(ds: xr.Dataset, fig: Figure) -> None:
    """Weight that is not where it should be, by head."""
    ax = fig.subplots()
    names = ("<e>, source", "<e>, target", "<R>, 2 back", "<R>, 1 back", "<A>, 1 back")
    missing = (ds.predicted_weight - ds.measured_weight).max(("graph", "place"))
    for i in range(len(names)):
        values = missing.isel(head=i).values.ravel()
        ax.plot(np.full(values.size, i), np.maximum(values, 1e-17), ".", color=plotting.COLORS["measured"])
    ax.axhline(float(ds.allowed.max()), linestyle="--", color=plotting.COLORS["theory"])
    ax.set_xticks(range(len(names)), names)
    ax.set(yscale="log", ylabel="weight elsewhere, largest of all places")


def plot_layer(ds: xr.Dataset, fig: Figure) -> None:
    """Outputs against the formulas."""
    ax = fig.subplots()
    run = plotting.first_run(ds)
    there = run.predicted_output.values.ravel(), run.measured_output.values.ravel()
    keep = (there[0] != 0) | (np.arange(there[0].size) % 50 == 0)
    ax.plot(there[0][keep], there[1][keep], ".", color=plotting.COLORS["measured"])
    ax.plot([0, 1], [0, 1], "--", color=plotting.COLORS["theory"])
    ax.set(xlabel="formula", ylabel="output of layer 1")


STUDY = jd.Study(
    trial=trial,
    quick=jd.grid(Copying, dtype=PRECISIONS),
    paper=jd.grid(Copying, dtype=PRECISIONS, names=40, edges=60, thoughts=8),
    seeds=4,
    paper_seeds=32,
    evidence="algebra",
    bounds="derived: the attention elsewhere that the theorem allows, and rounding in float64 and float32",
    source="arXiv:2505.12514, section 4.1 and appendix B (attention chooser, outputs of layer 1); numbers of the weights: derived",
    tested="Explicit weights, no training, in {dtype}: {graphs} prompts of {edges} random edges among {names} vertices, each "
    "followed by {thoughts} correct thoughts, for each of {seeds} sets of random orthonormal token vectors. Positions: "
    "{positions}.",
)
UNIFORM = {"attention is uniform": jd.swap(predicted_weight="uniform")}

CLAIMS = (
    STUDY.claim(
        id="sup.chooser",
        title="Each head of the graph-search construction attends to one place",
        statement="In the construction, with 8 to 64 numbers for positions of 101 places, each of the five heads of layer 1 puts "
        r"at least $1 - \epsilon_1 / 5$ of its attention, $\epsilon_1 = 1/(2\sqrt n)$ for $n$ vertices, on a single place: one or "
        "two places back where its own token stands, and the first place everywhere else, in float64 and in float32.",
        talks=("practical:sup-theorem",),
        judge=judge_weight,
        holds={"width": (8, 64)},
        controls={
            "no positions": {"position": 0.0},
            r"$\eta$ a fifth": jd.Control({"eta": 0.2}, breaks=r"1 - \epsilon_1 / 5"),
            r"$\xi = 0$: no place for other tokens": {"xi": 0.0},
        },
        rivals=UNIFORM,
        plot=plot_weight,
        caption="Weight of each head of layer 1 on all places but the right one, the largest of all places and graphs of a run; "
        "dashed: what the construction allows. One point per run.",
    ),
    STUDY.claim(
        id="sup.rotary",
        title="With rotary positions, too, each head attends to one place",
        statement="With rotary positions in place of sinusoids each of the five heads of layer 1 of the construction still puts at "
        r"least $1 - \epsilon_1 / 5$ of its attention, $\epsilon_1 = 1/(2\sqrt n)$ for $n$ vertices, on a single place: one or two "
        "places back where its own token stands, and the first place everywhere else, in float64 and in float32, if the base of "
        "the rotation is $M = 200$ for 101 places and each head has 32 pairs of numbers.",
        quick=jd.grid(Copying, dtype=PRECISIONS, positions="rotary"),
        paper=jd.grid(Copying, dtype=PRECISIONS, positions="rotary", names=40, edges=60, thoughts=8, base=400.0),
        source="arXiv:2505.12514, appendix B (rotary form); base and precision: derived",
        judge=judge_weight,
        controls={"$M = 10^4$": {"base": 1e4}, r"$\xi = 0$: no place for other tokens": {"xi": 0.0}},
        rivals=UNIFORM,
        plot=plot_weight,
        caption="Weight of each head of layer 1 on all places but the right one, rotary positions, the largest of all places and "
        "graphs of a run; dashed: what the construction allows. One point per run.",
    ),
    STUDY.claim(
        id="sup.layer1",
        title="The first layer copies both ends of every edge to one place",
        statement="With $u_v$ the vector of token $v$ and three blocks (content, buffer 1, buffer 2), layer 1 of the "
        r"construction turns the end mark of each edge $(s, t)$ into $(u_e, u_s, u_t)/\sqrt 3$, the root's mark into $(u_R, 0, "
        r"u_{c_1} + u_{c_2})/\sqrt 3$ with both candidates $c_1, c_2$, the answer's mark into $(u_A, \sum_{v \in V} u_v, "
        r"0)/\sqrt{|V| + 1}$ with $V$ the vertices in the last thought, and leaves all other tokens, and thoughts $\sum_{v \in V} "
        r"u_v / \sqrt{|V|}$, as they are: to $10^{-12}$ in float64 and $10^{-6}$ in float32, with 8 to 64 numbers for positions "
        "of 101 places.",
        talks=("practical:sup-theorem",),
        judge=judge_layer,
        holds={"width": (8, 64)},
        decides={
            "every edge": ("outputs in float64: absolute error", "no positions"),
            "all other tokens": ("outputs in float64: absolute error", r"$\xi = 0$: no place for other tokens"),
        },
        controls={r"$\xi = 0$: no place for other tokens": {"xi": 0.0}, "no positions": {"position": 0.0}},
        rivals={"nothing is copied": jd.swap(predicted_output="alone")},
        plot=plot_layer,
        caption="Entries of the outputs of layer 1, decoded block by block, against the formulas, one run.",
    ),
)
