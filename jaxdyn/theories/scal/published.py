"""Published estimates of scaling laws.

Sources: arXiv:2203.15556 (Hoffmann), Tables 2 and 3 and the digits in the source of its text; arXiv:2404.10102 (Besiroglu);
arXiv:2001.08361 (Kaplan), Table 1.
"""

from __future__ import annotations

from jaxdyn.theories.scal.dynamics.laws import Law

BUDGET = 5.76e23  # operations, of Gopher and Chinchilla

LAWS = {
    "Hoffmann, all digits": Law(e=1.6934, a=406.40, b=410.72, alpha=0.33917, beta=0.28491),
    "Hoffmann, as printed": Law(e=1.69, a=406.4, b=410.7, alpha=0.34, beta=0.28),
    "Besiroglu": Law(e=1.8172, a=482.01, b=2085.43, alpha=0.3478, beta=0.3658),
}

# exponent of N, its printed 10% and 90% points; exponent of D, likewise
APPROACHES = {
    "1, minimum over curves": (0.50, (0.488, 0.502), 0.50, (0.501, 0.512)),
    "2, isoFLOP parabolas": (0.49, (0.462, 0.534), 0.51, (0.483, 0.529)),
    "3, parametric fit": (0.46, (0.454, 0.455), 0.54, (0.542, 0.543)),
}
LIFE = (70, 300, 12, 10)  # years, days of a year, hours of a day, tokens in a second, by the same talks
HUMAN_TOKENS = 9.1e9  # in a lifetime, by the talks "grokking" and "practical"
KAPLAN = (0.73, 0.27)  # exponents of N and of D in the budget
