"""The hostile referee: what he would ask of a claim, asked by a machine."""
