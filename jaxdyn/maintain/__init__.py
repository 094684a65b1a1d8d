"""What maintainers run: ``python -m jaxdyn.maintain TASK`` writes the files that are generated, never edited by hand."""
