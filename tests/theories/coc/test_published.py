"""The published numbers cover all methods, and their order is the one that the papers state."""

from jaxdyn.theories.coc import model
from jaxdyn.theories.coc.published import PRODUCTS, PROSQA, SIZES
from jaxdyn.theories.coc.trials.training import Training


def test_every_method_has_its_row():
    assert set(PROSQA) == set(model.METHODS)
    with_curriculum = ("icot", "coconut", "no_thoughts", "pause_as_thought")
    assert min(PROSQA[name][0] for name in with_curriculum) > max(v[0] for k, v in PROSQA.items() if k not in with_curriculum)


def test_published_order_of_groups():
    for optimal, frontier, reachable, unreachable in zip(*PRODUCTS.values(), strict=True):
        assert optimal[0] > frontier[1] and frontier[0] > reachable[1] and reachable[0] > unreachable[1]


def test_sizes_are_a_setting():
    assert Training(**SIZES).hops == 3
