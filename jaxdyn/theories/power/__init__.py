"""Generalisation beyond overfitting: how long it takes on a share of a table (arXiv:2201.02177)."""

import jaxdyn as jd

THEORY = jd.Theory(
    title="Generalisation beyond overfitting",
    about=(
        "A network that is trained on a part of a table of products completes the table long after it has learned its "
        "part by heart, the later the smaller that part is. This is the observation with which work on grokking began."
    ),
    setup=(
        "Two-layer networks with quadratic activation, trained on a share of the table of a group, and decoders with two "
        "layers on the same task by AdamW. Steps to generalisation are counted for several shares, and networks that do "
        "not get there count with all steps."
    ),
    papers=(
        jd.Paper(
            "2201.02177",
            "Grokking: Generalization Beyond Overfitting on Small Algorithmic Datasets",
            "A. Power, Y. Burda, H. Edwards, I. Babuschkin, V. Misra",
            "2022",
        ),
    ),
    topics=(
        "steep",
        "transformer",
    ),
    shown=("power.steep",),
)
