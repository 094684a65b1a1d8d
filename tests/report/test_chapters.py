"""Claims are grouped by the chapter of their topic."""

import jaxdyn as jd
from jaxdyn.report.chapters import by_chapter

CHAPTERS = jd.Theory(title="A theory", topics={"One": ("a.b", "a.c"), "Two": ("d",), "Three": ("e",)})


def test_chapters_come_in_the_order_of_the_title_page():
    pairs = [("d", 1), ("a.c", 2), ("a.b", 3), ("d", 4)]
    assert list(by_chapter(CHAPTERS, pairs).items()) == [("One", [2, 3]), ("Two", [1, 4])]


def test_claims_without_a_chapter_come_first():
    assert list(by_chapter(CHAPTERS, [("d", 1), ("elsewhere", 2), (None, 3)]).items()) == [("", [2, 3]), ("Two", [1])]


def test_a_theory_without_chapters_has_one_group():
    assert by_chapter(jd.Theory(title="A theory", topics=("a", "b")), [("b", 1), ("a", 2)]) == {"": [1, 2]}
