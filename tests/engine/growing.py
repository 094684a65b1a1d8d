"""Claims that too few seeds leave undecided: loaded as a user's own file, so that spawned workers can import the trial."""

import jax
import jax.numpy as jnp

import jaxdyn as jd


@jd.setting
class Noise:
    """A number with unit noise."""

    shift: jd.Swept = 0.7
    sign: jd.Swept = 1.0


def noise(s, key):
    """The number that is measured, and what is predicted of its mean."""
    x = s.sign * s.shift + jax.random.normal(key, (), jnp.float64)
    return jd.observables(predicted={"z": s.shift}, measured={"z": x})


def positive(ds):
    """The mean is positive."""
    return [jd.mean_within("mean", ds.measured_z, over=["shift", "seed"], low=0.0)]


def read(ds):
    """The mean."""
    return [jd.mean_reading("mean", ds.measured_z, over=["shift", "seed"])]


COMMON = {
    "source": "nobody's",
    "trial": noise,
    "evidence": "numbers",
    "bounds": "derived",
    "seeds": 4,
    "max_seeds": 64,
    "judge": positive,
}
COMMON |= {"statement": "The mean is positive.", "quick": jd.grid(Noise, shift=[0.7]), "tested": "{seeds} draws."}
NEGATIVE = {"controls": {"negative": {"sign": -3.0}}}
CLAIMS = [
    jd.Claim(id="grow.mean", title="The mean is positive", **COMMON | NEGATIVE),
    jd.Claim(id="grow.wrong", title="A negative mean is positive", **COMMON | NEGATIVE | {"quick": jd.grid(Noise, shift=[-0.7])}),
    jd.Claim(id="grow.open", title="The mean", expected="measured", **COMMON | {"judge": read}),
    jd.Claim(id="grow.clear", title="A large mean is positive", **COMMON | NEGATIVE | {"quick": jd.grid(Noise, shift=[50.0])}),
    jd.Claim(
        id="grow.control",
        title="A control is hard to tell",
        **COMMON | {"controls": {"a little": {"sign": -0.02}}, "quick": jd.grid(Noise, shift=[50.0])},
    ),
]
