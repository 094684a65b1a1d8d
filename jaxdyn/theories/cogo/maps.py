"""Maps of the atlas: where claims of this theory hold, and where they stop."""

import jaxdyn as jd

MAPS = (
    jd.AtlasMap(
        name="cogo-decay",
        title="CoGO: Occam's razor by weight decay",
        claim="cogo.occam_wd",
        over=("decay=1e-5:.1:log", "lr=.01:3:log"),
        finding=(
            "Weight decay finds the smaller solution in a band. Its lower border is a product: rate times decay times the "
            "20,000 steps is about 5 (3.5 is too little, 6 enough), the time in which the larger solution's surplus "
            "decays. Its upper border lies between decays of .01 and .018 at rates from .08 to .35 and between .018 and "
            r".032 at .04 and .06, about where the equilibrium $6\frac{d-1}{d}s(1-s^3) = \lambda d \|z'\|^2$ loses its "
            r"root, at $\lambda$ = .021: larger decays destroy the solution itself. One power law does not describe two "
            "borders, and its interval is wide."
        ),
        cells=81,
    ),
    jd.AtlasMap(
        name="cogo-orders",
        title="CoGO: four or six nodes at every frequency",
        claim="cogo.train_orders",
        over=("decay=1e-5:1e-3:log", "width=32:512:log"),
        finding=(
            "Every frequency ends with four or six nodes in a corner with two straight sides. One is a width: 91 nodes are "
            r"enough at $d = 23$, while with 64, which would hold any mixture of fours and all but the purest of sixes (44 to 66), "
            "a tenth of the frequencies come out wrong at large decays and a third at small ones. The other is a time: after 9900 "
            "epochs decays from 3e-5 on have done their work, 1e-5 has not at any width, so decay times epochs is about .3, where "
            "more nodes neither help nor hurt. Within the corner some frequencies still go from six to four (`cogo.wd_order`)."
        ),
        cells=45,
        seeds=6,
    ),
)
