"""Losses of four predictors as an independent program in NumPy (of the tests) sampled them: 1.2 million sequences; in no paper."""

from __future__ import annotations

PREDICTORS = ("uniform", "tokens", "pairs", "chain")
# Means over the tokens 2 to 100, in nats, by the number of states, less what the sampled chains' losses are above RATES.
LOSSES = {2: (0.69315, 0.57731, 0.51087, 0.48102), 3: (1.09861, 1.00460, 0.88627, 0.81892)}
# Mean entropy rates of chains with rows uniform on the simplex, from 20 million chains each (standard errors below 0.00005).
RATES = {2: 0.48102, 3: 0.81892}
