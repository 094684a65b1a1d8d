"""Line graphs, their spectra, and where navigation by them leads."""
