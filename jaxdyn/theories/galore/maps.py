"""Maps of the atlas: where claims of this theory hold, and where they stop."""

import jaxdyn as jd

MAPS = (
    jd.AtlasMap(
        name="galore-bound",
        title="GaLore: the bound on the stable rank",
        claim="galore.stable_rank_bound",
        over=("step=.25:1.5", "bend=0:.2"),
        finding=(
            "The bound holds up to the largest step that the theorem allows (dotted) and not beyond, and only while $A$ does "
            r"not depend on $W$: where it does (bend: the share of $A$ that follows $\tanh W$) .11 breaks it at a quarter of "
            "the limit, .015 at .4 of it, and anything at larger steps. Shorter steps are not shown: there the other modes "
            "have not decayed by the end of the runs."
        ),
        cells=200,
    ),
    jd.AtlasMap(
        name="galore-varying",
        title="GaLore: coefficients that depend on the weights",
        claim="galore.fixed_proj_varying",
        over=("step=.005:.9:log", "lip_a=.01:3:log"),
        finding=(
            "The bound on each step holds everywhere, also for $L_A$ = 3 (lip_a). What stops is its tightness: the steepest "
            r"step stays within half of the room $\eta L_B L_C D^2$ only for $L_A$ below .45 to .7, hardly depending on the "
            "step size (exponent .09). For a steep $A$ the bound is loose."
        ),
        cells=200,
    ),
    jd.AtlasMap(
        name="galore-period",
        title="GaLore: how often the subspace is found again",
        claim="galore.switching",
        over=("step=.05:2.2:log", "every=1:300:log"),
        finding=(
            r"The gradient vanishes within 600 steps for learning rates of .16 to 2 over $\lambda_{max}$ (step), 2 being the "
            "limit of plain descent, if the subspace is found again every 35 steps or sooner. Later is too late at every rate: "
            "each subspace of 4 of 10 dimensions leaves about a quarter of the gradient, however long it is kept, so that what "
            "counts is their number; to the left steps are too short. What the rank of the update should be holds at all but "
            "one point below 2."
        ),
        cells=100,
        seeds=32,
    ),
    jd.AtlasMap(
        name="galore-noise",
        title="GaLore: noise against singular vectors",
        claim="galore.noise_counterexample",
        over=("lr=1e-4:.1:log", "noise=.03:30:log"),
        finding=(
            "The counterexample works in a window: noise from 1 to 8 (it was published at 5) and rates from 2e-4 to 2e-3. "
            "With less noise singular vectors learn the signal, too. With larger rates the noise itself keeps random "
            "directions from their prediction; with smaller ones, and with more noise, random directions have not learned "
            "after 10,000 steps. So it is an example, and no general defect of singular vectors."
        ),
        cells=100,
        seeds=64,
    ),
    jd.AtlasMap(
        name="galore-rank",
        title="GaLore: rank against rows of noise",
        claim="galore.noise_rank",
        over=("noise=.03:30:log", "rank=2,3,4,5"),
        finding=(
            "With one, three and five of six rows noise the law holds at all times from a noise of 1.5 on, seven times the "
            "signal's norm at the start, for ranks 2 and 4, and from 3.5 for rank 3: the signal is learned if there are more "
            "singular vectors than rows of noise, and leaks otherwise. At rank 5, where the leak is largest, 32 runs leave 1% "
            "open from 1.2 on (grey). With less noise more leaks than to leading order where the rank equals a number of rows "
            "of noise; under about .3 noise no longer fills the basis, and any rank learns the signal until it has sunk to the "
            "noise."
        ),
        cells=48,
        seeds=32,
        sets={"noisy": [1.0, 3.0, 5.0]},
    ),
)
