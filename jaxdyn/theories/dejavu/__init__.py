"""Deja Vu: why small, input-dependent parts of a network give nearly its output."""

import jaxdyn as jd

__all__ = ["THEORY"]

THEORY = jd.Theory(
    title="Deja Vu: contextual sparsity",
    about=(
        "For each input a small part of a network, which depends on the input, gives nearly the whole output. Residual "
        "streams change slowly from block to block, so that this part can be foreseen."
    ),
    papers=(
        jd.Paper(
            "2310.17157",
            "Deja Vu: Contextual Sparsity for Efficient LLMs at Inference Time",
            "Z. Liu, J. Wang, T. Dao, T. Zhou, B. Yuan, Z. Song, A. Shrivastava, C. Zhang, Y. Tian, C. Ré, B. Chen",
            "ICML 2023",
        ),
    ),
    topics=(
        "cos_bound",
        "relu_zeros",
        "mean_shift",
        "contextual",
        "pretrained",
    ),
    shown=("dejavu.contextual_gt_static",),
)
