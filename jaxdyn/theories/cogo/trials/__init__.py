"""Settings and trials of CoGO that several claims files share."""
