"""Large initialisation, small weight decay: a kernel predictor first, the least norm later (arXiv:2311.18817)."""
