"""Tasks for maintainers: ``python -m jaxdyn.maintain TASK`` writes generated files, which are never edited by hand."""
