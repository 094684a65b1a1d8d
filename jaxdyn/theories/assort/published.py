"""The paper's numbers: accuracy and generated tokens on synthetic tasks, and accuracy by how tokens are replaced."""

from __future__ import annotations

from typing import NamedTuple


class Row(NamedTuple):
    """Accuracy in percent and tokens generated."""

    accuracy: float
    tokens: float


# arXiv:2502.03275, synthetic tasks. Keys-Finding Maze: share of maps with a feasible one among ten solutions.
TASKS = ("Keys-Finding Maze", "ProntoQA", "ProsQA")
SYNTHETIC = {
    "solution": (Row(3.0, 645.0), Row(93.8, 3.0), Row(76.7, 8.2)),
    "text": (Row(43.0, 1312.0), Row(98.8, 92.5), Row(77.5, 49.4)),
    "random": (Row(62.8, 374.6), Row(100.0, 7.7), Row(96.2, 10.9)),
}

# arXiv:2502.03275, ablation of replacement: mean accuracy in percent of Llama-3.1-8B on seven sets of mathematics; "solution" and
# "text" are the rows of the main table. The table has a further row, tokens replaced at Poisson positions: 36.3.
REPLACED = {"solution": 9.6, "text": 33.4, "all": 15.0, "curriculum": 15.8, "random": 37.9}

# arXiv:2502.03275, main tables, as in the talk "practical": accuracy in percent, then generated tokens, on seven sets of
# mathematics (SETS), and the printed average. Of tokens the rows of the solution alone repeat the accuracies: left out.
SETS = ("Math", "GSM8K", "Gaokao-Math-2023", "DM-Math", "College-Math", "Olympia-Math", "TheoremQA")
AVERAGES = {
    "accuracy, 1B, Sol-Only": ((4.7, 6.8, 0.0, 10.4, 5.3, 1.3, 3.9), 4.6),
    "accuracy, 1B, CoT": ((10.5, 42.7, 10.0, 3.4, 17.1, 1.5, 9.8), 14.1),
    "accuracy, 1B, iCoT": ((8.2, 10.5, 3.3, 11.3, 7.6, 2.1, 10.7), 7.7),
    "accuracy, 1B, Pause": ((5.1, 5.3, 2.0, 1.4, 0.5, 0.0, 0.6), 2.1),
    "accuracy, 1B, Latent": ((14.7, 48.7, 10.0, 14.6, 20.5, 1.8, 11.3), 17.8),
    "accuracy, 3B, Sol-Only": ((6.1, 8.1, 3.3, 14.0, 7.0, 1.8, 6.8), 6.7),
    "accuracy, 3B, CoT": ((21.9, 69.7, 16.7, 27.3, 30.9, 2.2, 11.6), 25.2),
    "accuracy, 3B, iCoT": ((12.6, 17.3, 3.3, 16.0, 14.2, 4.9, 13.9), 11.7),
    "accuracy, 3B, Pause": ((25.2, 53.7, 4.1, 7.4, 11.8, 0.7, 1.0), 14.8),
    "accuracy, 3B, Latent": ((26.1, 73.8, 23.3, 27.1, 32.9, 4.2, 13.5), 28.1),
    "accuracy, 8B, Sol-Only": ((11.5, 11.8, 3.3, 17.4, 13.0, 3.8, 6.7), 9.6),
    "accuracy, 8B, CoT": ((32.9, 80.1, 16.7, 39.3, 41.9, 7.3, 15.8), 33.4),
    "accuracy, 8B, iCoT": ((17.8, 29.6, 16.7, 20.3, 21.3, 7.6, 14.8), 18.3),
    "accuracy, 8B, Pause": ((39.6, 79.5, 6.1, 25.4, 25.1, 1.3, 4.0), 25.9),
    "accuracy, 8B, Latent": ((37.2, 84.1, 30.0, 41.3, 44.0, 10.2, 18.4), 37.9),
    "tokens, 1B, CoT": ((646.1, 190.3, 842.3, 578.7, 505.6, 1087.0, 736.5), 655.2),
    "tokens, 1B, iCoT": ((328.4, 39.8, 354.0, 170.8, 278.7, 839.4, 575.4), 369.5),
    "tokens, 1B, Pause": ((638.8, 176.4, 416.1, 579.9, 193.8, 471.9, 988.1), 495.0),
    "tokens, 1B, Latent": ((501.6, 181.3, 760.5, 380.1, 387.3, 840.0, 575.5), 518.0),
    "tokens, 3B, CoT": ((649.9, 212.1, 823.3, 392.8, 495.9, 1166.7, 759.6), 642.9),
    "tokens, 3B, iCoT": ((344.4, 60.7, 564.0, 154.3, 224.9, 697.6, 363.6), 344.2),
    "tokens, 3B, Pause": ((307.9, 162.3, 108.9, 251.5, 500.96, 959.5, 212.8), 354.7),
    "tokens, 3B, Latent": ((516.7, 198.8, 618.5, 340.0, 418.0, 832.8, 670.2), 513.6),
    "tokens, 8B, CoT": ((624.3, 209.5, 555.9, 321.8, 474.3, 1103.3, 760.1), 578.5),
    "tokens, 8B, iCoT": ((403.5, 67.3, 444.8, 137.0, 257.1, 797.1, 430.9), 362.5),
    "tokens, 8B, Pause": ((469.4, 119.0, 752.6, 413.4, 357.3, 648.2, 600.1), 480.0),
    "tokens, 8B, Latent": ((571.9, 193.9, 545.8, 292.1, 440.3, 913.7, 637.2), 513.7),
}
CORRECTED = {
    "accuracy, 1B, CoT": 13.6,
    "accuracy, 1B, Latent": 17.4,
    "accuracy, 3B, CoT": 25.8,
    "accuracy, 3B, Latent": 28.7,
    "tokens, 3B, Pause": 357.7,
    "tokens, 8B, Latent": 513.6,
}
