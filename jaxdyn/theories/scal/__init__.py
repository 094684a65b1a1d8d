"""Scaling laws: what fits of losses over sizes and tokens say about the best use of a budget of compute."""

import jaxdyn as jd

THEORY = jd.Theory(
    title="Scaling laws",
    about=(
        "Three ways to find the best size of a language model for a budget of compute: the lowest of all curves, parabolas "
        "through models of equal compute, and the fit of a law. On exact laws their errors have closed forms, searches that "
        "end early and intervals that are too narrow can be told, and a linear model has a law that no sum of powers fits; "
        "on models trained here they are compared."
    ),
    setup=(
        "Laws of the loss over size and tokens are drawn at random, with all constants known, and fitted with the "
        "published procedures. A linear model with power-law spectra has an exact learning curve to compare with. Small "
        "language models of several sizes are trained here to see how far apart the three approaches come out."
    ),
    papers=(
        jd.Paper(
            "2203.15556",
            "Training Compute-Optimal Large Language Models",
            "J. Hoffmann, S. Borgeaud, A. Mensch and others",
            "NeurIPS 2022",
        ),
        jd.Paper("2001.08361", "Scaling Laws for Neural Language Models", "J. Kaplan, S. McCandlish and others", "2020"),
        jd.Paper("2404.10102", "Chinchilla Scaling: A replication attempt", "T. Besiroglu, E. Erdil, M. Barnett, J. You", "2024"),
        jd.Paper("2603.22339", "Problems with Chinchilla Approach 2", "E. Czech and others", "2026"),
    ),
    topics=(
        "table_rounding_tokens",
        "closed_form",
        "fitted",
        "whitebox",
        "trained",
    ),
    shown=("scal.whitebox",),
)
