"""Numbers of arXiv:2509.21519 and of its code and talks, with which ours are compared."""

BOUNDARY_ENERGIES = {0.002: 4.11, 0.005: 4.40}  # E next to the panels of both rates, normalisation not named
CRITICAL = 2.7482  # c of the critical share c ln M / M in the sweeps of the authors' code
OFF_DIAGONAL = 0.08  # bound on off-diagonal over diagonal entries of both Gram matrices, figure 3
PARTIAL = 3225  # pairs that are trained on at M = 127, figure 7
FIGURE_3 = f"paper: only with decay, |G_F| largest about epoch 100, V before W, off-diagonals at most {OFF_DIAGONAL:.0%}"
FIGURE_7 = (
    f"paper: small rates generalise; at M = 127, n = {PARTIAL} rates .001 and .002 do, .005 does not and has the higher energy"
)
