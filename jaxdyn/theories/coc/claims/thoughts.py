"""Claims on the thoughts of networks trained by Coconut: what answers lose without them, and what they follow."""

CLAIMS = ()
