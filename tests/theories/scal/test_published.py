"""Published parameters against the exponents that are printed beside them."""

import pytest

from jaxdyn.theories.scal import published
from jaxdyn.theories.scal.dynamics import laws


@pytest.mark.parametrize(
    ("name", "a", "size"),
    [("Hoffmann, all digits", 0.4565, 40.4e9), ("Hoffmann, as printed", 0.4516, 32.2e9), ("Besiroglu", 0.5126, 72.3e9)],
)
def test_exponents_and_sizes(name, a, size):
    law = published.LAWS[name]
    assert laws.exponent(law) == pytest.approx(a, abs=1e-4)
    assert laws.optimum(law, published.BUDGET)[0] == pytest.approx(size, rel=3e-3)


def test_exponents_of_size_and_tokens_add_up():
    rows = list(published.APPROACHES.values())
    assert all(a + b == pytest.approx(1) for a, _, b, _ in rows)
    assert sum(published.KAPLAN) == pytest.approx(1)
    assert not rows[2][1][0] <= rows[2][0] <= rows[2][1][1]  # the third range holds its own point nowhere
