"""What the published families change of a decoder, by name."""

from jaxdyn.nn.rotary import Scaling

PLAIN = {"norm": "layer", "mlp": "plain", "groups": None}
ALL = ("q", "k", "v", "o", "up", "down")
FAMILIES = {
    "llama, linear": {"scaling": Scaling(kind="linear", factor=3.0), "tied": True},
    "llama 3": {"scaling": Scaling(kind="llama3", factor=8.0, length=16, low=1.0, high=2.5), "base": 40.0},
    "a table of divisors": {"scaling": Scaling(kind="table", table=(1.0, 2.5)), "rotary": 4, "head_size": 6},
    "mistral": {"window": 4, "head_size": 6},
    "qwen2": {"biases": ("q", "k", "v"), "tied": True},
    "neox": PLAIN | {"activation": "gelu", "biases": ALL, "parallel": True, "rotary": 2},
    "gpt2": PLAIN | {"activation": "gelu_tanh", "biases": ALL, "position": "learned", "length": 24, "tied": True},
    "opt": PLAIN | {"activation": "relu", "biases": ALL, "position": "learned", "length": 24},
    "gated biases": {"biases": ("gate", "down"), "activation": "gelu", "parallel": True},
}
