"""The diagonal network's gradient flow beside the predicted path."""
