"""Settings and trials of GaLore's claims."""
