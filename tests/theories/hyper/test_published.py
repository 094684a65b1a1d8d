"""The published losses against the closed forms."""

import jax
import pytest

from jaxdyn.theories.hyper import published
from jaxdyn.theories.hyper.dynamics import codes


def test_the_constants_reproduce_the_linear_loss():
    c = published.CONSTANTS
    negatives, t = 2.0 * c["batch"] - 2, c["temperature"]
    with jax.enable_x64(True):
        linear = float(codes.loss(negatives, codes.bit_moment(c["relevant"], t), t))
        least = float(codes.loss(negatives, codes.sphere_moment(c["dim"], t), t))
        simplex = float(codes.loss(negatives, codes.simplex_moment(2.0 ** c["relevant"], t), t))
    table = {name: loss for name, ((loss, _), _) in published.TABLE.items()}
    assert linear == pytest.approx(table["linear"], abs=0.002)
    assert least < table["MLP, Adam"] < table["MLP, Adam with weight decay"] < linear
    assert simplex == pytest.approx(table["exists f"], abs=0.005)
