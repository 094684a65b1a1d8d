"""Theories: one package a line of work, each with a CLAIMS tuple."""

FLAGSHIP = "li2.stage2_curves"  # README's claim, which is run first where minutes are limited
