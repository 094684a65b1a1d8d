"""Students of one teacher, on spheres of weights and with weight decay."""
