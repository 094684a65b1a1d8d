"""Recorded results of measured claims: check -> where the recorded value lies, from the runs at quick scale.

Half as wide again as the checks' own intervals.
"""

__all__ = ["BOUNDARY", "DECAY_TIMES", "DIVERSITY", "PHASE", "SIMILAR", "STAGE_TIMES", "SUPPRESSION", "THM4", "UNTIL", "WHITENED"]

Found = dict[str, tuple[float, float]]

BOUNDARY: Found = {
    "share of runs that generalise, rate 0.0005": (0.0, 0.525),
    "share of runs that generalise, rate 0.002": (0.475, 1.0),
    "share of runs that generalise, rate 0.01": (0.475, 1.0),
    "share of runs that generalise, rate 0.05": (0.475, 1.0),
    "share of runs that generalise, rate 0.2": (0.0, 0.525),
    "logarithm of nodes' energy at the largest rate over that at the ones between": (-0.917, -0.589),
}
DECAY_TIMES: Found = {  # seeds 0:8 and 31000000:31000008
    "slope of the time of Stage I in decay, mean": (0.58, 1.42),
    "slope of the time of Stage II in decay, mean": (-1.35, 0.4),
}
DIVERSITY: Found = {
    "irreps that Muon's nodes hold beyond Adam's, mean": (-0.46, 0.668),
    "logarithm of Adam's test loss over Muon's, mean": (-0.18, 0.16),
}
PHASE: Found = {  # seeds 0:4 and 31000000:31000004
    "power of M in p_50 beyond the theory's after 200 epochs, mean": (-0.1, 0.33),
    "power of M in p_50 beyond the theory's after 200 epochs, three largest orders, mean": (-0.16, 0.34),
    "power of M in p_50 beyond the theory's after 400 epochs, mean": (0.12, 0.38),
    "power of M in p_50 beyond the theory's after 400 epochs, three largest orders, mean": (0.22, 0.41),
    "power of M in p_50 beyond the theory's after 800 epochs, mean": (0.28, 0.4),
    "power of M in p_50 beyond the theory's after 800 epochs, three largest orders, mean": (0.41, 0.71),
    "ln p_50 after four times the epochs, change, mean": (-0.38, 0.3),
    "ln p_50/p_c of 5x5 minus that of a cyclic group, mean": (-0.13, 0.22),
    "ln p_50/p_c of D12 minus that of a cyclic group, mean": (-0.19, 0.12),
}
SIMILAR: Found = {
    "share of the most similar pairs that repel, at the end": (0.817, 0.944),
    "its excess over random pairs, at the end": (0.178, 0.387),
}
STAGE_TIMES: Found = {
    "slope of the time of Stage I in eta, mean": (-1.63, -0.31),
    "slope of the time of Stage II in eta, mean": (-0.52, 0.27),
    "slope of the time of Stage III in eta, mean": (-0.03, 0.44),
}
SUPPRESSION: Found = {
    "logarithm of the gain in held irreps over free ones, epoch 100, mean": (-0.04, 0.026),
    "logarithm of the gain in held irreps over free ones, epoch 200, mean": (-0.046, 0.026),
    "logarithm of the gain in held irreps over free ones, epoch 300, mean": (-0.095, 0.016),
}
THM4: Found = {
    "p_50, cross, M = 11, threshold 0.6": (0.307, 0.37),
    "p_50, cross, M = 23, threshold 0.6": (0.255, 0.291),
    "p_50, cross, M = 47, threshold 0.6": (0.204, 0.229),
    "p_50, plain, M = 11, threshold 0.6": (0.521, 0.629),
    "p_50, plain, M = 23, threshold 0.6": (0.53, 0.588),
    "p_50, plain, M = 47, threshold 0.6": (0.481, 0.513),
    "p_50, whitened, M = 11, threshold 0.6": (0.372, 0.464),
    "p_50, whitened, M = 23, threshold 0.6": (0.323, 0.357),
    "p_50, whitened, M = 47, threshold 0.6": (0.222, 0.25),
    "slope of ln p_50 over ln(ln M / M), cross, threshold 0.5, 1 within its 95% interval": (0.18, 0.483),
    "slope of ln p_50 over ln(ln M / M), cross, threshold 0.6, 1 within its 95% interval": (0.309, 0.536),
    "slope of ln p_50 over ln(ln M / M), cross, threshold 0.7, 1 within its 95% interval": (0.388, 0.606),
    "slope of ln p_50 over ln(ln M / M), cross, threshold 0.8, 1 within its 95% interval": (0.423, 0.676),
    "slope of ln p_50 over ln(ln M / M), cross, threshold 0.9, 1 within its 95% interval": (0.373, 0.627),
    "slope of ln p_50 over ln M, cross, -0.67374 within its 95% interval": (-0.362, -0.207),
    "c_50 at the largest M over that at the smallest, cross, 1 within its 95% interval": (1.571, 1.964),
    "slope of ln p_50 over ln(ln M / M), plain, threshold 0.5, 1 within its 95% interval": (0.039, 0.231),
    "slope of ln p_50 over ln(ln M / M), plain, threshold 0.6, 1 within its 95% interval": (0.06, 0.228),
    "slope of ln p_50 over ln(ln M / M), plain, threshold 0.7, 1 within its 95% interval": (0.153, 0.306),
    "slope of ln p_50 over ln(ln M / M), plain, threshold 0.8, 1 within its 95% interval": (0.213, 0.368),
    "slope of ln p_50 over ln(ln M / M), plain, threshold 0.9, 1 within its 95% interval": (0.207, 0.375),
    "slope of ln p_50 over ln M, plain, -0.67374 within its 95% interval": (-0.154, -0.037),
    "c_50 at the largest M over that at the smallest, plain, 1 within its 95% interval": (2.128, 2.511),
    "slope of ln p_50 over ln(ln M / M), whitened, threshold 0.5, 1 within its 95% interval": (0.376, 0.697),
    "slope of ln p_50 over ln(ln M / M), whitened, threshold 0.6, 1 within its 95% interval": (0.443, 0.722),
    "slope of ln p_50 over ln(ln M / M), whitened, threshold 0.7, 1 within its 95% interval": (0.528, 0.766),
    "slope of ln p_50 over ln(ln M / M), whitened, threshold 0.8, 1 within its 95% interval": (0.516, 0.666),
    "slope of ln p_50 over ln(ln M / M), whitened, threshold 0.9, 1 within its 95% interval": (0.351, 0.517),
    "slope of ln p_50 over ln M, whitened, -0.67374 within its 95% interval": (-0.487, -0.296),
    "c_50 at the largest M over that at the smallest, whitened, 1 within its 95% interval": (1.309, 1.722),
    "exponent of the degree in c_50, cross: theorem, 2 within its 95% interval": (0.044, 0.299),
    "exponent of the degree in c_50, cross: authors' sweeps, 1 within its 95% interval": (0.044, 0.299),
    "exponent of the degree in c_50, plain: theorem, 2 within its 95% interval": (0.235, 0.388),
    "exponent of the degree in c_50, plain: authors' sweeps, 1 within its 95% interval": (0.235, 0.388),
    "exponent of the degree in c_50, whitened: theorem, 2 within its 95% interval": (0.061, 0.244),
    "exponent of the degree in c_50, whitened: authors' sweeps, 1 within its 95% interval": (0.061, 0.244),
}
UNTIL: Found = {  # seeds 0:6 and 31000000:31000006
    "slope of the time in K, mean": (-0.23, 0.17),
    "slope of the time in the rate, beyond that of the flow's end, mean": (-0.12, 0.14),
    "logarithm of the time over the flow's end, mean": (0.13, 0.65),
}
WHITENED: Found = {
    "p_50, whitened, M = 11, threshold 0.5": (0.33, 0.454),
    "p_50, whitened, M = 11, threshold 0.6": (0.372, 0.464),
    "p_50, whitened, M = 11, threshold 0.7": (0.444, 0.513),
    "p_50, whitened, M = 11, threshold 0.8": (0.482, 0.551),
    "p_50, whitened, M = 11, threshold 0.9": (0.53, 0.614),
    "p_50, whitened, M = 23, threshold 0.5": (0.293, 0.346),
    "p_50, whitened, M = 23, threshold 0.6": (0.323, 0.357),
    "p_50, whitened, M = 23, threshold 0.7": (0.335, 0.373),
    "p_50, whitened, M = 23, threshold 0.8": (0.351, 0.442),
    "p_50, whitened, M = 23, threshold 0.9": (0.46, 0.507),
    "p_50, whitened, M = 47, threshold 0.5": (0.223, 0.25),
    "p_50, whitened, M = 47, threshold 0.6": (0.222, 0.25),
    "p_50, whitened, M = 47, threshold 0.7": (0.237, 0.273),
    "p_50, whitened, M = 47, threshold 0.8": (0.279, 0.298),
    "p_50, whitened, M = 47, threshold 0.9": (0.358, 0.387),
    "slope of ln p_50 over ln(ln M / M), whitened, threshold 0.5, 1 within its 95% interval": (0.376, 0.697),
    "slope of ln p_50 over ln(ln M / M), whitened, threshold 0.6, 1 within its 95% interval": (0.443, 0.722),
    "slope of ln p_50 over ln(ln M / M), whitened, threshold 0.7, 1 within its 95% interval": (0.528, 0.766),
    "slope of ln p_50 over ln(ln M / M), whitened, threshold 0.8, 1 within its 95% interval": (0.516, 0.666),
    "slope of ln p_50 over ln(ln M / M), whitened, threshold 0.9, 1 within its 95% interval": (0.351, 0.517),
    "slope of ln p_50 over ln M, whitened, -0.67374 within its 95% interval": (-0.487, -0.296),
    "c_50 at the largest M over that at the smallest, whitened, 1 within its 95% interval": (1.309, 1.722),
}
