"""Settings and trials that several claims of Li2 share."""
