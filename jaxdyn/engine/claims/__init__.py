"""What is said: observables, settings, grids, claims and studies."""
