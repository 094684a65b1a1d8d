"""The published numbers cover all methods, and their order is the one that the papers state."""

from jaxdyn.theories.coc import model
from jaxdyn.theories.coc.published import ATTENTION, PRODUCTS, PROSQA


def test_every_method_has_its_row():
    assert set(PROSQA) == set(model.METHODS)
    with_curriculum = ("icot", "coconut", "no_thoughts", "pause_as_thought")
    assert min(PROSQA[name][0] for name in with_curriculum) > max(v[0] for k, v in PROSQA.items() if k not in with_curriculum)


def test_published_order_of_groups():
    for optimal, frontier, reachable, unreachable in zip(*PRODUCTS.values(), strict=True):
        assert optimal[0] > frontier[1] and frontier[0] > reachable[1] and reachable[0] > unreachable[1]


def test_published_order_of_edges():
    columns = zip(*ATTENTION.values(), strict=True)
    for step, (optimal, frontier, reachable, unreachable) in enumerate(columns, 1):
        assert optimal[0] > frontier[0] >= reachable[0] > unreachable[0]
        assert (frontier == reachable) is (step == 1)
