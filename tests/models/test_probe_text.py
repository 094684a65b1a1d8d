"""The text of a probe: files, folders, the manual, numbers; and pieces."""

import numpy as np
import pytest

from jaxdyn.errors import UsageError
from jaxdyn.models.probe_text import RawText, beginning, cut, numbered, open_text
from jaxdyn.models.tokenizer import Tokenizer
from tests.instruments import plain
from tests.models.toys import Letters

BEGUN, BARE = (plain.model(tokenizer=Tokenizer(Letters(begins))) for begins in (True, False))


def test_a_file_is_read_whole_as_it_stands(tmp_path):
    file, letters = tmp_path / "book.txt", "Naïve – 中文 🙂\r\n\nend. " * 40
    file.write_bytes(letters.encode())
    source = open_text(file)
    assert source.letters == letters and source.name == str(file) and open_text(str(file)).digest == source.digest


def test_of_a_folder_the_test_part_is_read(tmp_path):
    for part in ("train", "valid", "test"):
        (tmp_path / f"{part}.txt").write_text(f"the {part} part of it", encoding="utf-8")
    assert open_text(tmp_path).letters == "the test part of it"


def test_the_manual_is_there_without_a_file():
    source = open_text(None)
    assert source.name == "the interpreter's manual" and len(source.letters) > 10**5 and "statement" in source.letters


def test_pieces_begin_as_the_tokenizer_begins_a_text(tmp_path):
    file = tmp_path / "text"
    file.write_text("abcdefghij" * 200, encoding="utf-8")
    source = open_text(file)
    pieces = cut(source, BEGUN, 400, 512)
    assert pieces.shape == (4, 101) and (pieces[:, 0] == 0).all() and beginning(BEGUN).tolist() == [0]
    bare = cut(source, BARE, 400, 512)
    assert bare.shape == (4, 100) and beginning(BARE).size == beginning(plain.model()).size == 0
    np.testing.assert_array_equal(bare.ravel(), BARE.tokenizer.encode("abcdefghij" * 40))
    np.testing.assert_array_equal(pieces[:, 1:].ravel(), bare.ravel())


def test_lengths():
    source = open_text(np.arange(1000) % 11)
    assert cut(source, plain.model(), 1000, 512).shape == (4, 250)
    assert cut(source, plain.model(), 1000, 64).shape == (15, 64)
    learned = plain.model(plain.changed(position="learned", length=70))
    assert cut(source, learned, 1000, 512).shape == (14, 70)
    with pytest.raises(UsageError, match="this model reads texts of 50 tokens; a piece has 64 or more"):
        cut(source, plain.model(plain.changed(position="learned", length=50)), 1000, 512)


class Words(Letters):
    """Words of 17 letters are the token 5, the rest of a text is the token 6."""

    def encode(self, text, add_special_tokens=True):
        return type("Encoding", (), {"ids": [5] * (len(text) // 17) + [6] * (len(text) % 17 > 0)})()

    def id_to_token(self, number):
        return f"token {number}"


def test_the_beginning_of_a_text_has_the_numbers_that_it_has_in_the_whole_text():
    """Only 16 letters for each token are numbered at first, and the word at their end is cut."""
    model = plain.model(tokenizer=Tokenizer(Words()))
    for tokens in range(1, 40):
        assert numbered(RawText("a text", "a" * 17 * 200, None, ""), model, tokens).tolist() == [5] * tokens


def test_texts_with_tokens_beyond_the_embeddings_are_refused():
    few = plain.model(tokenizer=Tokenizer(Words(), rows=6))
    assert numbered(RawText("a text", "a" * 17 * 17, None, ""), few, 17).tolist() == [5] * 17
    with pytest.raises(UsageError, match="the text has the token 'token 6', number 6; the model has embeddings of 6 tokens"):
        cut(RawText("a text", "a" * 17001, None, ""), few, 2000, 64)


@pytest.mark.parametrize("text", [[[1], [1, 2]], [[1, 2]], [0.5], [], [True], 3])
def test_what_is_no_row_of_numbers_is_refused(text):
    with pytest.raises(UsageError, match="text=.* is not allowed: it is the path of a text, or one row of token numbers"):
        open_text(text)
