"""Language models trained on a text, and JoMA's block with embeddings between orthonormal and random."""
