"""Networks of every output scale trained on a square, and statistics of networks that are not trained."""
