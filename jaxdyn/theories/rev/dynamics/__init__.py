"""The theory's own equations: clocks, bounds and entries of the one-layer model, and the bilinear model's closed forms."""
