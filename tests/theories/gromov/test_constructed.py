"""What settings of the constructed network refuse, and its records against the plain network."""

import jax
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.theories.gromov import model
from jaxdyn.theories.gromov.constructed import OFFSETS, Constructed, observe


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"moduli": (9,)}, "all are prime to 6"),
        ({"moduli": (22,)}, "all are prime to 6"),
        ({"moduli": (7,)}, "moduli are above 10"),
        ({"moduli": ()}, "at least one modulus"),
        ({"moduli": (11, 11)}, "moduli differ"),
    ],
)
def test_settings_refuse(fields, words):
    with pytest.raises(jd.UsageError, match=f"{next(iter(fields))}=.* not allowed: .*{words}"):
        Constructed(**fields)


def test_records_are_those_of_the_plain_network_at_every_width(x64):
    s = Constructed(moduli=(11,), step=3, blocks=2)
    nodes = model.sample_nodes(jax.random.key(0), 11, 6)
    records = jax.jit(lambda n: observe(s, n, 11))(nodes)
    right = model.labels(11)
    for place, width in enumerate((3, 6)):
        out = np.asarray(model.logits(jax.tree.map(lambda x, w=width: x[:w], nodes), 11))
        margin = np.stack([out[np.arange(121), right] - out[np.arange(121), (right + offset) % 11] for offset in OFFSETS], 1)
        assert float(records["accuracy"][place]) == np.mean(np.argmax(out, 1) == right)
        np.testing.assert_allclose(records["mean"][place], margin.mean(0), atol=1e-12)
        np.testing.assert_allclose(records["variance"][place], margin.var(0), rtol=1e-10)
