"""Networks trained on modular addition, and identities of networks that are not trained."""
