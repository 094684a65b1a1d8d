"""Theories: one package a line of work, each with a CLAIMS tuple."""
