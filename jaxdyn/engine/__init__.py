"""The engine: settings, claims, sweeps, verdicts. It knows no theory."""
