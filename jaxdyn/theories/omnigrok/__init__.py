"""When a student with large weights generalises: the shell of norms, and the delay until it is reached (arXiv:2210.01117)."""

import jaxdyn as jd

THEORY = jd.Theory(
    title="Omnigrok",
    about=(
        "Students that start with large weights generalise late, because weight decay must first bring them to the shell "
        "of norms on which solutions generalise. The delay is then inversely proportional to the decay."
    ),
    setup=(
        "Tanh networks with two hidden layers learn samples of a random teacher of the same shape by AdamW, from twice "
        "the standard weights with several decays. Others are held on spheres of fixed norm, which shows the norms on "
        "which solutions generalise."
    ),
    papers=(jd.Paper("2210.01117", "Omnigrok: Grokking Beyond Algorithmic Data", "Z. Liu, E. Michaud, M. Tegmark", "ICLR 2023"),),
    topics=("shell_delay",),
    shown=("omnigrok.shell",),
)
