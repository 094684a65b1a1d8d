"""What a transformer looks like: one dataclass, whose fields are all the variants."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxdyn.errors import UsageError, flag, is_traced, number, require, shown, whole
from jaxdyn.nn import choices
from jaxdyn.nn.attention import KINDS
from jaxdyn.nn.pointwise import ACTIVATIONS
from jaxdyn.nn.rotary import Scaling

__all__ = ["BIASES", "CHOICES", "DROPS", "DTYPES", "NUMBERS", "Transformer", "validate"]

DTYPES = ("float32", "float64", "bfloat16", "float16")
DROPS = ("embedding", "attention", "residual", "mlp")
BIASES = ("q", "k", "v", "o", "gate", "up", "down", "head")
SIZES = {
    **dict.fromkeys(("vocabulary", "width", "layers", "heads", "hidden", "outputs", "groups", "repeats", "head_size"), 1),
    "length": 0,
    "rotary": 2,
}
NUMBERS: dict[str, dict[str, float]] = {  # which may be traced
    "scale": {},
    "skip": {},
    "residual": {},
    "dropout": {"least": 0, "below": 1},
    "epsilon": {"least": 0},
    "base": {"above": 0},
    "std": {"least": 0},
}
FLAGS = (
    "causal",
    "sees_itself",
    "output_gate",
    "project",
    "query_key_norm",
    "parallel",
    "tied",
    "sink_token",
    "copies",
    "scan",
)
CHOICES = {
    "position": ("none", "learned", "sinusoidal", "rotary", "alibi"),
    "norm": ("none", "rms", "layer"),
    "norm_place": ("pre", "post"),
    "mlp": ("none", "plain", "gated"),
    "order": ("immediate", "all"),
    "start": ("normal", "gpt2", "encoder", "fan_in", "orthogonal"),
}
Scalar = float | Float[Array, ""]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Transformer:
    r"""A transformer without its weights; hashable, unless a number is traced.

    The defaults are LLaMA's. Sizes and kinds are static. The numbers ``scale``, ``skip``, ``residual``, ``dropout``, ``epsilon``,
    ``base``, ``std`` and ``window`` may be traced, and so swept by ``vmap``. ``attention`` and ``activation`` are names, a switch
    between names (:func:`jaxdyn.code`), or a function of one's own as ``"module:function"``.

    Args:
        vocabulary: tokens.
        width: numbers of the residual stream.
        layers: blocks with weights of their own.
        heads: of queries.
        hidden: units of an MLP; None where there is no MLP.
        outputs: logits; None: one for each token.
        attention: one of :data:`jaxdyn.nn.KINDS` (:mod:`jaxdyn.nn.attention`).
        causal: no token sees a later one.
        sees_itself: a token attends to itself, too.
        window: positions that a query sees, its own included; None: all before it.
        groups: heads of keys and values, which queries share; None: one for each head. Source: arXiv:2305.13245.
        head_size: numbers in a head; None: the width shared out among the heads.
        output_gate: heads' outputs are multiplied by the sigmoid of a linear map of the block's input. Source: arXiv:2505.06708.
        project: a matrix after the heads; without it they are written side by side.
        query_key_norm: queries and keys have root mean square 1 in every head, times a gain. Source: arXiv:2302.05442, section 2.
        position: none, learned or sinusoidal (added to the embedding), rotary, alibi.
        length: largest number of positions, for learned ones; the sink token takes one of them.
        base: of the rotary positions.
        rotary: entries of a head that are turned, the first ones; None: all.
        scaling: of the rotary rates.
        norm: none, rms or layer; a layer norm has a shift.
        norm_place: pre, of what attention and MLP read, and of the last stream; post, of the stream after each.
        epsilon: in the norms.
        mlp: none, plain or gated.
        activation: one of :data:`jaxdyn.nn.ACTIVATIONS`; of a gated MLP, of its gate.
        biases: matrices with a bias, among :data:`BIASES`; head is the read-out.
        parallel: attention and MLP both read the block's input. Source: arXiv:2204.06745, section 2.1.
        scale: factor on the embedding.
        skip: factor on the stream where something is added to it; 0: no skip connection.
        residual: factor on what is added to the stream.
        tied: the read-out is the embedding.
        sink_token: a trained embedding before every sequence, which gives no logits; it is token number ``vocabulary``. Source:
            arXiv:2309.17453, section 3.3.
        repeats: how often each block's weights are used. Source: arXiv:2402.14905, section 2.3.
        order: of repeated blocks: 1, 1, 2, 2, … (immediate) or 1, 2, …, 1, 2, … (all).
        dropout: share of entries that is dropped where there is a key.
        drops: where, among :data:`DROPS`.
        start: the rule by which weights are drawn (:mod:`jaxdyn.nn.start`).
        std: of all weights at the start, for the rule normal.
        copies: all layers start as copies of one.
        scan: layers run as a loop, so that compiling takes equally long for any depth; without it they are written out, which may
            run faster. The weights are the same.
        dtype: of the weights.
    """

    vocabulary: int
    width: int
    layers: int = 1
    heads: int = 1
    hidden: int | None = None
    outputs: int | None = None
    attention: Any = "softmax"
    causal: bool = True
    sees_itself: bool = True
    window: Any = None
    groups: int | None = None
    head_size: int | None = None
    output_gate: bool = False
    project: bool = True
    query_key_norm: bool = False
    position: str = "rotary"
    length: int = 0
    base: Scalar = 10_000.0
    rotary: int | None = None
    scaling: Scaling | None = None
    norm: str = "rms"
    norm_place: str = "pre"
    epsilon: Scalar = 1e-6
    mlp: str = "gated"
    activation: Any = "silu"
    biases: tuple[str, ...] = ()
    parallel: bool = False
    scale: Scalar = 1.0
    skip: Scalar = 1.0
    residual: Scalar = 1.0
    tied: bool = False
    sink_token: bool = False
    repeats: int = 1
    order: str = "immediate"
    dropout: Scalar = 0.0
    drops: tuple[str, ...] = DROPS
    start: str = "normal"
    std: Scalar = 0.02
    copies: bool = False
    scan: bool = True
    dtype: str = "float32"

    def __post_init__(self) -> None:
        """Refuse values that are not allowed, and combinations in which a field would be read by nothing."""
        validate(self, SIZES, {name: {**bounds, "traced": True} for name, bounds in NUMBERS.items()}, FLAGS)
        if self.window is not None:
            object.__setattr__(self, "window", whole("window", self.window, least=1, traced=True))
        for name, allowed in CHOICES.items():
            require(self, getattr(self, name) in allowed, f"{name} is one of {', '.join(allowed)}", name)
        choices.check("attention", self.attention, KINDS)
        choices.check("activation", self.activation, ACTIVATIONS)
        self._settle_sizes()
        self._settle_places()
        self._settle_rotary()

    def _settle_sizes(self) -> None:
        """Refuse heads that do not fit, and a read-out of another size."""
        divides = self.head_size is not None or self.width % self.heads == 0
        require(self, divides, "width is a multiple of heads", "width", "heads")
        require(self, self.heads % self.key_heads == 0, "heads is a multiple of groups", "heads", "groups")
        units = "an MLP has hidden units, and hidden is None where there is none"
        require(self, (self.mlp == "none") == (self.hidden is None), units, "mlp", "hidden")
        side = "without a matrix after them the heads are as wide as the stream together"
        require(self, self.project or self.heads * self.entries == self.width, side, "project", "head_size")
        tied = not self.tied or self.outputs in (None, self.vocabulary)
        require(self, tied, "a tied read-out has one output for each token", "outputs", "vocabulary")

    def _settle_places(self) -> None:
        """Refuse biases and dropout of what is not there, and orders of norms and blocks that no network has."""
        absent = {"o": not self.project, "gate": self.mlp != "gated", "up": self.mlp == "none", "down": self.mlp == "none"}
        own = [name for name in BIASES if not absent.get(name, False)]
        known = isinstance(self.biases, tuple | list) and all(name in own for name in self.biases)
        require(self, known, f"with mlp={self.mlp} and project={self.project} biases are among {', '.join(own)}", "biases")
        object.__setattr__(self, "biases", tuple(name for name in BIASES if name in self.biases))
        drops = isinstance(self.drops, tuple | list) and all(name in DROPS for name in self.drops)
        require(self, drops, f"drops are among {', '.join(DROPS)}", "drops")
        object.__setattr__(self, "drops", tuple(name for name in DROPS if name in self.drops))
        learned = self.position != "learned" or self.length >= 1
        require(self, learned, "learned positions need length, the largest number of positions", "length")
        parallel = not self.parallel or (self.norm_place == "pre" and self.mlp != "none")
        require(self, parallel, "parallel blocks have an MLP, and their norms before both", "parallel", "norm_place", "mlp")
        before = self.causal or self.window is None
        require(self, before, "a window is one of positions before the query, for causal networks", "window", "causal")

    def _settle_rotary(self) -> None:
        """Refuse fields of rotary positions that do not fit the heads, or that nothing would read."""
        turns = self.position == "rotary"
        even = "rotary positions need an even number of entries per head"
        require(self, not turns or self.rotated % 2 == 0, even, *(("width", "heads") if self.rotary is None else ("rotary",)))
        if self.rotary is not None:
            require(self, turns, "a number of rotary entries needs rotary positions", "rotary", "position")
            require(self, self.rotary <= self.entries, f"a head has {self.entries} entries", "rotary")
        scaled = self.scaling is None or isinstance(self.scaling, Scaling)
        require(self, scaled, "scaling is a jaxdyn.nn.rotary.Scaling or None", "scaling")
        require(self, turns or self.scaling is None, "scaling needs rotary positions", "scaling", "position")
        table = () if self.scaling is None else self.scaling.table
        require(self, 2 * len(table) in (0, self.rotated), f"its table has {self.rotated // 2} divisors", "scaling")

    @property
    def entries(self) -> int:
        """Numbers in a head."""
        return self.width // self.heads if self.head_size is None else self.head_size

    @property
    def rotated(self) -> int:
        """Numbers in a head that rotary positions turn."""
        return self.entries if self.rotary is None else self.rotary

    @property
    def key_heads(self) -> int:
        """Heads of keys and values."""
        return self.heads if self.groups is None else self.groups

    @property
    def logits(self) -> int:
        """Number of outputs."""
        return self.vocabulary if self.outputs is None else self.outputs

    @property
    def depth(self) -> int:
        """Blocks that a token passes, each with keys and values of its own."""
        return self.layers * self.repeats

    @property
    def walk(self) -> tuple[int, ...]:
        """Which block's weights are used at each depth."""
        return tuple(i // self.repeats if self.order == "immediate" else i % self.layers for i in range(self.depth))

    @property
    def weights(self) -> dict[str, tuple[int, ...]]:
        """Shapes of a block's matrices, (input, output), by name."""
        d, f, wide, narrow = self.width, self.hidden or 0, self.heads * self.entries, self.key_heads * self.entries
        attention: dict[str, tuple[int, ...]] = {"q": (d, wide), "k": (d, narrow), "v": (d, narrow)}
        if self.project:
            attention["o"] = (wide, d)
        gate = {"gate": (d, f)} if self.mlp == "gated" else {}
        mlp = {} if self.mlp == "none" else {**gate, "up": (d, f), "down": (f, d)}
        return attention | mlp | ({"output_gate": (d, wide)} if self.output_gate else {})

    @property
    def norms(self) -> tuple[str, ...]:
        """Names of a block's norms of the stream."""
        if self.norm == "none":
            return ()
        return ("attention_norm",) if self.mlp == "none" else ("attention_norm", "mlp_norm")

    @property
    def has_sink(self) -> bool:
        """Whether the heads have a logit of a sink."""
        return "sink_bias" in choices.names(self.attention)

    @property
    def known(self) -> Transformer:
        """The same with defaults for what is traced: numbers, and switches between kinds; it is hashable."""
        traced = [f for f in dataclasses.fields(self) if is_traced(getattr(getattr(self, f.name), "index", getattr(self, f.name)))]
        defaults: dict[str, Any] = {f.name: f.default for f in traced}
        return dataclasses.replace(self, **defaults) if traced else self

    @property
    def added(self) -> bool:
        """Whether positions are added to the embedding."""
        return self.position in ("learned", "sinusoidal")


def validate(shape: Any, sizes: Mapping[str, int], numbers: Mapping[str, Mapping[str, Any]], flags: Sequence[str] = ()) -> None:
    """Check the fields of a frozen dataclass, and put Python's own numbers in their places.

    NumPy's scalars would make a program of their own, and in 64-bit mode a float64 network of a float32 one.

    Args:
        shape: the dataclass; its ``dtype`` becomes a name among :data:`DTYPES`.
        sizes: whole numbers and the smallest that is allowed; None stays where it is the field's default.
        numbers: finite numbers and their bounds, as of :func:`jaxdyn.errors.number`.
        flags: what is True or False.

    Raises:
        UsageError: for any other value.
    """
    optional = {field.name for field in dataclasses.fields(shape) if field.default is None}
    for name, least in sizes.items():
        value = getattr(shape, name)
        if value is not None or name not in optional:
            object.__setattr__(shape, name, whole(name, value, least=least))
    for name, bounds in numbers.items():
        object.__setattr__(shape, name, number(name, getattr(shape, name), **bounds))
    for name in flags:
        object.__setattr__(shape, name, flag(name, getattr(shape, name)))
    object.__setattr__(shape, "dtype", _dtype(shape.dtype))


def _dtype(value: Any) -> str:
    """The name of a dtype; None would be float64, and so no dtype."""
    try:
        name = "" if value is None else jnp.dtype(value).name
    except TypeError:
        name = ""
    if name not in DTYPES:
        raise UsageError(f"dtype={shown(value)} is not allowed: dtype is one of {', '.join(DTYPES)}")
    return name
