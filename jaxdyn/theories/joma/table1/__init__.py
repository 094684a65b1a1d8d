"""Table 1 of JoMA: latent variables of a tree of token sets, and the hidden nodes of a network that learns its classes."""
