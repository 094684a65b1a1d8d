"""Runs behind the claims: settings and trials that several files share."""
