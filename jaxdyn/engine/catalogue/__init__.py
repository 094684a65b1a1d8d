"""Which claims there are: the theories that ship, installed ones, and a user's own files."""
