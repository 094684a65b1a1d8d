"""Constructed networks of several moduli and widths."""
