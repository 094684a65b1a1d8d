"""What the theory predicts: losses and kernels from two statistics of the weights, and what a frozen kernel learns."""
