"""Maps of the atlas: where claims of this theory hold, and where they stop."""

import jaxdyn as jd

MAPS = (
    jd.AtlasMap(
        name="snap-commons",
        title="Scan & Snap, Theorem 2: common tokens lose",
        claim="snap.common_down_flow",
        over=("ratio=.1:1e4:log", "common=.005:.8:log"),
        finding=(
            r"Common tokens lose at every point, at learning rates $\eta_Y/\eta_Z$ (ratio) from .1 to 10,000 and weights of "
            r"the common token from .005 to .8, far beyond the assumption $K\|E\| < 1$: the overlap reaches 7.5 at the upper "
            "end. There is no border: this half of Theorem 2 needs neither a small overlap nor a fast decoder."
        ),
        cells=96,
    ),
    jd.AtlasMap(
        name="snap-unequal",
        title="Scan & Snap, Theorem 2 where commons are unequal",
        claim="snap.unequal_flow",
        over=("ratio=.05:1e3:log", "unequal=.1:5:log"),
        finding=(
            "(Drawn with an earlier form of the claim: common weights of .1, and a token that gains in a quarter of the runs.) "
            r"Two common tokens whose frequencies differ by $e^u$ between classes ($u$: unequal): at $\eta_Y/\eta_Z$ above 1 "
            "one of them gains for some time in more than a quarter of the runs once $u$ is above 2.4, at smaller ratios from "
            "about 1 on. Below (grey) too few runs show it to tell. The assumption of equal frequencies is what decides, and "
            "a fast decoder hides small differences."
        ),
        cells=150,
    ),
    jd.AtlasMap(
        name="snap-theorem3",
        title="Scan & Snap, Theorem 3: relative gains",
        claim="snap.theorem3",
        over=("ratio=.1:1e4:log", "common=.005:.8:log"),
        finding=(
            r"Theorem 3 holds in one corner, and its assumptions draw it: from $\eta_Y/\eta_Z$ = 93 on (assumed: 50; in "
            "between the mean growth is too close to 90% to tell), and up to a weight of the common token of .32, an overlap "
            "of 2.4 where 1 is assumed. The upper border is flat: a faster decoder does not help against overlap."
        ),
    ),
    jd.AtlasMap(
        name="snap-theorem4",
        title="Scan & Snap, Theorem 4: the law of B",
        claim="snap.B_law_flow",
        over=("ratio=1e-3:1e3:log", "odds=.002:.3:log"),
        finding=(
            "(Drawn with an earlier form of the claim, which asked for 5% of the law at every point.) The law of $B$ within 5% "
            r"needs a fast decoder and a rare common token: for $\eta_Y/\eta_Z$ below 30 the odds that it bears grow with the "
            "ratio, .013 at ratio 1; above they stay at .05 to .06, whatever the ratio, since the overlap is left. One power law "
            "does not describe both parts, and its interval is wide. To the left it is the decoder's memory that breaks the law, "
            "above the overlap alone."
        ),
    ),
)
