"""What every other part of the engine uses and what knows nothing of claims, runs or programs: errors, references, devices."""
