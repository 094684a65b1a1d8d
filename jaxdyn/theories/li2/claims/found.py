"""What measured claims found: check -> the interval of the recorded value, from the runs at quick scale."""

__all__ = ["BOUNDARY", "DIVERSITY", "PHASE", "SIMILAR", "THM4", "WHITENED"]

Found = dict[str, tuple[float, float]]

BOUNDARY: Found = {}
DIVERSITY: Found = {}
PHASE: Found = {}
SIMILAR: Found = {}
THM4: Found = {}
WHITENED: Found = {}
