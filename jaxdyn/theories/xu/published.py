"""Published numbers of arXiv:2605.08119: addition modulo 71, 2048 nodes of squares, 40% of the pairs, Adam at a rate of .001."""

FIRED = (15, 0)  # runs of 15 in which the detector fires: with a decay of 2e-4, and without
FIRES_AT = 174  # epoch, median of the runs with decay
MIDDLE = (173.0, 174.0)  # the middle half of them
RISE, WITHIN = 1.0, 25  # the detector fires when the logarithm of the ratio of eigenvalues has risen by so much in so many epochs
LATE = (300.0, 1.31)  # late ratio of the second to the third eigenvalue, with and without decay
PAPER = f"paper: fires in {FIRED[0]} of 15 runs with decay, at epoch {FIRES_AT} (median), in {FIRED[1]} of 15 without"
