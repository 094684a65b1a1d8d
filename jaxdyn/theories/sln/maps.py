"""Maps of the atlas: where claims of this theory hold, and where they stop."""

import jaxdyn as jd

MAPS = (
    jd.AtlasMap(
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
