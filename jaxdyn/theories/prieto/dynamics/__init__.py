"""What the theory predicts: when a loss rounds to zero, and what homogeneous networks and StableMax satisfy."""
