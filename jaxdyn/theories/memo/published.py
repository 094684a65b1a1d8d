"""The published tables of memorisation on CIFAR-10, and the sizes of their perceptrons."""

from __future__ import annotations

PIXELS = 28 * 28 * 3  # of a cropped image

PARAMETERS = {(512, 512, 512): 1_735_178, (512,): 1_209_866}  # by hidden layers

# arXiv:1611.03530, Table 1: network -> condition -> training and test accuracy in %.
TABLE = {
    "Inception": {
        "crop, decay": (100.0, 89.05),
        "crop": (100.0, 89.31),
        "decay": (100.0, 86.03),
        "none": (100.0, 85.75),
        "random labels": (100.0, 9.78),
    },
    "Inception without BN": {"decay": (100.0, 83.00), "none": (100.0, 82.00), "random labels": (100.0, 10.12)},
    "Alexnet": {
        "crop, decay": (99.90, 81.22),
        "crop": (99.82, 79.66),
        "decay": (100.0, 77.36),
        "none": (100.0, 76.07),
        "random labels": (99.82, 9.86),
    },
    "MLP 3x512": {"decay": (100.0, 53.35), "none": (100.0, 52.39), "random labels": (100.0, 10.48)},
    "MLP 1x512": {"decay": (99.80, 50.39), "none": (100.0, 50.51), "random labels": (99.34, 10.61)},
}
