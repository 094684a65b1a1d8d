"""Attention sinks: what a sink is in the formulas of attention."""

import jaxdyn as jd

THEORY = jd.Theory(
    title="Attention sinks",
    about=(
        "Softmax attention must put its weight somewhere. Heads that have nothing to look for put it on the first token, "
        "whose value shrinks. Forms of attention with a sink of their own need no such token."
    ),
    setup=(
        "One-block transformers with one head learn the task of bigrams with backward copies, in which most queries have "
        "nothing to look for, with softmax attention and with forms that can attend to nothing. The growth of a sink's "
        "margin is compared with a reduced equation. Small language models, and a published one, show what of this occurs "
        "in text."
    ),
    papers=(
        "2309.17453",
        jd.Paper(
            "2410.10781",
            "When Attention Sink Emerges in Language Models: An Empirical View",
            "X. Gu, T. Pang, C. Du, Q. Liu, F. Zhang, C. Du, Y. Wang, M. Lin",
            "ICLR 2025",
        ),
        jd.Paper(
            "2410.13835",
            "Active-Dormant Attention Heads: Mechanistically Demystifying Extreme-Token Phenomena in LLMs",
            "T. Guo, D. Pai, Y. Bai, J. Jiao, M. Jordan, S. Mei",
            "arXiv 2024",
        ),
    ),
    topics=(
        "softmax_variants",
        "bb_emerge_growth",
        "visibility",
        "reduced_log",
        "lm_emerge",
        "pretrained_model",
    ),
    shown=("sink.bb_forms",),
    instruments=("instrument",),
)
