"""Instruments that take no time, and tokenizers without a library, for tests of the probe itself."""

import numpy as np
import xarray as xr

from jaxdyn.instruments import Cost, Instrument, NotApplicable, Number, Table, registry
from jaxdyn.instruments.instrument import number
from jaxdyn.instruments.pieces import reading


class Letters:
    """Letters as tokens; begins with token 0 if asked for special tokens."""

    def __init__(self, begins=True):
        self.begins = begins

    def encode(self, text, add_special_tokens=True):
        ids = [1 + ord(c) % 10 for c in text]
        return type("Encoding", (), {"ids": [0] * (self.begins and add_special_tokens) + ids})()

    @property
    def before(self):
        return (0,) * self.begins

    def to_str(self):
        return "letters"

    def token_to_id(self, token):
        return 0 if token == "<s>" else None


def toy(name, factor=1.0):
    """Means of the tokens by piece, times a number; along training with a line for each of two layers."""

    def measure(model, tokens, tick):
        tick(0.5)
        scale = float(np.asarray(model.params["norm"]).mean())
        data = {"mean": (("piece",), factor * scale * tokens.mean(1)), "deep": (("piece", "layer"), tokens[:, :2] * scale)}
        return xr.Dataset(data, {"layer": [1, 2]}, {"tokens": tokens.shape[1]} | reading(tokens))

    def plot(ds, fig):
        fig.subplots().plot(ds["mean"].values)

    return Instrument(
        name=name,
        title=f"Toy {name}",
        theory=r"Tokens have a mean of $\mu$.",
        caption="Means of pieces.",
        source="arXiv:2309.17453, section 3.1",
        pieces=8,
        cost=lambda shape, tokens: Cost(1e6, 1e6),
        measure=measure,
        predict=lambda ds: xr.Dataset({"mean": 5.0}),
        numbers=lambda ds: [number("mean token", ds["mean"], 5.0, "toys"), Number("count", float(ds.sizes["piece"]))],
        plot=plot,
        traces=lambda ds: {"mean token": ds["mean"], "first tokens": ds.deep},
        table=lambda ds: Table("Published", ("a",), (("this model", ("1",)), ("OPT", ("2",))), "arXiv:2309.17453"),
    )


def refuses(name):
    """An instrument that has nothing to measure."""

    def measure(model, tokens, tick):
        raise NotApplicable("Nothing here can be measured.")

    one = toy(name)
    return Instrument(**{field: getattr(one, field) for field in one.__dataclass_fields__} | {"measure": measure})


def only(monkeypatch, *ones):
    """Put these in the place of all instruments."""
    monkeypatch.setattr(registry, "instruments", lambda: {one.name: one for one in ones})
