"""H2O: caches that keep the tokens with the most attention so far."""

import jaxdyn as jd

__all__ = ["THEORY"]

THEORY = jd.Theory(
    title="H2O: heavy hitters",
    about=(
        "A cache that keeps the tokens with the most attention so far, next to the last ones: what eviction costs, and what "
        "greedy choices reach."
    ),
    papers=(
        jd.Paper(
            "2306.14048",
            "H2O: Heavy-Hitter Oracle for Efficient Generative Inference of Large Language Models",
            "Z. Zhang, Y. Sheng, T. Zhou, T. Chen, L. Zheng, R. Cai, Z. Song, Y. Tian, C. Ré, C. Barrett, Z. Wang, B. Chen",
            "NeurIPS 2023",
        ),
    ),
    topics=(
        "error_bound",
        "greedy",
        "frozen_cache",
        "ppl_budget",
        "pretrained",
    ),
    shown=("h2o.ppl_budget",),
)
