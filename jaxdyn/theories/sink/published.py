"""Numbers of a larger run on the Bigram-Backcopy task, and its sizes.

One run each by our own hand (no paper prints them): 33 tokens, 3 triggers, sequences of 48, width 64, one head, Adam at 3e-3, batch
64, 800 steps (ReLU: 400).
"""

from __future__ import annotations

SIZES = {"lr": 3e-3, "vocabulary": 33, "length": 48, "width": 64, "hidden": 256, "batch": 64}
LARGER: dict[str, dict[str, float | None]] = {  # weight on token 0 where idle and at triggers, margin, drain
    "softmax": {"idle": 0.425, "copying": 0.001, "margin": 3.24, "drain": 0.29},
    "zero_sink": {"idle": 0.40, "copying": None, "margin": 3.44, "drain": 0.31},
    "sink_bias": {"idle": None, "copying": None, "margin": None, "drain": None},
    "relu": {"idle": 0.001, "copying": None, "margin": None, "drain": None},
    "sigmoid": {"idle": None, "copying": None, "margin": None, "drain": None},
}
