"""Runs that the tests of several judges share."""

import os
from pathlib import Path

import jax
import pytest
from filelock import FileLock

import jaxdyn as jd
from jaxdyn.theories.rev import one_layer
from jaxdyn.theories.rev.bilinear import trial
from jaxdyn.theories.rev.mlt import sentences
from jaxdyn.theories.rev.mlt import trial as transformer
from tests.theories.rev.helpers import SIZES, TINY, inside


@pytest.fixture(scope="session")
def swept_once(own_cache):
    """A function as ``jd.sweep``: the first worker that wants the runs makes them, the others read them."""

    def sweep(name, *args):
        out = Path(os.environ["JAXDYN_CACHE"]) / "rev" / name
        out.mkdir(parents=True, exist_ok=True)
        with FileLock(out.with_suffix(".lock")):
            return jd.sweep(*args, out=out)

    return sweep


@pytest.fixture(scope="session")
def cot_runs(swept_once):
    """Chains of thought; the judges of pairs can use the same runs."""
    grid = jd.grid(one_layer.OneLayer, task="cot", context=["entity", "both"], leak=[0.0, 1.0], eta=[0.5, 0.9], **SIZES)
    return swept_once("cot", one_layer.trial, grid, 12)


@pytest.fixture(scope="session")
def flow_runs(swept_once):
    axes = {"kind": ["gaussian", "orthonormal"], "symmetric": [0.0, 1.0], "stop": [0.0, 0.1], "d": [15, 200]}
    return swept_once("flow", trial.trial, jd.grid(trial.Bilinear, sigma=0.0, **axes), 12)


@pytest.fixture(scope="session")
def trained():
    with jax.enable_x64(True):
        s = inside(transformer.Deep(**TINY, task="cot"))
        k_facts, k_train = jax.random.split(jax.random.key(0))
        facts = jax.jit(sentences.sample, static_argnums=(1, 2, 3))(k_facts, s.task, s.vocabulary, s.word)
        return s, facts, jax.jit(transformer.train)(s, facts, k_train)
