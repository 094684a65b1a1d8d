"""Instruments: each has one question to a model's weights, its measurement, what theory predicts, and a figure.

Here is what they have in common; each lies in its theory's folder, and ``registry`` collects them.
"""

from jaxdyn.instruments.instrument import Cost, Instrument, NotApplicable, Number, Table

__all__ = ["Cost", "Instrument", "NotApplicable", "Number", "Table"]
