"""Claims on small decoders that learn shortest paths: how many they find, and what their embeddings of edges look like."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.sln import alignment
from jaxdyn.theories.sln.trials.paths import Learning, trial

__all__ = ["CLAIMS", "distance_correlations", "judge_accuracy", "judge_embedding", "overview", "permuted"]

COMPONENTS, MODES, PERMUTATIONS = 3, 5, 200
RUNS = ("seed", "problem")


def judge_accuracy(ds: xr.Dataset) -> list[jd.Check]:
    """Greedy answers to problems on graphs that were held out, by distance, with Wilson's intervals."""
    near = ds.distance == 1
    return [
        jd.share_within("adjacent pairs solved", ds.measured_right.where(near), over=RUNS, low=0.99),
        jd.share_within("other pairs solved", ds.measured_right.where(~near), over=RUNS, low=0.99),
    ]


def overview(embedding: np.ndarray, vectors: np.ndarray, values: np.ndarray, number: int) -> tuple[float, float, float]:
    """Of one graph, without padding: matched correlation, the 99% quantile of its null, share of weights on the slower modes.

    Args:
        embedding: of edges, [e, d].
        vectors: eigenvectors in ascending order, the trivial one first, [e, e].
        values: eigenvalues.
        number: of the graph, for the permutations.
    """
    components = alignment.principal(embedding, COMPONENTS)
    modes = vectors[:, 1 : 1 + MODES]
    limit = np.quantile(alignment.null(components, modes, PERMUTATIONS, number), 0.99)
    w = alignment.weights(embedding, vectors[:, 1:])
    slow = values[1:] < np.median(values[1:])
    share = w[slow].mean() / max(w[slow].mean() + w[~slow].mean(), 1e-300)
    return alignment.matched(components, modes), float(limit), float(share)


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


def judge_embedding(ds: xr.Dataset) -> list[jd.Check]:
    """Mean over graphs of the matched correlation, how often it exceeds its null, its gain by training, and fitted weights."""
    found, before = each_graph(ds, ds.embedding), each_graph(ds, ds.unlearned)
    rho, limit, share = (found.isel(quantity=i) for i in range(3))
    over = ("seed", "graph")
    return [
        jd.mean_within("matched correlation, mean over graphs", rho, over=over, low=0.9),
        jd.share_within("graphs above the 99% quantile of permutations", rho > limit, over=over, low=0.9),
        jd.mean_within("matched correlation less that before training", rho - before.isel(quantity=0), over=over, low=0.05),
        jd.mean_within("share of weights on the slower half of modes", share, over=over, low=0.6),
    ]


def permuted(ds: xr.Dataset) -> xr.Dataset:
    """Embeddings belong to other edges of the same graph."""
    rng = np.random.default_rng(0)

    def shuffle(h: np.ndarray, real: np.ndarray) -> np.ndarray:
        h, m = h.copy(), int(real.sum())
        h[:m] = h[:m][rng.permutation(m)]
        return h

    axes = [["edge", "unit"], ["edge"]]
    moved = xr.apply_ufunc(shuffle, ds.embedding, ds["real"], input_core_dims=axes, output_core_dims=axes[:1], vectorize=True)
    return ds.assign(embedding=moved.transpose(*ds.embedding.dims))


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
    """Share solved by distance, beside chance."""
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


NETWORK = (
    "Decoders with rotary positions and width 64, trained for 480 steps of 32 problems on four in five of the connected graphs of "
    "3 to 6 vertices, two runs"
)
STUDY = jd.Study(
    trial=trial,
    quick=jd.grid(Learning),
    paper=jd.grid(Learning, steps=30_000, problems=600),
    seeds=2,
    evidence="network",
    source="arXiv:2502.08794, sections 3 and 4 (12 million graphs of up to 10 vertices, width 512)",
)

CLAIMS = (
    STUDY.claim(
        id="sln.model_acc",
        statement="How many shortest paths does a two-layer decoder find on graphs that were held out? Adjacent pairs and others "
        f"apart, where any shortest path counts. ({NETWORK}: far from the published 99%.)",
        expected="measured",
        judge=judge_accuracy,
        controls={"distances of other problems": jd.rolled(distance="problem")},
        rivals={
            "the network before training": jd.swap(measured_right="untrained"),
            "random neighbours": jd.swap(measured_right="random"),
        },
        found={"adjacent pairs solved": (0.85, 0.98), "other pairs solved": (0.1, 0.35)},
        plot=plot_accuracy,
        caption="Share of problems on held-out graphs that are solved, by distance of source and target, and by random neighbours.",
    ),
    STUDY.claim(
        id="sln.embedding_corr",
        statement="Do the embeddings of edges after the first layer follow the spectrum of the line graph? Matched correlation of "
        "their 3 leading principal components with the 5 slowest modes, on 24 graphs of 6 vertices with leading eigenvalues apart "
        f"by 0.02 at least, beside 200 permutations of edges and the network before training. ({NETWORK}.)",
        expected="measured",
        judge=judge_embedding,
        controls={"edges permuted": permuted},
        rivals={"the network before training": jd.swap(embedding="unlearned")},
        found={
            "matched correlation, mean over graphs": (0.75, 0.87),
            "graphs above the 99% quantile of permutations": (0.3, 0.75),
            "matched correlation less that before training": (-0.02, 0.1),
            "share of weights on the slower half of modes": (0.75, 0.87),
        },
        plot=plot_embedding,
        caption="Matched correlation of each graph over the 99% quantile of its null, after and before training.",
    ),
)
