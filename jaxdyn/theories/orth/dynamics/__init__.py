"""What random directions predict."""
