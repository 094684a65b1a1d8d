"""Published shapes fit together."""

from jaxdyn.theories.mobile.published import MODELS


def test_shapes():
    for m in MODELS.values():
        assert m.width == 64 * m.heads and m.heads % m.groups == 0
    assert [m.millions for m in MODELS.values()] == sorted(m.millions for m in MODELS.values())
