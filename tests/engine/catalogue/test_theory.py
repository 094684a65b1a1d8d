"""A title page: its topics, by chapter or not, and its papers."""

import dataclasses

import pytest

import jaxdyn as jd


def test_topics_may_stand_in_chapters():
    chapters = jd.Theory(title="A theory", topics={"One": ("a.b", "a.c"), "Two": ("d",)})
    assert chapters.topic_names == jd.Theory(title="A theory", topics=("a.b", "a.c", "d")).topic_names == ("a.b", "a.c", "d")


def test_chapters_are_those_of_the_title_page():
    assert jd.Theory(title="A theory", topics=("a", "b")).chapters == {}
    assert jd.Theory(title="A theory", topics={"One": ("a",), "Two": ("b",)}).chapters == {"One": ("a",), "Two": ("b",)}


def test_a_topic_listed_twice_is_refused():
    with pytest.raises(jd.UsageError, match="topics='b' is not allowed: A theory lists it twice"):
        jd.Theory(title="A theory", topics={"One": ("a", "b"), "Two": ("b",)})


def test_a_paper_has_the_address_of_its_abstract():
    assert jd.Paper("1234.56789", "T", "A", "V").url == "https://arxiv.org/abs/1234.56789"


def test_a_stored_map_cannot_be_changed():
    toy = jd.AtlasMap("toy", "A toy", "toy.law", ("rate=.1:10:log",), "It holds.")
    assert (toy.theory, toy.cells, toy.seeds, dict(toy.sets)) == ("toy", 243, None, {})
    with pytest.raises(dataclasses.FrozenInstanceError):
        toy.cells = 9
