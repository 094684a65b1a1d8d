"""Token Assorted: traces in which codes of a trained autoencoder replace the first tokens."""

import jaxdyn as jd

THEORY = jd.Theory(
    title="Token Assorted",
    about=(
        "A trace of reasoning can be shortened before a network is trained on it: an autoencoder with a codebook turns "
        "chunks of its tokens into codes, which replace the first part of the trace, of random length. Quantiser, sequences "
        "and what a codebook can restore are exact facts; which way to replace tokens serves training best is measured."
    ),
    setup=(
        "Logs of searches in small graphs are cut into chunks of a few tokens, each chunk is encoded, and the nearest "
        "code of a codebook takes its place; a decoder restores the chunk. Quantiser, lengths of sequences and the best "
        "that a codebook can do are computed without training. Small autoencoders and decoders are then trained on such "
        "logs, to see how a codebook should move and which part of a trace should be replaced."
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
        "autoencoder_capacity",
        "hybrid",
        "order",
        "table_means",
    ),
    shown=("assort.capacity",),
)
