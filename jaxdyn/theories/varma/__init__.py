"""Circuits that memorise and circuits that generalise: which is cheaper decides (arXiv:2309.02390)."""

import jaxdyn as jd

THEORY = jd.Theory(
    title="Efficiency of circuits",
    about=(
        "Memorising costs more the more there is to memorise, generalising costs the same. Weight decay prefers the cheaper "
        "way: a network that has generalised forgets it again when it is trained on few samples."
    ),
    setup=(
        "A two-layer network with quadratic activation learns addition modulo 23 from most of the pairs and is then "
        "trained further on fewer of them, at shares on both sides of the critical one. Networks of the same start that "
        "see only the smaller set are the comparison."
    ),
    papers=(
        jd.Paper(
            "2309.02390",
            "Explaining grokking through circuit efficiency",
            "V. Varma, R. Shah, Z. Kenton, J. Kramár, R. Kumar",
            "2023",
        ),
    ),
    topics=("ungrok_efficiency",),
    shown=("varma.ungrok",),
)
