"""Large initialisation, small weight decay: a kernel predictor first, the least norm later (arXiv:2311.18817)."""

import jaxdyn as jd

THEORY = jd.Theory(
    title="Early and late bias",
    about=(
        "Training from a large start with small weight decay has two phases: it first follows a kernel predictor, and at "
        "a predicted time changes to the solution of least norm. On a diagonal linear network both predictors, the time, "
        "and the path between them have formulas."
    ),
    setup=(
        "A diagonal linear network with 24 inputs, trained by gradient flow of the squared loss with small weight decay "
        "on twelve samples of a target with two weights that are not zero, from weights several times larger than those "
        "of the solution. The limit of vanishing decay is extrapolated from two values."
    ),
    papers=(
        jd.Paper(
            "2311.18817",
            "Dichotomy of Early and Late Phase Implicit Biases Can Provably Induce Grokking",
            "K. Lyu, J. Jin, Z. Li, S. Du, J. Lee, W. Hu",
            "ICLR 2024",
        ),
    ),
    topics=("dichotomy_path",),
    shown=("lyu.dichotomy",),
)
