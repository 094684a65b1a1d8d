"""Switches by themselves; how settings hold and trace them is tested with settings."""

import jax
import pytest

import jaxdyn as jd


def test_a_switch_of_another_kind_is_another():
    assert jd.Code.of("b", ("a", "b")) == jd.Code(1, ("a", "b")) and hash(jd.Code.of("b", "ab")) == hash(jd.Code(1, ("a", "b")))
    assert jd.Code(1, ("a", "b")) != jd.Code(1, ("a", "c")) and jd.Code(1, ("a", "b")) != jd.Code(0, ("a", "b"))


def test_a_switch_keeps_its_names_through_a_tree():
    switch = jd.Code.of("b", ("a", "b"))
    leaves, tree = jax.tree.flatten(switch)
    assert leaves == [1] and jax.tree.unflatten(tree, leaves) == switch and str(switch) == "b"
    assert str(jax.tree.unflatten(tree, [None])) == "one of a, b"


def test_a_switch_has_no_other_names():
    with pytest.raises(jd.UsageError, match="'c' is not allowed: it is one of a, b"):
        jd.Code.of("c", ("a", "b"))
