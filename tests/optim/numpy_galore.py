"""GaLore-Adam written from the formulas in NumPy, for one matrix; an oracle."""

import numpy as np


def largest_positive(p):
    """Columns with positive largest entries."""
    rows = np.argmax(np.abs(p), 0)
    return p * np.where(p[rows, np.arange(p.shape[1])] < 0, -1.0, 1.0)


def galore_adam(w, gradient, *, steps, lr, rank, every, scale, side, moments, b1=0.9, b2=0.999, eps=1e-6):
    """The weights after each step of GaLore-Adam on a function's gradient."""
    m, n = w.shape
    left = {"short": m < n, "long": m >= n, "left": True, "right": False, "full": True}[side]
    right = side == "full" or not left
    r = min(rank, m, n)
    p, q = np.eye(m), np.eye(n)
    first = second = None
    path = []
    for t in range(steps):
        g = gradient(w)
        if t % every == 0:
            u, _, vt = np.linalg.svd(g, full_matrices=False)
            before = p, q
            p = largest_positive(u[:, :r]) if left else np.eye(m)
            q = largest_positive(vt[:r].T) if right else np.eye(n)
            if first is None or moments == "reset":
                first, second = np.zeros((p.shape[1], q.shape[1])), np.zeros((p.shape[1], q.shape[1]))
            elif moments == "rotate":
                turn_p, turn_q = p.T @ before[0], q.T @ before[1]
                first, second = turn_p @ first @ turn_q.T, turn_p**2 @ second @ (turn_q**2).T
        low = p.T @ g @ q
        first, second = b1 * first + (1 - b1) * low, b2 * second + (1 - b2) * low**2
        k = t + 1
        direction = np.sqrt(1 - b2**k) / (1 - b1**k) * first / (np.sqrt(second) + eps)
        w = w - lr * scale * p @ direction @ q.T
        path.append(w)
    return np.stack(path)
