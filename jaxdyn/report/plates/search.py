"""Maps of superposition, its emergence, and the Spectral Line Navigator."""

from __future__ import annotations

from jaxdyn.report.plates.plate import Plate

__all__ = ["PLATES"]

PLATES = (
    Plate(
        name="emer-bounded",
        title="Superposition's emergence: bounded growth",
        claim="emer.bounded",
        over=("density=.05:.95", "inside=2,3"),
        finding=(
            "Growth is bounded as the theorem says at every density of edges where three vertices are inside. With two inside "
            "it is up to a density of .85: there the degree of the middle vertex falls below the mean (dotted), which the "
            r"theorem excludes, the root of $F(\mu) = d_p$ moves to negative $\mu$, and a dull theory, that nothing moves, is "
            "no longer rejected: the claim is toothless there rather than false."
        ),
        cells=60,
    ),
    Plate(
        name="sup-scales",
        title="Superposition: how large the attention's logits must be",
        claim="sup.superposition",
        over=("eta=.1:10:log", "nodes=8,16,24,48"),
        finding=(
            "The construction works for every size of graph, dense or random, once the factor of the attention's logits (eta) "
            "is above .25 to .27, at 8 vertices as at 48: the border is flat, the margin between what is attended to and what "
            "is not does not shrink with the graph. Below, the softmax lets other tokens through, and the sets of the "
            "thoughts are wrong."
        ),
        cells=60,
        seeds=2,
        sets={"kind": ["dense", "random"]},
    ),
    Plate(
        name="sup-width",
        title="Superposition: how many numbers a block needs",
        claim="sup.superposition",
        over=("rows=40,44,48,50,51,52,53", "nodes=8,12,16,24,32,48"),
        finding=(
            "Tokens in a frame of fewer numbers than tokens: with 53 numbers a block for 53 tokens every thought of every "
            "graph is right, with 52 none is, from 8 vertices with 40 edges (.7 of all) to 48 (.02). The border does not "
            "depend on the density of the graph: the thresholds have no slack that a sparse graph could use. So the "
            "construction's width is linear in the vocabulary, as the theorem states it."
        ),
        cells=42,
        seeds=2,
        sets={"kind": ["random"], "embedding": ["frame"]},
    ),
    Plate(
        name="sln-weights",
        title="Spectral Line Navigator: weights of the eigenvectors",
        claim="sln.rate99",
        over=("power=0:4", "density=.15:.9"),
        finding=(
            r"Eigenvectors of the random-walk Laplacian of the line graph with weights $\lambda^{-p}$ (power) on random graphs "
            "of 8 vertices: the claim's 99% hold at p = 1 for every density from .15 to .9, where practically every pair is "
            "led along a shortest path, and hardly anywhere else below a density of .6. Without weights (p = 0) they need a "
            "density of .9. At p = .5 and 2 sparse graphs are too close to the mark to tell (98.9 to 99.8%); from p = 2.5 on "
            "it is missed there again. In the densest graphs any weights do."
        ),
        cells=80,
        seeds=24,
        sets={"rows": ["own"], "nodes": [8.0]},
    ),
)
