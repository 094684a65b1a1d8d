"""Progress measures for grokking on modular addition, in a one-layer transformer (arXiv:2301.05217)."""

import jaxdyn as jd

__all__ = ["THEORY"]

THEORY = jd.Theory(
    title="Progress measures",
    about=(
        "A one-layer transformer that learns modular addition does so with a few Fourier frequencies. Measures of this "
        "circuit move smoothly long before the test accuracy jumps."
    ),
    papers=(
        jd.Paper(
            "2301.05217",
            "Progress measures for grokking via mechanistic interpretability",
            "N. Nanda, L. Chan, T. Lieberum, J. Smith, J. Steinhardt",
            "ICLR 2023",
        ),
    ),
    topics=("progress",),
    shown=("nanda.progress",),
)
