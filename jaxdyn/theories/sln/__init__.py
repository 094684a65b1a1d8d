"""Spectral line navigation: shortest paths by distances between edges, embedded by the spectrum of the line graph."""

import jaxdyn as jd

THEORY = jd.Theory(
    title="Spectral line navigation: shortest paths by the spectrum of the line graph",
    about=(
        "A small transformer that learns shortest paths is said to embed edges by the spectrum of the line graph. Navigation "
        "goes to the neighbour whose edge is nearest, in that embedding, to an edge at the target. Weights and the number of "
        "eigenvectors decide how often this is a shortest path."
    ),
    setup=(
        "Graphs: all connected graphs of up to seven vertices and all trees of up to nine up to isomorphism, and random graphs of "
        "up to thirty. Navigation by spectral distances in the line graph is followed from every start to every target, with "
        "several weights of the eigenvectors. Nothing is trained, except for a small decoder that is asked for shortest paths on "
        "graphs held out."
    ),
    papers=(
        jd.Paper(
            "2502.08794",
            "Spectral Journey: How Transformers Predict the Shortest Path",
            "A. Cohen, A. Gromov, K. Yang, Y. Tian",
            "2025",
        ),
        jd.Paper("2004.01163", "A Spectral Approach to the Shortest Path Problem", "S. Steinerberger", "2021"),
    ),
    topics=(
        "linegraph",
        "exact",
        "rates",
        "model_paths",
    ),
    shown=("sln.exact_small",),
    instruments=("instrument",),
)
