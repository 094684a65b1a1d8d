"""Training at the edge of numerical stability: what rounding, StableMax and orthogonal gradients do (arXiv:2501.04697)."""

import jaxdyn as jd

THEORY = jd.Theory(
    title="The edge of numerical stability",
    about=(
        "Without weight decay, networks that have fitted their samples enlarge their logits until the losses round to zero. "
        "When a loss does so, how far gradients point along the weights, and what generalises without decay: orthogonal "
        "gradients."
    ),
    setup=(
        "Networks without biases and weight decay learn addition modulo a small number on a part of the pairs. The loss "
        "is computed in float64, float32 and float16, as softmax or StableMax, and gradients are taken with or without "
        "their part along the weights."
    ),
    papers=(
        jd.Paper(
            "2501.04697", "Grokking at the Edge of Numerical Stability", "L. Prieto, M. Barsbey, P. Mediano, T. Birdal", "ICLR 2025"
        ),
    ),
    topics=(
        "scale",
        "collapse_stablemax",
    ),
    shown=("prieto.collapse",),
)
