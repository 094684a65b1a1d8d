"""What the theory predicts: limits and paths of gradient flow, errors on other prompts, and the plateaus of the loss."""
