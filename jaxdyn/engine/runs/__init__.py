"""Which runs are made, in which order and where, and how they become one labelled Dataset."""
