"""How a claim is decided: checks and readings, opponents, resolution, the verdict."""
