"""Instruments: each is one file with one question to a model's weights, its measurement, what theory predicts, and a figure."""

from jaxdyn.models.instruments.entropy import ENTROPY
from jaxdyn.models.instruments.gradients import GRADIENTS
from jaxdyn.models.instruments.heavy import HEAVY
from jaxdyn.models.instruments.instrument import Cost, Instrument, NotApplicable, Number, Table
from jaxdyn.models.instruments.navigators import NAVIGATORS
from jaxdyn.models.instruments.orthogonality import ORTHOGONALITY
from jaxdyn.models.instruments.sinks import SINKS
from jaxdyn.models.instruments.sparsity import SPARSITY
from jaxdyn.models.instruments.streaming import STREAMING

__all__ = ["INSTRUMENTS", "Cost", "Instrument", "NotApplicable", "Number", "Table"]

INSTRUMENTS = {one.name: one for one in (SINKS, STREAMING, HEAVY, SPARSITY, ENTROPY, ORTHOGONALITY, GRADIENTS, NAVIGATORS)}
