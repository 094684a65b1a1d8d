"""What the construction predicts: waves, margins, accuracy."""
