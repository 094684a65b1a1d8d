"""What arXiv:2309.02390 publishes: predictions confirmed on modular addition modulo 113 with one-layer transformers."""

PAPER = (
    "paper: networks that generalise return to chance when trained on fewer pairs than the critical number; decay does not move it"
)
