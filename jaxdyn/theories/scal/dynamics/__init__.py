"""What the laws say of the best size and number of tokens, and of the methods that look for it."""
