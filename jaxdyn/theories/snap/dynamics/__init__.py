"""The theory's own equations: clocks, gradients under assumptions, reduced dynamics, growth laws."""
