"""Small words for the terminal."""

import pytest

from jaxdyn.engine.base.words import duration, plural


@pytest.mark.parametrize(
    ("seconds", "words"), [(5, "under a minute"), (150, "about 2 min"), (3600, "about 60 min"), (8000, "about 2 h")]
)
def test_durations(seconds, words):
    assert duration(seconds) == words


def test_words_agree_in_number():
    assert [plural(n, "run") for n in (0, 1, 2)] == ["0 runs", "1 run", "2 runs"]
