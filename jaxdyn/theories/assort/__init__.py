"""Token Assorted: traces in which codes of a trained autoencoder replace the first tokens."""

import jaxdyn as jd

__all__ = ["THEORY"]

THEORY = jd.Theory(
    title="Token Assorted",
    about=(
        "A trace of reasoning can be shortened before a network is trained on it: an autoencoder with a codebook turns "
        "chunks of its tokens into codes, which replace the first part of the trace, of random length. Quantiser, sequences "
        "and what a codebook can restore are exact facts; which way to replace tokens serves training best is measured."
    ),
    papers=(
        jd.Paper(
            "2502.03275",
            "Token Assorted: Mixing Latent and Text Tokens for Improved Language Model Reasoning",
            "D. Su, H. Zhu, Y. Xu, J. Jiao, Y. Tian, Q. Zheng",
            "ICML 2025",
        ),
    ),
    topics=(
        "quantiser",
        "capacity",
        "hybrid",
        "autoencoder",
        "order",
    ),
    shown=("assort.capacity",),
)
