"""StreamingLLM: caches that keep the first tokens and the last ones."""

import jaxdyn as jd

THEORY = jd.Theory(
    title="StreamingLLM",
    about=(
        "A cache that holds the first tokens and the last ones, at positions within the cache, decodes texts of any "
        "length in constant memory. Without the first tokens, on which attention rests that has nowhere else to go, "
        "models fail as soon as the text is longer than the cache."
    ),
    setup=(
        "Decoders with rotary positions read texts through caches that keep the first tokens, the last ones, or both: "
        "with random weights, where equivalences are exact, and trained on the task of bigrams with backward copies and "
        "on the Python manual, where the loss of the first tokens shows. A published model reads the same text where its "
        "weights are at hand."
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
        "window_lost_sink",
        "cost",
        "window_sinks",
        "pretraining",
        "text",
        "pretrained_model",
        "linebreak",
    ),
    shown=("stream.text_dense",),
    instruments=("instrument",),
)
