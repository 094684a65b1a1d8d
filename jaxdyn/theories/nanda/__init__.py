"""Progress measures for grokking on modular addition, in a one-layer transformer (arXiv:2301.05217)."""

import jaxdyn as jd

THEORY = jd.Theory(
    title="Progress measures",
    about=(
        "A one-layer transformer that learns modular addition does so with a few Fourier frequencies. Measures of this "
        "circuit move before the test accuracy jumps."
    ),
    setup=(
        "A one-layer transformer of width 32 learns addition modulo a prime from half of all pairs by AdamW with strong "
        "weight decay. Its logits are projected onto, and freed from, the frequencies that it uses in the end, and both "
        "losses are followed along training."
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
