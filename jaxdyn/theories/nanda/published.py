"""Published numbers of arXiv:2301.05217: the phases of training (section 5), for the setting of the claims' paper grid."""

PHASES = {"memorisation": 0, "circuit formation": 1400, "cleanup": 9400, "end": 14_000}  # epochs at which they begin
