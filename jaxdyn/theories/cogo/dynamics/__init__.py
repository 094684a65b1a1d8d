"""What the theory predicts: spectra and potentials, the algebra of solutions, the flow of potentials."""
