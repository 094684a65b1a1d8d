"""Text as streams of whole numbers: read and tokenised, or drawn from a chain of known entropy, and cut into windows."""

from jaxdyn.data.text import markov
from jaxdyn.data.text.batches import columns, window, windows_in
from jaxdyn.data.text.corpus import Corpus
from jaxdyn.data.text.sources import LEVELS, load, read, topics
from jaxdyn.data.text.tokens import BYTES, UNKNOWN, split_words

__all__ = [
    "BYTES",
    "LEVELS",
    "UNKNOWN",
    "Corpus",
    "columns",
    "load",
    "markov",
    "read",
    "split_words",
    "topics",
    "window",
    "windows_in",
]
