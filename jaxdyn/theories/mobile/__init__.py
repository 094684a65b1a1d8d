"""MobileLLM: deep and thin language models, with tied embeddings and grouped queries."""

import jaxdyn as jd

THEORY = jd.Theory(
    title="MobileLLM",
    about=(
        "Small language models do better deep and thin than shallow and wide, with tied embeddings and queries that share "
        "keys. The published shapes are counted again, and the comparisons are repeated on decoders that are much "
        "smaller."
    ),
    setup=(
        "Sizes of the published models are counted from their shapes. Decoders of 33 thousand weights are trained on the "
        "manual of the Python interpreter, deep and thin or shallow and wide, with tied and untied read-out, shared keys "
        "and values, and blocks that are used twice."
    ),
    papers=(
        jd.Paper(
            "2402.14905",
            "MobileLLM: Optimizing Sub-billion Parameter Language Models for On-Device Use Cases",
            "Z. Liu, C. Zhao, F. Iandola, C. Lai, Y. Tian, I. Fedorov, Y. Xiong, E. Chang, Y. Shi, "
            "R. Krishnamoorthi, L. Lai, V. Chandra",
            "ICML 2024",
        ),
    ),
    topics=(
        "counts",
        "depth",
        "tie_gqa_ls",
    ),
    shown=("mobile.depth",),
)
