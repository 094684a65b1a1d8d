"""What GaLore's theory predicts: forms of gradients, their decay under gradient descent, and descent within fixed subspaces."""
