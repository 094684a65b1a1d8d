"""What the theory constructs: a network of 2n + d weights through any n points."""
