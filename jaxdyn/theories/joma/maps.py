"""Maps of the atlas: where claims of this theory hold, and where they stop."""

import jaxdyn as jd

MAPS = (
    jd.AtlasMap(
        name="joma-softmax",
        title="JoMA: the softmax law compared with networks",
        claim="joma.softmax_invariant",
        over=("ratio=.01:100:log", "lr=.005:10:log"),
        finding=(
            "The softmax law is an approximation for a short time, and the map says how short. It holds for learning rates of "
            ".013 to .6 and ratios of the rates up to 18, less clearly (grey) at equal rates and above. At rates of 1.5 and "
            "more single steps leave the phase of nearly constant attention; at ratios of 30 and more attention itself moves "
            "first. At rates below .008 the runs end before the logits have moved: the lower edge is the length of the runs, "
            "not the theorem's."
        ),
        cells=100,
    ),
    jd.AtlasMap(
        name="joma-steps",
        title="JoMA: the softmax law over the length of the runs",
        claim="joma.softmax_invariant",
        over=("ratio=.01:100:log", "every=1:50:log"),
        finding=(
            "At the claim's rate of .1, over the length of the runs (40 times every, rounded). The law holds from 80 "
            "steps to 2000, the longest, where attention learns at most three times as fast as the lower layer, and to "
            "1560 at a ratio of 10: length does no harm, as the law is asked only while the mean attention is within 5% "
            "of its start. At 18 it holds up to 280 steps. Beyond, at 32 and 56, the part of its assumption's residual "
            "that acts on the logits is too close to .12 to tell (grey), and at 100 the change of the logits is missed as "
            "well, in runs of every length up to 760. After 40 steps (lowest row, grey) that part is not settled either."
        ),
        cells=100,
    ),
    jd.AtlasMap(
        name="joma-momentum",
        title="JoMA: the softmax law under momentum",
        claim="joma.softmax_invariant",
        over=("lr=.005:10:log", "momentum=0:.98"),
        finding=(
            "With the heavy ball the softmax law holds up to a rate that falls as the momentum $m$ grows: .58 without "
            "momentum, .22 at .5, .09 at .67, .03 at .8, nowhere at .98. The effective rate lr/(1 - m) alone does not decide: at "
            "the border it falls as well, from above .6 without momentum to between .1 and .2 at .86. To the left, at "
            "lr/(1 - m) below .013, the runs end before the logits have moved."
        ),
        cells=80,
        sets={"optimizer": ["momentum"], "ratio": [1.0]},
    ),
    jd.AtlasMap(
        name="joma-stationary",
        title="JoMA: how long gradients are stationary",
        claim="joma.stationarity",
        over=("gone=3e-4:.004:log", "depth=0,1,2,3"),
        finding=(
            "Gradients are stationary, in the sense that the saliency has changed by less than 10% and has not turned beyond "
            "a cosine of .99, until .15 to .2% of the loss is gone, and no longer: without a further tanh layer above the "
            "first as with three. At equal progress depth does not make the assumption worse; deep networks only get there in "
            "fewer steps. By the time a tenth of the loss is gone, as `joma.stationarity` measures it, it fails by far."
        ),
        cells=60,
        seeds=32,
        sets={"upper": ["tanh"], "lr": [0.02], "every": [1.0], "records": [600]},
    ),
    jd.AtlasMap(
        name="joma-activation",
        title="JoMA: how long gradients are stationary, by activation",
        claim="joma.stationarity",
        over=("gone=1e-5:.004:log", "upper=id,tanh,relu"),
        finding=(
            "With two further layers. Behind linear and tanh layers gradients stay stationary until .2% of the loss is gone, "
            "behind ReLUs until .02% at most (grey: a few of 32 networks change at once, which leaves the mean undecided), "
            "and .03% is too much: a unit that is switched on or off changes the gradient in one step. The right end of that "
            "row is grey because these networks have not lost .3% by the end."
        ),
        cells=45,
        seeds=32,
        sets={"depth": [2.0], "lr": [0.02], "every": [1.0], "records": [600]},
    ),
    jd.AtlasMap(
        name="joma-depth",
        title="JoMA: stationary gradients over depth and activation",
        claim="joma.stationarity",
        over=("depth=0,1,2,3", "upper=id,tanh,relu"),
        finding=(
            "When .1% of the loss is gone, gradients are stationary behind linear and tanh layers at every depth: the "
            "saliency has changed by 4 to 8% and its cosine with the start is .9987 or more, with three further layers as "
            "with none. Behind ReLUs they are not at any depth: it has changed by 24% with one further layer, 32% with "
            "two and 36% with three, and the cosine falls from .93 to .88. So it is the nonlinearity that breaks the "
            "assumption, and depth makes that worse, but breaks nothing by itself. At depth 0 there is no further layer, "
            "and the activation has no meaning."
        ),
        cells=12,
        seeds=48,
        sets={"gone": [0.001], "lr": [0.02], "every": [1.0], "records": [600]},
    ),
    jd.AtlasMap(
        name="joma-order",
        title="JoMA: the drift of the invariant in discrete steps",
        claim="joma.linear_invariant",
        over=("lr=.0003:.5:log", "ratio=.01:100:log"),
        finding=(
            "The drift of the invariant is of first order in the step size up to a rate of .2 where $z$ learns more slowly "
            "than $v$ (ratio below .2), up to .5 and more where it learns ten times faster. At equal rates the order is lost "
            "from .08 on; below that the claim is toothless there (triangles): one of its rivals, the law of equal rates, is "
            "then the law."
        ),
        sets={"phi": ["tanh"], "loss": ["squared"], "depth": [2.0]},
        seeds=4,
    ),
    jd.AtlasMap(
        name="joma-hblt",
        title="JoMA: saliency in hierarchical latents",
        claim="joma.hblt_cancellation",
        over=("rho=.05:.995", "depth=2,3,4,5,6"),
        finding=(
            r"The identity holds in exact arithmetic at every $\rho$ and depth; what stops is float64. The saliency is "
            r"proportional to $\rho^{L-1}$ and found as a difference of numbers near one, so that its relative error passes "
            r"the bound of $10^{-12}$ where $\rho^{L-1}$ falls below about $10^{-2}$: at depth 6 below $\rho$ = .36, at depth "
            "3 below .07."
        ),
        cells=75,
    ),
    jd.AtlasMap(
        name="joma-hierarchy",
        title="JoMA: near tokens first, by depth and polarity of the tree",
        claim="joma.hier_order",
        over=("rho=.2:.98", "depth=3,4,5,6"),
        finding=(
            r"Near tokens are learned first in a band of polarities $\rho$ that narrows as the tree deepens. At .98 "
            "arrival and $H$ are correlated by .02 to .03 at every depth: all tokens of a subtree occur together, near or "
            "far. At .59 and .78 the order is there at depths 3 to 5, with .3 to .5, and at .59 at depth 6. Towards small "
            r"$\rho$ it fades, the sooner the deeper the tree: the correlation falls below .2 at about .35 for depth 5 and "
            r".5 for depth 6, where at $\rho$ = .2 only .07 and .02 are left, and tokens of different $H$ hardly occur "
            "together any more; at depths 3 and 4 it is still .3 and .16. Grey: 12 runs without latents leave .05 open in "
            "small trees, and at depth 6 and .78 14 of 24 runs end in the blow-up of exp attention, when all tokens but "
            "1% have arrived. At all other points every token arrives."
        ),
        cells=24,
        seeds=12,
    ),
)
