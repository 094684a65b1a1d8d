"""Networks that generalise and are then trained on fewer pairs, beside networks that memorise."""
