"""Maps of the atlas: where claims of this theory hold, and where they stop."""

import jaxdyn as jd

MAPS = (
    jd.AtlasMap(
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
    jd.AtlasMap(
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
)
