"""Constructed and perturbed networks, and networks trained with a penalty."""
