"""Texts read from folders and files, what is refused, and the corpus that comes of them."""

import os
import pathlib
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxdyn import text
from jaxdyn.errors import UsageError
from jaxdyn.text import sources, tokens
from tests.text.test_tokens import words_line_by_line

WIKITEXT = pathlib.Path(__file__).resolve().parents[3] / "shared" / "data" / "wikitext-2"
LAYOUTS = {"plain": "{}.txt", "tokens": "wiki.{}.tokens", "raw": "wiki.{}.raw"}
TRAIN = 'The cat sat .\n\n \nThe dog , the <unk> "cat" .\n'


def folder(path: pathlib.Path, layout: str = "{}.txt", **parts: str) -> pathlib.Path:
    path.mkdir(exist_ok=True)
    for part, contents in ({"train": TRAIN, "valid": "A cat .", "test": "dog ; zebra"} | parts).items():
        (path / layout.format(part)).write_text(contents, encoding="utf-8")
    return path


def spelled(corpus: text.Corpus, part: str) -> list[str]:
    return [corpus.vocabulary[i] for i in getattr(corpus, part)]


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_folder_of_three_parts(tmp_path, layout):
    corpus = text.read(folder(tmp_path / "small", layout))
    assert corpus.name == "small"
    assert corpus.vocabulary == ("<unk>", "the", ".", "cat", ",", "dog", "sat")
    assert spelled(corpus, "train") == "the cat sat . the dog , the <unk> cat .".split()
    assert spelled(corpus, "valid") == "<unk> cat .".split()
    assert spelled(corpus, "test") == "dog <unk>".split()
    assert all(getattr(corpus, part).dtype == np.int32 for part in ("train", "valid", "test"))


def test_most_keeps_the_frequent_words(tmp_path):
    corpus = text.read(folder(tmp_path), max_words=2)
    assert corpus.vocabulary == ("<unk>", "the", ".")
    assert spelled(corpus, "train") == "the <unk> <unk> . the <unk> <unk> the <unk> <unk> .".split()
    assert text.read(tmp_path, max_words=100).digest == text.read(tmp_path).digest


@pytest.mark.parametrize("level", ("words", "bytes"))
def test_one_file_is_split_in_order(tmp_path, level):
    contents = "\ufeff" + " ".join(f"w{i % 7}" for i in range(100)) + " é\r\n"
    (tmp_path / "one.text").write_bytes(contents.encode())
    corpus = text.read(tmp_path / "one.text", level)
    parts = [corpus.train, corpus.valid, corpus.test]
    if level == "bytes":
        assert bytes(np.concatenate(parts).tolist()).decode() == contents[1:]
        assert corpus.vocabulary == text.BYTES
    else:
        assert [len(p) for p in parts] == [90, 5, 6]
        assert spelled(corpus, "train") + spelled(corpus, "valid") == [f"w{i % 7}" for i in range(95)]
        assert spelled(corpus, "test") == ["w4", "w5", "w6", "w0", "w1", "<unk>"]  # é is no training word


def test_pieces_do_not_change_a_text(tmp_path, monkeypatch):
    whole = text.read(folder(tmp_path))
    monkeypatch.setattr(tokens, "PIECE", 1)
    assert text.read(tmp_path).digest == whole.digest


def test_digest_is_of_the_contents(tmp_path):
    def digest(name, **parts):
        return text.read(folder(tmp_path / name, **parts)).digest

    base = digest("a")
    assert len(base) == 12 and int(base, 16) >= 0
    assert digest("b") == base
    others = [
        digest("c", train=TRAIN + "sat"),
        digest("d", train=TRAIN.replace("dog", "fox"), test="fox zebra"),
        digest("e", valid="a dog ."),
    ]
    assert len({base, *others}) == 4
    moved = digest("f", valid="a cat . dog", test="zebra , .")
    assert moved != digest("f", valid="a cat .", test="dog zebra , .")


def test_topics_are_a_text_of_words_and_of_bytes():
    corpus = text.topics()
    assert len(corpus.train) > 50_000 and len(corpus.vocabulary) > 2000
    assert len(text.topics(max_words=500).vocabulary) == 501
    assert text.load("topics", "bytes").vocabulary == text.BYTES
    assert text.load("topics").digest == corpus.digest


def test_topics_missing_from_the_interpreter(monkeypatch):
    monkeypatch.setitem(sys.modules, "pydoc_data.topics", None)
    with pytest.raises(UsageError, match="without pydoc_data.topics"):
        text.topics()


def test_loaded_texts_are_kept_until_their_files_change(tmp_path):
    path = folder(tmp_path)
    first = text.load(path)
    assert text.load(str(path)) is first
    assert text.load(path, max_words=3) is not first
    with pytest.raises(ValueError, match="read-only"):
        first.train[0] = 1
    (path / "valid.txt").write_text("dog dog dog dog", encoding="utf-8")
    changed = text.load(path)
    assert spelled(changed, "valid") == ["dog"] * 4
    os.utime(path / "train.txt", ns=(1, 1))
    assert text.load(path) is not changed
    assert text.load(path).digest == changed.digest


@pytest.mark.slow
def test_load_of_the_generator():
    small = text.load("markov", max_words=20)
    assert small is text.load("markov", max_words=20)
    assert small.vocabulary[0] == "w1" and len(small.vocabulary) == 20
    with pytest.raises(UsageError, match="markov has words only"):
        text.load("markov", "bytes")


def test_missing_text_and_missing_parts(tmp_path):
    with pytest.raises(UsageError, match="there is no text at .*gone: give topics or markov, which are made up, a folder"):
        text.load(tmp_path / "gone")
    with pytest.raises(UsageError, match="holds no text: it needs train.txt, valid.txt and test.txt or wiki.train.tokens"):
        text.read(tmp_path)
    (folder(tmp_path) / "valid.txt").unlink()
    with pytest.raises(UsageError, match="lacks valid.txt: it needs train.txt, valid.txt and test.txt"):
        text.read(tmp_path)
    (tmp_path / "valid.txt").mkdir()
    with pytest.raises(UsageError, match="valid.txt is a folder, it must be a text file"):
        text.read(tmp_path)
    with pytest.raises(UsageError, match="there is no text at"):
        text.read(tmp_path / "train.txt" / "test.txt")


def test_what_is_no_text(tmp_path):
    def refused(data: bytes, message: str, level: str = "words"):
        (tmp_path / "file").write_bytes(data)
        with pytest.raises(UsageError, match=message):
            text.read(tmp_path / "file", level)

    for level in text.LEVELS:
        refused(b"", "is empty", level)
        refused(b" \n\n", "is empty", level)
        refused(b"\xef\xbb\xbf", "is empty", level)
        refused(b"word " * 99 + b"\0", "binary, not text: byte 495 is NUL", level)
        refused(b"\xef\xbb\xbfword\n\xff", "not UTF-8 at byte 8", level)
        refused("é".encode("latin-1") * 99, "not UTF-8 at byte 0", level)
        refused("words".encode("utf-16"), "not UTF-8|NUL", level)
    refused(b"a b " * 9, "is too short: each part needs 2 tokens or more, the valid part has 1")
    refused(b"a b " * 5, "is too short: each part needs 2 tokens or more, the valid part has 1", "bytes")
    refused(": ; \u3000".encode(), "is too short: each part needs 2 tokens or more, the train part has 0")


def test_place_of_a_wrong_byte_counts_from_the_start_of_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr(tokens, "PIECE", 4)
    (tmp_path / "file").write_bytes(b"one\ntwo\nthree\xff\n")
    with pytest.raises(UsageError, match="not UTF-8 at byte 13"):
        text.read(tmp_path / "file")


@pytest.mark.parametrize("place", ["start", "middle", "end"])
def test_enormous_line_is_refused_as_words_only(tmp_path, monkeypatch, place):
    monkeypatch.setattr(sources, "LINE", 200)
    lines = ["word " * 40] * 3  # 200 bytes each: allowed
    (tmp_path / "file").write_text("\n".join(lines), encoding="utf-8")
    assert len(text.read(tmp_path / "file").vocabulary) == 2
    lines[["start", "middle", "end"].index(place)] += "x"
    (tmp_path / "file").write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(UsageError, match="a line of 201 bytes, .* 200 bytes or less: break its lines, or use level=bytes"):
        text.read(tmp_path / "file")
    assert len(text.read(tmp_path / "file", "bytes").train) > 500


@pytest.mark.parametrize("reader", [text.topics, lambda **k: text.read("no such", **k), lambda **k: text.load("no such", **k)])
def test_options_out_of_range(reader):
    with pytest.raises(UsageError, match="level='letters' is not allowed: it is one of words, bytes"):
        reader(level="letters")
    for max_words in (0, -1, 2.0, True, "3"):
        with pytest.raises(
            UsageError, match=f"max_words={max_words} is not allowed: max_words is (at least 1|a whole number, at least 1)"
        ):
            reader(max_words=max_words)
    with pytest.raises(UsageError, match="max_words=3 is not allowed: it counts words"):
        reader(level="bytes", max_words=3)


def test_what_the_system_refuses(tmp_path, monkeypatch):
    with pytest.raises(UsageError, match="is neither a folder nor a plain file"):
        text.read(os.devnull)
    for path in ("x" * 5000, "a\0b"):
        with pytest.raises(UsageError, match="cannot be read"):
            text.load(path)
    os.symlink(tmp_path / "loop", tmp_path / "loop")
    with pytest.raises(UsageError, match="cannot be read: Too many levels"):
        text.read(tmp_path / "loop")

    def denied(path):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(pathlib.Path, "read_bytes", denied)
    with pytest.raises(UsageError, match="train.txt cannot be read: Permission denied"):
        text.read(folder(tmp_path))


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may enter every folder")
def test_folder_that_may_not_be_entered(tmp_path):
    closed = folder(tmp_path / "closed")
    closed.chmod(0)
    try:
        with pytest.raises(UsageError, match="cannot be read: Permission denied"):
            text.read(closed)
    finally:
        closed.chmod(0o700)


@pytest.mark.skipif(not WIKITEXT.is_dir(), reason="WikiText-2 is not in ../shared/data/wikitext-2")
def test_wikitext_has_the_published_sizes():
    corpus = text.load(WIKITEXT)
    assert len(corpus.vocabulary) == 28_782
    assert [len(corpus.train), len(corpus.valid), len(corpus.test)] == [2_049_990, 214_417, 241_859]
    columns = text.columns(corpus.train, 20)
    published = len(range(0, columns.shape[1] - 1, 35))  # its last window is shorter
    assert (published, text.windows_in(columns, 35)) == (2929, 2928)
    start = (WIKITEXT / "train.txt").read_text(encoding="utf-8")[:200_000].rsplit("\n", 1)[0]
    expected = words_line_by_line(start)
    assert spelled(corpus, "train")[: len(expected)] == expected


@settings(deadline=None, max_examples=120, derandomize=True)
@given(
    data=st.binary(max_size=120)
    | st.text(max_size=120).map(lambda t: t.encode(errors="surrogatepass"))
    | st.text("ab \n\r", min_size=40, max_size=90).map(str.encode),
    level=st.sampled_from(text.LEVELS),
    max_words=st.sampled_from([None, 1, 5, 20]),
)
def test_any_file_is_read_or_refused_in_one_sentence(tmp_path_factory, data, level, max_words):
    if level == "bpe":
        pytest.importorskip("sentencepiece")
    file = tmp_path_factory.getbasetemp() / "any"
    file.write_bytes(data)
    try:
        corpus = text.read(file, level, max_words)
    except UsageError as error:
        assert "\n" not in str(error)
        return
    parts = [corpus.train, corpus.valid, corpus.test]
    if level == "bytes":
        assert bytes(np.concatenate(parts).tolist()) == data.removeprefix("\ufeff".encode())
    if level == "words" and max_words is None:
        words = words_line_by_line(data.decode().removeprefix("\ufeff"))
        assert all(
            a in (b, "<unk>") for a, b in zip([w for p in parts for w in (corpus.vocabulary[i] for i in p)], words, strict=True)
        )


@pytest.mark.parametrize("reader", [text.read, text.load])
@pytest.mark.parametrize("path", [None, 5, True, b"a.txt", ["a"], 1.5])
def test_what_is_no_path_is_refused(reader, path):
    with pytest.raises(UsageError, match="a text of .* is not allowed: give topics, markov, or the path of a text"):
        reader(path)
    for wrong, words in {"a\ud800": "cannot be read", "~no such user/a": "no home folder is known for ~no such user"}.items():
        with pytest.raises(UsageError, match=words):
            reader(wrong)


def test_numbers_of_words_of_any_library(tmp_path):
    path = folder(tmp_path)
    assert text.read(path, max_words=np.int64(2)).digest == text.read(path, max_words=2).digest
    assert text.load(path, max_words=np.int64(2)) is text.load(path, max_words=2)
    assert text.read(path, max_words=10**20).digest == text.read(path).digest


@pytest.mark.parametrize("end", ["\r", "\r\n", "\n"])
def test_lines_end_as_any_system_ends_them(tmp_path, monkeypatch, end):
    monkeypatch.setattr(sources, "LINE", 200)
    monkeypatch.setattr(tokens, "PIECE", 1)
    (tmp_path / "file").write_bytes(end.join(["one two ." * 20] * 5).encode())
    plain = tmp_path / "plain"
    plain.write_bytes("\n".join(["one two ." * 20] * 5).encode())
    assert text.read(tmp_path / "file").digest == text.read(plain).digest
