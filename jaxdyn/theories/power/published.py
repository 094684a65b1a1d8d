"""Published number of arXiv:2201.02177, for transformers with two layers of width 128 on products in S5."""

PER_PERCENT = (0.4, 0.5)  # growth of the median time to generalise for each percent of all pairs taken away, at 25 to 30%
PAPER = f"paper: {PER_PERCENT[0]:.0%} to {PER_PERCENT[1]:.0%} more steps for each percent of the pairs of S5 less, at 25-30%"
