"""Published numbers: the orthogonality figure of arXiv:2310.00535 on Pythia's checkpoints."""

PYTHIA = {  # model: layers, width, least and largest value of the published axis (not the exact extremes)
    "70M": (6, 512, 0.035, 0.065),
    "160M": (12, 768, 0.028, 0.044),
    "410M": (24, 1024, 0.024, 0.038),
    "1B": (16, 2048, 0.018, 0.028),
    "1.4B": (24, 2048, 0.0175, 0.0375),
    "2.8B": (32, 2560, 0.015, 0.035),
}
