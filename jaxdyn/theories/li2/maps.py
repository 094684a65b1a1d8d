"""Maps of the atlas: where claims of this theory hold, and where they stop."""

import jaxdyn as jd

MAPS = (
    jd.AtlasMap(
        name="li2-stages",
        title="Li2: the stages of grokking",
        claim="li2.stages",
        over=("share=.2:.95", "lr=.001:.1:log"),
        finding=(
            "The stages are in order wherever networks of 256 nodes generalise: at none of the 25 points where the gates are "
            "met does a check fail. What ends the region is the gate: below a share of pairs of .86 at a rate of .001, of .57 "
            "at .05, test accuracy stays under .95 in the epochs given; where rates are .05 and pairs many, nodes overlap "
            "more than the claim allows. No point refutes the order of stages."
        ),
        cells=45,
        seeds=2,
    ),
    jd.AtlasMap(
        name="li2-share",
        title="Li2: the share of pairs that networks need, by size of the group",
        claim="li2.stages",
        over=("group=11,13,17,19,23,29,31", "share=.3:.95"),
        finding=(
            "What ends the region of the stages is again that networks do not generalise in 200 epochs (grey). The share of "
            "pairs at which they do falls from .95 of $Z_{13}$ to .87, .81, .73, .65 and .63 of $Z_{17}$, $Z_{19}$, $Z_{23}$, "
            r"$Z_{29}$ and $Z_{31}$: like $M^{-0.5}$, more slowly than the $\ln M/M$ of Theorem 4, which falls like $M^{-0.66}$ "
            "over these sizes; $Z_{11}$ does not get there at all. Where networks generalise no check fails, at any size."
        ),
        cells=63,
        seeds=2,
    ),
    jd.AtlasMap(
        name="li2-decay",
        title="Li2: the stages over learning rate and weight decay",
        claim="li2.stages",
        over=("lr=.001:.1:log", "decay=1e-6:.02:log"),
        finding=(
            "At .8 of the pairs. Above a rate of .02 networks generalise within 200 epochs with practically no weight decay; at "
            "smaller rates they need it, 4e-5 at .003 to .01 and 1.4e-4 at .001, or they stop at a test accuracy of .8 to .9. "
            "At decays of .0005 (large rates) to .0017 they generalise all the same and sooner, but nodes overlap more than the "
            "claim allows (grey), and at .02 nothing is learned at any rate. In between the stages are in order at every point "
            "but one, rate .001 and decay .0017, where the signal has fallen to .26 of its maximum by the end and .25 is asked "
            "for."
        ),
        cells=64,
        seeds=2,
    ),
    jd.AtlasMap(
        name="li2-nodes",
        title="Li2: independent nodes, by width and learning rate",
        claim="li2.stage2_nodes",
        over=("hidden=16,32,64,128,256", "lr=.35:4:log"),
        finding=(
            "Nodes forecast one by one: wherever networks generalise within 120 epochs the claim holds, and how many nodes are "
            "forecast rightly hardly depends on width or rate: at a rate of 1.2 it is .82, .78, .69, .73 and .75 of the nodes "
            "with 16, 32, 64, 128 and 256 of them, at rates from .35 to 1.2 it falls by .02 to .1. So nodes are as independent "
            "in wide networks as in narrow ones. What falls, like the power -.3 of the width, is the lead over the largest "
            "irrep of the start, which is right for .29 of 16 nodes and .51 of 256. Smaller rates are too slow, larger ones "
            "unstable (grey: the gate on the test accuracy)."
        ),
        cells=30,
        seeds=24,
    ),
)
