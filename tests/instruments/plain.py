"""Tiny networks for the instruments, random or with a phenomenon planted, and what happens inside them in plain NumPy."""

import dataclasses

import jax
import numpy as np

from jaxdyn.models.loading import Model
from jaxdyn.nn import Transformer
from tests.nn import plain_transformer
from tests.nn.drawn import weights

SHAPE = Transformer(vocabulary=11, width=12, layers=2, heads=6, groups=3, hidden=10, std=0.5)
TOKENS = np.random.default_rng(0).integers(0, 11, (3, 20)).astype(np.int32)


class Words:
    """A tokenizer of whole words; what it does not know, it spells in letters."""

    def __init__(self, words):
        self.words = {word: i for i, word in enumerate(words)}

    def encode(self, text, add_special_tokens=True):
        ids = [self.words[text]] if text in self.words else [self.words.get(c, ord(c) % len(self.words)) for c in text]
        return type("Encoding", (), {"ids": ids})()

    def token_to_id(self, token):
        return self.words.get(token)

    def id_to_token(self, number):
        return list(self.words)[number]


def nothing(share):
    """Progress that nobody watches."""


def model(shape=SHAPE, params=None, tokenizer=None):
    return Model(shape, weights(shape) if params is None else params, tokenizer, None)


def inside(shape, params, tokens):
    """Streams, attention, values, units and losses of one text, position by position; a list of layers, and nats."""
    params = jax.tree.map(lambda x: np.asarray(x, float), params)
    stream = np.stack([params["embed"][t] + (params["position"][i] if "position" in params else 0) for i, t in enumerate(tokens)])
    n, h, e, share, layers = len(tokens), shape.heads, shape.entries, shape.heads // shape.key_heads, []
    for layer in shape.walk:
        w = {name: value[layer] for name, value in params["blocks"].items()}
        z = np.stack([plain_transformer.normed(shape, w, "attention_norm", x) for x in stream])
        q, k, v = (plain_transformer.product(shape, w, name, z).reshape(n, -1, e) for name in "qkv")
        attention, mixed = np.zeros((h, n, n)), np.zeros((n, h, e))
        for head in range(h):
            for i in range(n):
                scores = plain_transformer.placed_scores(shape, q[i, head], k[: i + 1, head // share], i, range(i + 1), head)
                attention[head, i, : i + 1] = np.exp(scores) / np.exp(scores).sum()
                mixed[i, head] = attention[head, i, : i + 1] @ v[: i + 1, head // share]
        after = np.stack([plain_transformer.merged(shape, w, x, m.ravel()) for x, m in zip(stream, mixed, strict=True)])
        middle = stream + plain_transformer.product(shape, w, "o", mixed.reshape(n, -1))
        zz = np.stack([plain_transformer.normed(shape, w, "mlp_norm", x) for x in (stream if shape.parallel else middle)])
        act, up = plain_transformer.ACTIVATIONS[shape.activation], plain_transformer.product(shape, w, "up", zz)
        units = act(plain_transformer.product(shape, w, "gate", zz)) * up if shape.mlp == "gated" else act(up)
        out = w["o"].reshape(h, e, -1)
        written = np.linalg.norm(np.einsum("nhe,hed->nhd", mixed, out), axis=-1)
        layer = {"before": stream, "after": after, "attention": attention, "value": v, "units": units, "heads": written}
        layers.append(layer)
        stream = after
    logits = plain_transformer.logits(shape, params, tokens)
    wide = logits - logits.max(-1, keepdims=True)
    wide = wide - np.log(np.exp(wide).sum(-1, keepdims=True))
    return layers, -wide[np.arange(n - 1), tokens[1:]]


BEGIN = 8  # the token that begins a text of the network with a planted sink


def planted(by="position"):
    """A network of 8 words that follow one another in a circle; head 0 looks at the first place, or at the token of beginnings.

    The value there is zero, and so nothing is added to the stream, which predicts the next word. Once that place is lost, it looks
    at words, each of which adds the first word to the stream and spoils it. Head 1 looks everywhere alike.
    """
    words, d = 8, 12
    shape = Transformer(
        vocabulary=words + 1, width=d, layers=1, heads=2, head_size=12, hidden=2, position="learned", length=512, epsilon=0.0
    )
    params = jax.tree.map(np.zeros_like, jax.device_get(weights(shape)))
    params["embed"][:words, :words] = np.eye(words)
    params["embed"][:, 9] = 1.0  # a constant
    (params["position"] if by == "position" else params["embed"])[0 if by == "position" else BEGIN, 8] = 1.0
    blocks = params["blocks"]
    blocks["attention_norm"][:], blocks["mlp_norm"][:], params["norm"][:] = 1, 1, 1
    blocks["q"][0, 9, 0], blocks["k"][0, 8, 0] = 60.0, 10.0
    params["embed"][BEGIN, 10] = 1.0  # a word as far as values go
    blocks["v"][0, [*range(words), 10], 0], blocks["v"][0, 8, 0] = 1.0, -1.0  # nothing where the feature is that keys have
    blocks["o"][0, 0, 0] = 1.0
    params["head"][(np.arange(words) + 1) % words, np.arange(words)] = 4.0
    return Model(shape, jax.tree.map(np.float32, params), None, None)


def circles(pieces=3, length=80):
    """Texts of the network with a planted sink, each from another word on."""
    body = (np.arange(length - 1) + 3 * np.arange(pieces)[:, None]) % 8
    return np.concatenate([np.full((pieces, 1), BEGIN), body], 1).astype(np.int32)


def uniform(shape=SHAPE):
    """A random network whose attention is uniform: no query asks for anything."""
    params = weights(shape)
    return model(shape, params | {"blocks": params["blocks"] | {"q": 0 * params["blocks"]["q"]}})


def changed(**fields):
    return dataclasses.replace(SHAPE, **fields)


def pieces_of(shape, params, tokens):
    """The same for several texts: layers' arrays stacked as [piece, layer, ...], and nats [piece, token]."""
    found = [inside(shape, params, piece) for piece in tokens]
    stacked = {name: np.stack([[layer[name] for layer in layers] for layers, _ in found]) for name in found[0][0][0]}
    return stacked, np.stack([nats for _, nats in found])
