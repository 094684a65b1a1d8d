"""Emergence of superposition: how training makes a continuous thought search a graph."""

import jaxdyn as jd

THEORY = jd.Theory(
    title="Emergence of superposition",
    about=(
        "A transformer that searches a graph in continuous thoughts holds many vertices at once. Averaged over names of the "
        "vertices, training of its searching layer comes down to two numbers: how strongly a thought looks for edges that "
        "leave its vertices, and how strongly for all others. The first stays bounded or grows like the logarithm of time, "
        "as the loss and the demonstrated vertex decide."
    ),
    setup=(
        "The layer of a transformer that searches: given a thought, a superposition of vertices, it should put its attention on "
        "edges that leave them. It is trained on random digraphs of seven to ten vertices whose names are drawn anew, by gradient "
        "flow of the average loss in the diagonal or all entries of its matrix and by SGD on single graphs, with two losses: one "
        "demonstrated next vertex, or any vertex within reach."
    ),
    papers=(
        jd.Paper(
            "2509.23365",
            "Emergence of Superposition: Unveiling the Training Dynamics of Chain of Continuous Thought",
            "H. Zhu, S. Hao, Z. Hu, J. Jiao, S. Russell, Y. Tian",
            "ICLR 2026",
        ),
    ),
    topics=(
        "reduction_expansion",
        "bounded_growth",
        "direction",
    ),
    shown=("emer.bounded",),
)
