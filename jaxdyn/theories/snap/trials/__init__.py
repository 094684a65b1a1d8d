"""Settings and trials that several claims files share."""
