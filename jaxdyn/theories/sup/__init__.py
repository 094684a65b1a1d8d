"""Superposition: a two-layer transformer that searches a graph breadth first, all frontiers in one thought."""

import jaxdyn as jd

THEORY = jd.Theory(
    title="Superposition: continuous thoughts that search a graph",
    about=(
        "A two-layer transformer that is fed its own last outputs decides whether a vertex of a digraph is within reach: "
        "thought $c$ holds all vertices within $c$ steps of the root at once, so that as many thoughts are needed as the "
        "target is steps away. Its weights are written down; what trained networks hold in their thoughts is "
        "compared with it."
    ),
    setup=(
        "Prompts list the edges of a random digraph, two candidates and a root; thoughts follow. A two-layer transformer "
        "whose weights are written down is run in float64 and float32 on digraphs of up to 48 vertices. Decoders trained "
        "from scratch on the same question are asked what their thoughts hold."
    ),
    papers=(
        jd.Paper(
            "2505.12514",
            "Reasoning by Superposition: A Theoretical Perspective on Chain of Continuous Thought",
            "H. Zhu, S. Hao, Z. Hu, J. Jiao, S. Russell, Y. Tian",
            "NeurIPS 2025",
        ),
        "2412.06769",
    ),
    topics=(
        "layer1_chooser",
        "superposition",
        "limits",
        "trained",
    ),
    shown=("sup.superposition",),
)
