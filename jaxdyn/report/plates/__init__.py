"""The maps of the atlas, as data: the claim, the plane, and what came out, in words."""

from jaxdyn.report.plates import attention, descent, grokking, search
from jaxdyn.report.plates.plate import Plate

__all__ = ["PLATES", "Plate"]

PLATES: tuple[Plate, ...] = attention.PLATES + descent.PLATES + search.PLATES + grokking.PLATES
