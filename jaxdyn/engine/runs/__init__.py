"""Runs: planned, made in order of cost, here or in workers, and put together into labelled Datasets."""
