"""Every public name is where its table says."""

import importlib

import jaxdyn as jd
from jaxdyn.homes import HOMES, MODULES, home_of


def test_every_name_has_its_home():
    for name in HOMES:
        assert getattr(importlib.import_module(home_of(name)), name) is getattr(jd, name), name
    for name in MODULES:
        assert importlib.import_module(home_of(name)) is getattr(jd, name)
    assert home_of("nonsense") == "jaxdyn"


def test_all_public_names_are_in_the_table():
    assert set(jd.__all__) - {"map"} == set(HOMES)
