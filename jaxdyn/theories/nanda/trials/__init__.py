"""Training the transformer, and taking it apart at every record."""
