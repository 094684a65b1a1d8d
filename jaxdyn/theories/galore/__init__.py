"""GaLore: gradients of low stable rank, and training within their subspaces."""

import jaxdyn as jd

THEORY = jd.Theory(
    title="GaLore: gradient low-rank projection",
    about=(
        "Gradients of networks become low in rank along training. An optimizer that projects them onto a few directions, "
        "found afresh now and then, needs memory for these alone, and still moves all weights."
    ),
    setup=(
        r"Gradient descent on quadratic losses $G = A - \frac1N\sum_i B_i W C_i$ of small matrices, in the whole space and "
        "within projected subspaces, where everything has a formula; reversible networks of a few layers; signal and "
        "noise in single rows. Small decoders trained on text compare GaLore with Adam, LoRA and others, and the "
        "published memory table is counted again from shapes."
    ),
    papers=(
        jd.Paper(
            "2403.03507",
            "GaLore: Memory-Efficient LLM Training by Gradient Low-Rank Projection",
            "J. Zhao, Z. Zhang, B. Chen, Z. Wang, A. Anandkumar, Y. Tian",
            "ICML 2024",
        ),
        jd.Paper(
            "2410.11289",
            "Subspace Optimization for Large Language Models with Convergence Guarantees",
            "Y. He, P. Li, Y. Hu, C. Chen, K. Yuan",
            "ICML 2025",
        ),
    ),
    topics=(
        "grad_form",
        "stable_rank_limits",
        "fixed_proj_parallel",
        "varying_kappa",
        "optimizer",
        "optax_agree",
        "memory",
        "text",
        "pretrained_model",
    ),
    shown=("galore.ppl_order",),
    instruments=("instrument",),
)
