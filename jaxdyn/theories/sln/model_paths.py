"""A small decoder trained on shortest paths: how many it solves on new graphs, and what its embeddings of edges look like.

It is trained on all connected graphs of some sizes but those held out.

It is read greedily on new problems of graphs that were held out; a shortest path counts as right whichever it is. After its first
layer, the residual stream at ``<e>`` is averaged over random orders of edges: an embedding of edges. The network before training
is read in the same ways.
Source: arXiv:2502.08794, sections 3 and 4 (graphs of 3 to 10 vertices, width 512); here a size for CPUs. Optimizer: ours.
Letters: b problems, N names, M edges for which there is room, g graphs, d width, e edges, r orders of edges.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
import xarray as xr
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, PyTree
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import nn, plotting, train
from jaxdyn.data import graphs
from jaxdyn.text import pretraining
from jaxdyn.theories.sln import dynamics, model, sequences
from jaxdyn.theories.sln.alignment import PERMUTATIONS, overview

METRICS = (
    "sym, 1, 3",
    "sym, 1, all",
    "sym, 1/sqrt, all",
    "sym, 1/lam, all",
    "rw, 1/sqrt, all",
    "rw, 1/lam, all",
    "rw, 1/lam^2, all",
)


@jd.setting
class Learning:
    """A decoder and its training.

    Args:
        lr: peak of the rate.
        least: fewest vertices of a graph.
        largest: most vertices.
        layers: of the decoder.
        width: of the decoder; the MLP has twice as many units.
        heads: of the decoder.
        batch: problems of a step.
        steps: of training.
        problems: on graphs that were held out.
        looked: graphs whose edges are embedded.
        orders: of edges over which an embedding is the mean.
        std: of all weights at the start.
    """

    lr: jd.Swept = jd.field(3e-3, above=0)
    least: int = jd.field(3, at_least=3)
    largest: int = jd.field(6, at_most=8)
    layers: int = jd.field(2, at_least=1)
    width: int = jd.field(64, at_least=1)
    heads: int = jd.field(4, at_least=1)
    batch: int = jd.field(32, at_least=1)
    steps: int = jd.field(480, at_least=10)
    problems: int = jd.field(384, at_least=1)
    looked: int = jd.field(24, at_least=1)
    orders: int = jd.field(16, at_least=1)
    std: float = jd.field(0.05, above=0)
    dtype: str = "float32"

    def __post_init__(self) -> None:
        """Refuse counts that are not positive and sizes that do not fit."""
        jd.require(self, self.least <= self.largest, "least is at most largest", "least", "largest")


class Listed(NamedTuple):
    """Graphs to train on and those held out, [g, N, N], and room for edges."""

    trained: Bool[Array, "g N N"]
    held: Bool[Array, "h N N"]
    most: int


def listed(s: Learning) -> Listed:
    """All connected graphs, parted."""
    every = tuple(a for n in range(s.least, s.largest + 1) for a in graphs.connected(n))
    inside, outside = sequences.split(tuple(len(a) for a in every))
    whole = graphs.stacked(every, s.largest)
    return Listed(jnp.asarray(whole[list(inside)]), jnp.asarray(whole[list(outside)]), s.largest * (s.largest - 1) // 2)


def network(s: Learning) -> nn.Network:
    """The decoder, with rotary positions."""
    vocabulary, hidden = s.largest + len(sequences.SPECIAL), 2 * s.width
    shape = nn.Transformer(
        vocabulary=vocabulary, width=s.width, layers=s.layers, heads=s.heads, hidden=hidden, std=s.std, scan=False, dtype=s.dtype
    )
    return nn.network(shape)


def sample_problem(s: Learning, found: Bool[Array, "g N N"], key: PRNGKeyArray, count: int) -> sequences.Problem:
    """Problems on graphs taken at random."""
    most = s.largest * (s.largest - 1) // 2

    def one(k: PRNGKeyArray) -> sequences.Problem:
        k_graph, k_problem = jax.random.split(k)
        return sequences.problem(k_problem, found[jax.random.randint(k_graph, (), 0, len(found))], most)

    return jax.vmap(one)(jax.random.split(key, count))


def loss(net: nn.Network, params: PyTree, p: sequences.Problem) -> Float[Array, ""]:
    """Mean cross-entropy of the tokens of paths, in nats."""
    logits = net.apply(params, p.tokens[:, :-1])
    each = optax.losses.softmax_cross_entropy_with_integer_labels(logits, p.tokens[:, 1:])
    return jnp.sum(each * p.learned[:, 1:]) / jnp.sum(p.learned)


def training(s: Learning, net: nn.Network, found: Bool[Array, "g N N"], key: PRNGKeyArray) -> tuple:
    """Optimizer and step: Adam with decoupled decay, gradients of norm 1 at most, warm-up of a tenth and a cosine to a tenth."""
    shape = pretraining.schedule(s.steps)
    tx = optax.chain(
        optax.clip_by_global_norm(1.0),
        optax.scale_by_adam(b2=0.98),
        optax.add_decayed_weights(0.01),
        optax.scale_by_learning_rate(lambda count: s.lr * shape(count).astype(s.dtype)),
    )
    step = train.make_step(
        lambda params, p: loss(net, params, p), tx, lambda i: sample_problem(s, found, jax.random.fold_in(key, i), s.batch)
    )
    return tx, step


def solve(net: nn.Network, params: PyTree, p: sequences.Problem) -> Int[Array, "b k"]:
    """Tokens after the source, each the likeliest after those before."""
    count = p.graph.shape[1]
    rows = jnp.arange(len(p.tokens))
    blank = p.graph.shape[1] + sequences.END
    place = jnp.arange(p.tokens.shape[1])
    tokens = jnp.where(place > p.start[:, None], blank, p.tokens)

    def read(k: Int[Array, ""], tokens: Int[Array, "b L"]) -> Int[Array, "b L"]:
        logits = net.apply(params, tokens)[rows, p.start + k]
        return tokens.at[rows, p.start + k + 1].set(jnp.argmax(logits, -1).astype(tokens.dtype))

    tokens = jax.lax.fori_loop(0, count, read, tokens)
    return tokens[rows[:, None], p.start[:, None] + 1 + jnp.arange(count)]


def table(s: Learning) -> np.ndarray:
    """Graphs whose edges are embedded: of the most vertices and some cycle, leading eigenvalues apart; held out ones first."""
    every = graphs.connected(s.largest)
    _, outside = sequences.split((s.largest,) * len(every))
    order = [*outside, *(i for i in range(len(every)) if i not in outside)]
    simple = [every[i] for i in order if every[i].sum() // 2 >= s.largest + 1 and np.diff(_values(every[i])[:6]).min() > GAP]
    jd.require(s, len(simple) >= s.looked, f"there are {len(simple)} graphs to look at", "looked")
    return np.stack(simple[: s.looked])


GAP = 0.02


def _values(a: np.ndarray) -> np.ndarray:
    """Eigenvalues of the line graph's normalised Laplacian, by numpy."""
    ends = np.argwhere(np.triu(a))
    share = (ends[:, None, :, None] == ends[None, :, None, :]).any((2, 3)) & ~np.eye(len(ends), dtype=bool)
    root = share.sum(1) ** -0.5
    return np.linalg.eigvalsh(np.eye(len(ends)) - root[:, None] * share * root)


def embedded(s: Learning, net: nn.Network, params: PyTree, graph: Bool[Array, "N N"], key: PRNGKeyArray) -> Float[Array, "e d"]:
    """Residual stream at the <e> of every edge after the first layer, mean over orders and directions of edges; 0 for padding."""
    most, names = s.largest * (s.largest - 1) // 2, s.largest

    def one(k: PRNGKeyArray) -> tuple[Int[Array, " L"], Int[Array, " e"]]:
        pairs, order = sequences.edge_tokens(k, graph, most)
        three = jnp.concatenate([pairs, jnp.full((most, 1), names + sequences.EDGE)], 1).astype(jnp.int32)
        begin = jnp.full(1, names + sequences.BOS, jnp.int32)
        return jnp.concatenate([begin, three.ravel()]), order

    tokens, order = jax.vmap(one)(jax.random.split(key, s.orders))
    if s.layers > 1:
        stream = net.trunk(params, tokens, observe=("inputs",))[1]["inputs"][1]
    else:
        stream = net.trunk(params, tokens)
    at = stream[:, 3::3]  # [r, e, d]
    back = jax.vmap(lambda x, o: jnp.zeros_like(x).at[o].set(x))(at, order)
    return jnp.mean(back, 0) * (jnp.arange(most) < jnp.sum(graph) // 2)[:, None]


def observed(
    s: Learning, net: nn.Network, first: PyTree, last: PyTree, problems: sequences.Problem, key: PRNGKeyArray
) -> dict[str, Any]:
    """What is read off a network and its start: answers to problems, and embeddings of edges next to the spectrum."""
    # answers to problems
    k_order, k_walk = jax.random.split(key)
    most = s.largest * (s.largest - 1) // 2
    double = lambda x: jnp.asarray(x, "float64")  # noqa: E731
    both = jax.tree.map(lambda *w: jnp.stack(w), last, first)
    right, guess = double(jax.lax.map(lambda w: jax.vmap(sequences.valid)(problems, solve(net, w, problems)), both))
    chance, away = jax.vmap(lambda p: (dynamics.chance(p.graph, p.away)[tuple(p.ends)], p.away[tuple(p.ends)]))(problems)
    random = double(jax.random.uniform(k_walk, chance.shape, chance.dtype) < chance)
    # embeddings of edges, and the spectrum
    looked = jnp.asarray(table(s))
    keys = jax.random.split(k_order, len(looked))
    h, h0 = jax.lax.map(lambda w: jax.vmap(lambda g, k: embedded(s, net, w, g, k))(looked, keys), both)
    edges = jax.vmap(lambda g: graphs.edges_of(g, most))(looked)
    spectra = jax.lax.map(lambda e: dynamics.spectrum(e, s.largest), edges)
    rows = model.stack([dynamics.EMBEDDINGS[name] for name in METRICS])
    squared = jax.vmap(lambda x: jax.vmap(lambda row: dynamics.squared_distances(x, row))(rows))(spectra)
    pairs = edges.real[:, :, None] & edges.real[:, None]
    return {
        "right": jd.named(right, "problem"),
        "untrained": jd.named(guess, "problem"),
        "random": jd.named(random, "problem"),
        "distance": jd.named(double(away), "problem"),
        "vertices": jd.named(double(jnp.sum(jnp.any(problems.graph, 1), 1)), "problem"),
        "embedding": jd.named(h, "graph edge unit"),
        "unlearned": jd.named(h0, "graph edge unit"),
        "vectors": jd.named(spectra.vectors, "graph edge mode"),
        "values": jd.named(spectra.values, "graph mode"),
        "real": jd.named(double(edges.real), "graph edge"),
        "squared": jd.named(jnp.where(pairs[:, None], squared, 0), "graph metric edge other"),
    }


@jd.imports("networkx", install="jaxdyn[suite]")
def trial(s: Learning, key: PRNGKeyArray) -> jd.Observables:
    """Train; answers to problems on graphs held out, and embeddings of edges next to the spectrum of the line graph.

    Some 40 s of CPU: a decoder of two layers has to be trained for hundreds of steps before it finds any path of two edges.
    """
    k_init, k_data, k_problem, k_read = jax.random.split(key, 4)
    found, net = listed(s), network(s)
    tx, step = training(s, net, found.trained, k_data)
    start = net.init(k_init)
    problems = sample_problem(s, found.held, k_problem, s.problems)
    last, curve = train.record(
        step, train.init(tx, start), lambda state: loss(net, state.params, problems), samples=4, every=s.steps // 4
    )
    recorded = observed(s, net, start, last.params, problems, k_read)
    return jd.observables(
        predicted={"right": jd.named(jnp.ones(s.problems, "float64"), "problem")},
        measured={"right": recorded.pop("right")},
        recorded=recorded | {"curve": jd.named(curve, "record")},
        status=train.finite_status(last.params),
        coords={"metric": METRICS, "record": range(0, 4 * (s.steps // 4) + 1, s.steps // 4)},
    )


LEVEL = 0.95  # of each interval
NEAR, FAR = "adjacent pairs solved", "other pairs solved"


def solved(ds: xr.Dataset, right: xr.DataArray) -> dict[str, xr.DataArray]:
    """Share of adjacent and of other pairs for which the answers are right, of each network."""
    near = ds.distance == 1
    return {NEAR: right.where(near).mean("problem"), FAR: right.where(~near).mean("problem")}


def judge_accuracy(ds: xr.Dataset) -> list[jd.Check | jd.Reading]:
    """Greedy answers to problems on graphs that were held out, by distance: means over networks."""
    both = solved(ds, ds.measured_right)
    return [jd.mean_reading(name, share, over="seed", level=LEVEL) for name, share in both.items()]


def answered(variable: str) -> dict[str, Callable[..., float]]:
    """What is read if the answers are those of another variable."""
    return {name: lambda ds, name=name: float(solved(ds, ds[variable])[name].mean()) for name in (NEAR, FAR)}


def each_graph(ds: xr.Dataset, embedding: xr.DataArray) -> xr.DataArray:
    """:func:`overview` of every graph of every run, along ``quantity``."""

    def one(h: np.ndarray, vectors: np.ndarray, values: np.ndarray, real: np.ndarray, number: int) -> np.ndarray:
        m = int(real.sum())
        return np.array(overview(h[:m].astype(float), vectors[:m, :m], values[:m], int(number)))

    axes = [["edge", "unit"], ["edge", "mode"], ["mode"], ["edge"], []]
    number = xr.DataArray(np.arange(ds.sizes["graph"]), dims="graph")
    return xr.apply_ufunc(
        one,
        embedding,
        ds.vectors,
        ds["values"],
        ds["real"],
        number,
        input_core_dims=axes,
        output_core_dims=[["quantity"]],
        vectorize=True,
    )


MATCHED, ABOVE = "matched correlation, mean over graphs", "graphs above the 99% quantile of permutations"
GAIN, SLOW = "matched correlation minus that before training", "share of weights on the slower half of modes"


def judge_embedding(ds: xr.Dataset) -> list[jd.Check | jd.Reading]:
    """Matched correlation, how often it exceeds its null, its gain by training, and fitted weights: means over networks."""
    found, before = each_graph(ds, ds.embedding), each_graph(ds, ds.unlearned)
    rho, limit, share = (found.isel(quantity=i) for i in range(3))
    above = (rho > limit).where(rho.notnull())
    each = {MATCHED: rho, ABOVE: above, GAIN: rho - before.isel(quantity=0), SLOW: share}
    return [jd.mean_reading(name, values.mean("graph"), over="seed", level=LEVEL) for name, values in each.items()]


def permuted(ds: xr.Dataset) -> xr.DataArray:
    """Embeddings belong to other edges of the same graph."""
    rng = np.random.default_rng(0)

    def shuffle(h: np.ndarray, real: np.ndarray) -> np.ndarray:
        h, m = h.copy(), int(real.sum())
        h[:m] = h[:m][rng.permutation(m)]
        return h

    axes = [["edge", "unit"], ["edge"]]
    moved = xr.apply_ufunc(shuffle, ds.embedding, ds["real"], input_core_dims=axes, output_core_dims=axes[:1], vectorize=True)
    return moved


def distance_correlations(ds: xr.Dataset, embedding: str = "embedding") -> xr.DataArray:
    """Pearson correlation over pairs of edges between squared distances of the network and of navigation, by metric."""

    def one(h: np.ndarray, squared: np.ndarray, real: np.ndarray) -> np.ndarray:
        m = int(real.sum())
        pairs = np.triu_indices(m, 1)
        ours = ((h[:m, None] - h[:m]) ** 2).sum(-1)[pairs]
        return np.array([np.corrcoef(ours, x[:m, :m][pairs])[0, 1] if np.ptp(x[:m, :m][pairs]) > 1e-9 else np.nan for x in squared])

    axes = [["edge", "unit"], ["metric", "edge", "other"], ["edge"]]
    return xr.apply_ufunc(
        one, ds[embedding], ds.squared, ds["real"], input_core_dims=axes, output_core_dims=[["metric"]], vectorize=True
    )


def plot_accuracy(ds: xr.Dataset, fig: Figure) -> None:
    """Share solved by distance, next to chance."""
    ax = fig.subplots()
    distances = range(1, int(ds.distance.max()) + 1)
    for name, label, color in (("measured_right", "network", "measured"), ("random", "random neighbours", "theory")):
        values = [100 * float(ds[name].where(ds.distance == d).mean()) for d in distances]
        ax.plot(distances, values, "o-", label=label, color=plotting.COLORS[color])
    ax.set(xlabel="distance of source and target", ylabel="problems solved, %", xticks=list(distances), ylim=(0, 102))
    ax.legend()


def plot_embedding(ds: xr.Dataset, fig: Figure) -> None:
    """Matched correlation of every graph against the null's quantile, after and before training."""
    ax = fig.subplots()
    for name, label, color in (("embedding", "trained", "measured"), ("unlearned", "before training", "control")):
        rho, limit, _ = each_graph(ds, ds[name]).transpose("quantity", ...).values
        ax.plot(limit.ravel(), rho.ravel(), "o", ms=4, label=label, color=plotting.COLORS[color])
    ax.plot([0, 1], [0, 1], "--", color=plotting.COLORS["theory"])
    ax.set(xlabel="99% quantile with edges permuted", ylabel="matched correlation", xlim=(0.4, 1), ylim=(0, 1))
    ax.legend()


STUDY = jd.Study(
    trial=trial,
    quick=jd.grid(Learning),
    paper=jd.grid(Learning, largest=8, steps=12_000, problems=600),
    seeds=4,
    paper_seeds=4,
    evidence="network",
    source="arXiv:2502.08794, sections 3 and 4 (12 million graphs of up to 10 vertices, width 512)",
    tested="Decoders of {layers} layers and width {width} with rotary positions, trained for {steps} steps of Adam on {batch} "
    "problems each from four in five of the connected graphs of {least} to {largest} vertices; then {problems} problems on the "
    "other graphs are asked; {seeds} seeds.",
)

CLAIMS = (
    STUDY.claim(
        id="sln.model_acc",
        talks=("training:sln-task",),
        title="How many shortest paths a small decoder finds on new graphs",
        statement="How many shortest paths does a small decoder find on graphs that were held out, between adjacent vertices and "
        "between others, where any shortest path counts?",
        expected="measured",
        recorded={
            "adjacent pairs solved": (0.869, 0.9145, 0.96),
            "other pairs solved": (0.111, 0.1907, 0.27),
        },
        judge=judge_accuracy,
        controls={"distances of other problems": jd.rolled(distance="problem")},
        rivals={
            "the network before training": jd.off(answered("untrained")),
            "random neighbours": answered("random"),
        },
        plot=plot_accuracy,
        caption="Share of problems on held-out graphs that are solved, by distance of source and target, and by random neighbours.",
    ),
    STUDY.claim(
        id="sln.embedding_corr",
        talks=("training:sln-correlation",),
        title="Do a decoder's embeddings of edges follow the line graph's spectrum?",
        statement="How far do the embeddings of edges after the first layer follow the spectrum of the line graph? The readings "
        "are the matched correlation of their 3 leading principal components with its 5 slowest modes (more than .9 in print), how "
        "often it exceeds 99% of random permutations of the edges, by how much it exceeds that of the same network before "
        "training, and the share of the slower half of the modes among the weights that fit the embeddings. (These networks stay "
        "below .9, and the interval of the gain by training contains 0: most of the correlation is there before any training.)",
        expected="measured",
        recorded={
            "matched correlation, mean over graphs": (0.759, 0.8032, 0.848),
            "graphs above the 99% quantile of permutations": (0.3, 0.5208, 0.741),
            "matched correlation minus that before training": (-0.0239, 0.02423, 0.0724),
            "share of weights on the slower half of modes": (0.787, 0.8091, 0.831),
        },
        tested="Decoders of {layers} layers and width {width} with rotary positions, trained for {steps} steps of Adam on "
        "{batch} problems each from four in five of the connected graphs of {least} to {largest} vertices; {looked} graphs of "
        f"{{largest}} vertices, held-out ones first, with leading eigenvalues apart by {GAP} at least, {PERMUTATIONS} "
        f"permutations; {{seeds}} seeds.",
        judge=judge_embedding,
        controls={"edges permuted": jd.swap(embedding=permuted)},
        rivals={"embeddings have nothing to do with the spectrum": jd.off({ABOVE: 0.01, SLOW: 0.5})},
        plot=plot_embedding,
        caption="Matched correlation of each graph over the 99% quantile of its null, after and before training.",
    ),
)
