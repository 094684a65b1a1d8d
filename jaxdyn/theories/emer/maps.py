"""Maps of the atlas: where claims of this theory hold, and where they stop."""

import jaxdyn as jd

MAPS = (
    jd.AtlasMap(
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
)
