"""Circuits that memorise and circuits that generalise: which is cheaper decides (arXiv:2309.02390)."""

import jaxdyn as jd

__all__ = ["THEORY"]

THEORY = jd.Theory(
    title="Efficiency of circuits",
    about=(
        "Memorising costs more the more there is to memorise, generalising costs the same. Weight decay prefers the cheaper "
        "way: a network that has generalised forgets it again when it is trained on few samples."
    ),
    papers=(
        jd.Paper(
            "2309.02390",
            "Explaining grokking through circuit efficiency",
            "V. Varma, R. Shah, Z. Kenton, J. Kramár, R. Kumar",
            "2023",
        ),
    ),
    topics=("ungrok",),
    shown=("varma.ungrok",),
)
