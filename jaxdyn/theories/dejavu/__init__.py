"""Deja Vu: why small, input-dependent parts of a network give nearly its output."""

import jaxdyn as jd

THEORY = jd.Theory(
    title="Deja Vu: contextual sparsity",
    about=(
        "For each input a small part of a network, which depends on the input, gives nearly the whole output. Residual "
        "streams change slowly from block to block, so that this part can be foreseen."
    ),
    setup=(
        "Bounds and identities are evaluated on random vectors, layers and clouds of tokens. Small ReLU decoders are "
        "trained on the manual of the Python interpreter, and asked how much of their output the most active heads and "
        "hidden units give, per input or chosen once for all. The same is asked of a published language model where its "
        "weights are at hand."
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
        "cos_shift_zeros",
        "contextual",
        "pretrained_model",
    ),
    shown=("dejavu.contextual_gt_static",),
    instruments=("instrument",),
)
