"""The spectrum of successive updates while a network learns a group: a gap after the second value (arXiv:2605.08119)."""

import jaxdyn as jd

THEORY = jd.Theory(
    title="Spectra of updates",
    about=(
        "Successive updates of a network that learns a group span few directions. A gap after the second singular value of a "
        "window of updates precedes generalisation, or follows it, as sizes, rates, activations and shares of the data have it."
    ),
    setup=(
        "A two-layer network with squares or ReLU learns addition modulo 23 by Adam, with and without weight decay. The "
        "changes of its first layer over the last few epochs form a window, whose singular values are followed along "
        "training."
    ),
    papers=(
        jd.Paper(
            "2605.08119",
            "Feature Repulsion and Spectral Lock-in: An Empirical Study of Two-Layer Network Grokking",
            "Y. Xu",
            "2026",
        ),
    ),
    topics=("spectral",),
    shown=("xu.spectral",),
)
