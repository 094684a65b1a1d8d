"""What the theory predicts: sets of vertices, their weights, and margins."""
