"""Published numbers on ProsQA: accuracies in percent, inner products of thoughts with embeddings, attention to edges.

Accuracies: arXiv:2412.06769, table 1 (GPT-2 small, pretrained, released graphs), with generated tokens. Inner products: means
over problems, lowest and highest of three seeds, arXiv:2505.12514,
section 5 (two layers, 768 wide, from scratch); its groups are nested: "reachable" holds the frontier, which holds the optimal node.
Attention: table 1, of the second layer at the last position, summed over the three tokens of an edge and over the heads.
"""

from __future__ import annotations

PROSQA = {  # accuracy, its deviation, tokens
    "cot": (77.5, 1.9, 49.4),
    "no_cot": (76.7, 1.0, 8.2),
    "icot": (98.2, 0.3, 8.2),
    "pause": (75.9, 0.7, 8.2),
    "coconut": (97.0, 0.3, 14.2),
    "no_curriculum": (76.1, 0.2, 14.2),
    "no_thoughts": (95.5, 1.1, 8.2),
    "pause_as_thought": (96.6, 0.8, 8.2),
}
PRODUCTS = {  # by thought 1 to 4
    "optimal": ((6.41, 6.84), (4.67, 5.11), (5.44, 6.43), (8.98, 9.58)),
    "frontier": ((5.09, 5.38), (2.45, 2.69), (1.95, 2.11), (2.12, 2.29)),
    "reachable": ((3.59, 3.71), (1.37, 1.55), (0.62, 0.80), (0.53, 0.66)),
    "unreachable": ((-0.37, -0.25), (-0.26, -0.04), (-0.09, 0.02), (-0.27, -0.23)),
}
ATTENTION = {  # by step 1 to 4: mean and deviation, summed over 8 heads
    "optimal": ((2.54, 1.03), (1.72, 1.13), (1.67, 1.20), (2.23, 1.35)),
    "frontier": ((2.12, 1.07), (1.00, 0.96), (0.67, 0.87), (0.61, 0.95)),
    "reachable": ((2.12, 1.07), (0.71, 0.92), (0.38, 0.72), (0.29, 0.66)),
    "unreachable": ((0.04, 0.07), (0.03, 0.09), (0.08, 0.17), (0.12, 0.20)),
}
HEADS = 8
GRAPHS = {"nodes": 23.0, "edges": 36.0, "length": 3.8, "paths": 1.6}  # means of ProsQA, arXiv:2412.06769
SETS = {"GSM8k": (385_620, 500, 1319), "ProntoQA": (9_000, 200, 800), "ProsQA": (17_886, 300, 500)}  # training, validation, test
