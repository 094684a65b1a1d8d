"""Published numbers of the text experiments: WikiText-2, means of three seeds (released results of arXiv:2310.00535, section 5)."""

__all__ = ["BEST_LOSS", "ENTROPY"]


def _layers(*curves: tuple[float | None, float, float]) -> dict[int, dict[str, float | None]]:
    """Entropy at the start, at its lowest and at the end, nats, for each layer from the bottom."""
    return {i: dict(zip(("start", "min", "end"), curve, strict=True)) for i, curve in enumerate(curves)}


# (layers, rate): best validation loss, nats a word
BEST_LOSS = {
    (1, 1e-4): 5.357,
    (2, 1e-4): 5.255,
    (3, 1e-4): 5.215,
    (4, 1e-4): 5.187,
    (5, 1e-4): 5.169,
    (8, 1e-4): 5.121,
    (10, 1e-4): 5.110,
    (5, 1e-6): 6.410,
    (5, 5e-6): 5.885,
    (5, 1e-5): 5.671,  # one seed only
    (5, 5e-5): 5.229,
    (5, 1e-3): 5.305,
    (5, 1e-2): 6.761,
}
ENTROPY = {
    (1, 1e-4): _layers((2.51, 1.55, 2.21)),
    (2, 1e-4): _layers((2.51, 1.34, 1.83), (2.55, 1.53, 2.17)),
    (3, 1e-4): _layers((None, 1.27, 1.56), (None, 1.25, 1.89), (None, 1.92, 2.32)),
    (5, 1e-4): _layers((None, 1.29, 1.43), (None, 1.16, 1.50), (None, 1.25, 1.96), (None, 1.81, 2.07), (None, 2.16, 2.43)),
}
