"""The reversal curse and the chain of thought in GPT-2 style transformers: data, training, and what is read off the weights."""
