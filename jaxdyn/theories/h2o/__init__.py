"""H2O: caches that keep the tokens with the most attention so far."""

import jaxdyn as jd

THEORY = jd.Theory(
    title="H2O: heavy hitters",
    about=(
        "A cache that keeps the tokens with the most attention so far, next to the last ones: what eviction costs, and "
        "what greedy choices reach. A few tokens get most of the attention, so that a small cache can give nearly the "
        "output of the whole."
    ),
    setup=(
        "Attention over a cache of limited size. Bounds are evaluated on random keys and values, greedy choice is "
        "compared with the best choice among all subsets, and small decoders that must recall facts stated long before "
        "read sequences through caches of several sizes and rules of eviction. A published model is read where its "
        "weights are at hand."
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
        "frozen_cache_error",
        "greedy_submodular",
        "ppl_budget",
        "pretrained_model",
    ),
    shown=("h2o.ppl_budget",),
    instruments=("instrument",),
)
