"""All attacks, in the order in which they are asked."""

from __future__ import annotations

from jaxdyn.attacks.averages import AVERAGES
from jaxdyn.attacks.case import Attack
from jaxdyn.attacks.law import LAW
from jaxdyn.attacks.learning import LEARNING
from jaxdyn.attacks.luck import LUCK
from jaxdyn.attacks.more_time import MORE_TIME
from jaxdyn.attacks.neighbours import NEIGHBOURS
from jaxdyn.attacks.opponents import OPPONENTS
from jaxdyn.attacks.parts import PARTS
from jaxdyn.attacks.reading import READING
from jaxdyn.attacks.words import WORDS

__all__ = ["ATTACKS"]

ATTACKS: tuple[Attack, ...] = (
    LAW,
    LEARNING,
    NEIGHBOURS,
    MORE_TIME,
    READING,
    AVERAGES,
    PARTS,
    OPPONENTS,
    WORDS,
    LUCK,
)
