"""Decoding with a cache in NumPy: Python lists for caches, one token, layer, head and key at a time; an oracle."""

import numpy as np

from tests.nn.plain_transformer import merged, normed, placed_scores, product, weights


def evict(cache, policy, now, given):
    """Remove the key that the policy gives up; the newest key is not yet in the list."""
    if policy.kind in ("window", "dense"):
        choice = [(c["born"], c) for c in cache]
    elif policy.kind == "streaming":
        choice = [(c["born"], c) for c in cache if c["born"] >= policy.sinks]
    else:
        old = [c for c in cache if now - c["born"] >= policy.recent]
        by = {"sum": lambda c: c["score"], "decay": lambda c: c["score"], "mean": lambda c: c["score"] / (now - c["born"])}
        sign = -1 if policy.kind == "anti_h2o" else 1
        worth = (lambda c: given[c["born"]]) if policy.kind == "oracle_global" else by[policy.score]
        choice = [(sign * worth(c), c) for c in old]
    cache.remove(min(choice, key=lambda pair: pair[0])[1])


def decoded(shape, params, tokens, policy, given=None):
    """Logits after every token, and the times of the tokens that each layer and head of keys keeps at the end."""
    e, share = shape.entries, shape.heads // shape.key_heads
    caches = [[[] for _ in range(shape.key_heads)] for _ in shape.walk]
    out = []
    before = [params["sink_token"]] if shape.sink_token else []
    for now, x in enumerate([*before, *(params["embed"][t] for t in tokens)]):
        at = min(now, policy.size - 1) if policy.positions == "cache" else now
        x = x + (params["position"][at] if "position" in params else 0)
        for layer, block in enumerate(shape.walk):
            w = {name: value[block] for name, value in params["blocks"].items()}
            z, heads = normed(shape, w, "attention_norm", x), []
            for g, cache in enumerate(caches[layer]):
                part = slice(g * e, (g + 1) * e)
                if len(cache) == policy.size:
                    evict(cache, policy, now, None if given is None else given[layer][g])
                key, value = (product(shape, w, name, z)[part] for name in ("k", "v"))
                cache.append({"born": now, "key": key, "value": value, "score": 0.0})
                places = range(len(cache)) if policy.positions == "cache" else [c["born"] for c in cache]
                total = np.zeros(len(cache))
                for h in range(g * share, (g + 1) * share):
                    q = product(shape, w, "q", z)[h * e : (h + 1) * e]
                    scores = placed_scores(shape, q, [c["key"] for c in cache], places[-1], places, h)
                    b = weights(shape.attention, scores, w["sink"][h] if "sink" in w else None)
                    total += b
                    heads.append(sum(p * c["value"] for p, c in zip(b, cache, strict=True)))
                for c, more in zip(cache, total, strict=True):
                    c["score"] = (policy.decay if policy.score == "decay" else 1) * c["score"] + more
            x = merged(shape, w, x, np.concatenate(heads))
        out.append(normed(shape, params, "norm", x) @ (params["embed"] if shape.tied else params["head"]).T)
    return np.stack(out[len(before) :]), [[[c["born"] for c in cache] for cache in layer] for layer in caches]
