"""The text of a probe: files, folders, the manual, numbers; and pieces."""

import numpy as np
import pytest

from jaxdyn.errors import UsageError
from jaxdyn.models.probe_text import beginning, cut, open_text
from jaxdyn.models.tokenizer import Tokenizer
from tests.models.instruments import plain
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
