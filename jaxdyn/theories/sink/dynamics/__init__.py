"""The theory's own equations: the score of the sink and the size of its value where the head has nothing to do."""
