"""Scan & Snap: attention of a one-layer transformer, trained by SGD (arXiv 2305.16380)."""

import jaxdyn as jd

THEORY = jd.Theory(
    title="Scan and Snap",
    about=(
        "A transformer of one linear layer learns to predict the next token by SGD. Attention moves to the tokens that tell "
        "one next token from the others (scan), more and more slowly, until it freezes (snap)."
    ),
    setup=(
        "One layer of attention with a linear decoder, trained on sequences whose last token, the query, decides with the "
        "next token how often each other token occurs. Tokens are distinct (they occur with one next token only) or "
        "common. The full gradient is differentiated automatically, its flow is integrated in all entries, the reduced "
        "equations are integrated on their own, and SGD runs on drawn sequences."
    ),
    papers=(
        jd.Paper(
            "2305.16380",
            "Scan and Snap: Understanding Training Dynamics and Token Composition in 1-layer Transformer",
            "Y. Tian, Y. Wang, B. Chen, S. Du",
            "NeurIPS 2023",
        ),
    ),
    topics={
        "The gradient and its invariants": (
            "gradient.reparam",
            "gradient.limit",
            "gradient.invariants",
            "gradient.clock",
            "gradient.original",
        ),
        "Scanning: which tokens gain attention": (
            "scan.thm2_common",
            "scan.unequal_flow",
            "scan.theorem3_gain_bounds",
            "scan.overlap",
        ),
        "Snapping: attention freezes": (
            "snapping.b_law",
            "snapping.b_flow",
            "snapping.transition",
            "snapping.frozen",
            "snapping.memory_rate",
        ),
        "The paper's synthetic runs": (
            "synthetic.fig5_not_wta",
            "synthetic.fig6_adam_sgd",
            "synthetic.tf_idf",
        ),
    },
    shown=("snap.B_law",),
    instruments=("instrument",),
)
