"""Text as streams of whole numbers: read and tokenised, or drawn from a chain of known entropy, and cut into windows."""

from jaxdyn.text import markov
from jaxdyn.text.batches import columns, window, windows_in
from jaxdyn.text.corpus import Corpus
from jaxdyn.text.sources import LEVELS, load, read, topics
from jaxdyn.text.tokens import BYTES, UNKNOWN, split_words

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
