"""Maps of the atlas: where claims of this theory hold, and where they stop."""

import jaxdyn as jd

MAPS = (
    jd.AtlasMap(
        name="sink-families",
        title="Attention sinks over families of attention",
        claim="sink.bb_emerge",
        over=("attention=softmax,zero_sink,sink_bias,sigmoid,relu", "every=3,6,9,12,15"),
        finding=(
            "A sink in the sense of the claim is there from 360 steps (every times 40) on with softmax attention, and with a "
            "fixed zero or a learned bias in the denominator as well: neither keeps token 0 from taking the idle weight in "
            "these small blocks. With ReLU attention it never is, weights can be zero without one. With sigmoid attention the "
            "checks are not decided by 16 runs. Earlier (grey) the networks have not learned to copy, which the gate asks "
            "for: no sink is seen to come before the task is learned."
        ),
        cells=25,
    ),
)
