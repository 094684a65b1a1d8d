"""The paper's rows are of kinds that the trial knows, and its order is the one that the claims speak of."""

from jaxdyn.theories.assort.published import REPLACED, SYNTHETIC, TASKS
from jaxdyn.theories.assort.trials.order import KINDS


def test_rows():
    assert set(REPLACED) <= set(KINDS) and set(SYNTHETIC) <= set(KINDS)
    assert all(len(row) == len(TASKS) for row in SYNTHETIC.values())
    assert REPLACED["random"] > REPLACED["curriculum"] > REPLACED["all"]
    for solution, text, mixed in zip(*SYNTHETIC.values(), strict=True):
        assert solution.accuracy < text.accuracy < mixed.accuracy and mixed.tokens < text.tokens
