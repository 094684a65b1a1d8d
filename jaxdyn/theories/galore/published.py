"""Numbers to compare with: GaLore's tables of memory and perplexity.

Memory is in the paper's "G", for weights and optimizer states in bfloat16. No single unit gives its column: 350M is in GiB, 60M in
GB, and 1B lies 3% below GB. Its LoRA counts embeddings and read-out twice: the full model, and again with the adaptors; its
GaLore states are those of the long side, though the released code projects the short one.
"""

from __future__ import annotations

from typing import NamedTuple

MODELS = ("60M", "130M", "350M", "1B")
RANKS = {"60M": 128, "130M": 256, "350M": 256, "1B": 512, "7B": 1024}

# arXiv:2403.03507, table 2: memory in G by model
MEMORY = {
    "full": (0.36, 0.76, 2.06, 7.80),
    "galore": (0.24, 0.52, 1.22, 4.38),
    "low_rank": (0.26, 0.54, 1.08, 3.57),
    "lora": (0.36, 0.80, 1.76, 6.17),
}


class Split(NamedTuple):
    """Memory of weights and of optimizer states, by model."""

    weights: tuple[float, ...]
    states: tuple[float, ...]


# arXiv:2403.03507, appendix: the same apart
SPLIT = {
    "full": Split((0.12, 0.25, 0.68, 2.60), (0.23, 0.51, 1.37, 5.20)),
    "galore": Split((0.12, 0.25, 0.68, 2.60), (0.13, 0.28, 0.54, 1.78)),
    "low_rank": Split((0.08, 0.18, 0.36, 1.19), (0.17, 0.37, 0.72, 2.38)),
    "lora": Split((0.20, 0.44, 1.04, 3.79), (0.17, 0.37, 0.72, 2.38)),
}

# arXiv:2403.03507, table 3: 7B with 8-bit states, in G: Adam, and GaLore of rank 1024
EIGHT_BIT_7B = {"full": 26.0, "galore": 18.0}

# arXiv:2403.03507, table 2: perplexity on C4 by model
PERPLEXITY = {
    "full": (34.06, 25.08, 18.80, 15.56),
    "galore": (34.88, 25.36, 18.95, 15.64),
    "low_rank": (78.18, 45.51, 37.41, 142.53),
    "lora": (34.99, 33.92, 25.58, 19.21),
    "relora": (37.04, 29.37, 29.08, 18.33),
}
# Talk practical, Pre-training Results: 1B with half the width's rank, where the table has a quarter
HALF_RANK_1B = 14.97
STEPS = (10_000, 20_000, 60_000, 100_000)

# GB of training LLaMA 7B, by a third party (llamafactory), as the talks show it: (bits of the states, rank, gradients held) -> GB.
# Rank None: AdamW in all directions.
THIRD_PARTY = {
    (8, None, True): 40,
    (8, 16, True): 28,
    (8, 128, True): 29,
    (16, 128, True): 30,
    (16, 128, False): 18,
    (8, 1024, True): 36,
}
