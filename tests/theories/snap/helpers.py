"""What several test files share: the verdict of a judge, and small weights, laws and batches in NumPy."""

import numpy as np


def passes(judge, ds, form=None):
    """Whether all checks pass, of one form of the prediction where there are several."""
    with np.errstate(all="ignore"):
        return all(c.passed for c in judge(ds if form is None else ds.sel(form=form)))


def both_ways(ds, name):
    """The data with a prediction 10% smaller, and 10% larger."""
    return [ds.assign({f"predicted_{name}": factor * ds[f"predicted_{name}"]}) for factor in (0.9, 1.1)]


def small_case(seed, tokens=6, classes=3, rows=2):
    """Weights Y and Z and a task, as arrays: laws (one token absent from the first), queries, next tokens, frequencies."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(tokens), classes)
    p[0, 3] = 0.0
    query, label, weight = np.array([0, 1, 0]), np.array([2, 3, 4]), rng.dirichlet(np.ones(classes))
    return rng.normal(size=(tokens, tokens)), rng.normal(size=(rows, tokens)), p / p.sum(1, keepdims=True), query, label, weight


def full_counts(v, batch):
    """Counts of a batch over the whole vocabulary."""
    counts = np.zeros((len(batch.chosen), v.size))
    np.put_along_axis(counts, v.support[np.asarray(batch.chosen)], np.asarray(batch.counts), 1)
    return counts
