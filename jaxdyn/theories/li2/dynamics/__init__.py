"""What the theory predicts: the ridge solution and what it sends back, the energy and its maxima, repulsion, Muon."""
