"""StreamingLLM: caches that keep the first tokens and the last ones."""

import jaxdyn as jd

__all__ = ["THEORY"]

THEORY = jd.Theory(
    title="StreamingLLM",
    about=(
        "A cache that holds the first tokens and the last ones, at positions within the cache, decodes texts of any length "
        "in constant memory."
    ),
    papers=(
        jd.Paper(
            "2309.17453",
            "Efficient Streaming Language Models with Attention Sinks",
            "G. Xiao, Y. Tian, B. Chen, S. Han, M. Lewis",
            "ICLR 2024",
        ),
    ),
    topics=(
        "equivalence",
        "lost_sink",
        "cost",
        "window",
        "text",
        "pretrained",
    ),
    shown=("stream.text_dense",),
)
