"""The fingerprint of a program: its text, whatever its functions are called, with its constants and the names of its results."""

import os
import re
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.engine.programs.fingerprint import calls_back, fingerprint, plain_text

ONE = """module @jit_one attributes {mhlo.num_partitions = 1 : i32} {
  func.func public @main(%arg0: tensor<f64>) -> (tensor<f64>) {
    %0 = call @_where(%arg0) : (tensor<f64>) -> tensor<f64>
    %1 = call @"a b"(%0) : (tensor<f64>) -> tensor<f64>
    %2 = stablehlo.custom_call @lapack_dgetrf_ffi(%1) : (tensor<f64>) -> tensor<f64>
    return %2 : tensor<f64>
  }
  func.func private @_where(%arg0: tensor<f64>) -> tensor<f64> {
    return %arg0 : tensor<f64>
  }
  func.func private @"a b"(%arg0: tensor<f64>) -> tensor<f64> {
    return %arg0 : tensor<f64>
  }
}
"""


def text_of(function, *args):
    with jax.enable_x64(True):
        return jax.jit(function).lower(*args).as_text()


def hash_of(text="", constants=(), swept=(), results=None):
    return fingerprint(text, constants, swept, results or jd.observables(measured={"x": jd.named(np.zeros(2), "entry")}))


def test_names_of_functions_do_not_count_and_those_of_libraries_do():
    other = ONE.replace("_where", "_where_17").replace('"a b"', "clip").replace("jit_one", "jit_other")
    assert other != ONE and plain_text(other) == plain_text(ONE)
    assert plain_text(ONE.replace("dgetrf", "sgetrf")) != plain_text(ONE)
    swapped = ONE.replace("call @_where", "call @X").replace('call @"a b"', "call @_where").replace("call @X", 'call @"a b"')
    assert plain_text(swapped).count("@1") == plain_text(ONE).count("@1") == 2
    assert "dgetrf" in plain_text(ONE) and "where" not in plain_text(ONE)


def test_the_order_of_calls_counts():
    inner = ONE.replace(
        '@"a b"(%arg0: tensor<f64>) -> tensor<f64> {\n', '@"a b"(%arg0: tensor<f64>) -> tensor<f64> {\n    // other\n'
    )
    swapped = inner.replace("call @_where", "call @X").replace('call @"a b"', "call @_where").replace("call @X", 'call @"a b"')
    assert plain_text(swapped) != plain_text(inner), "one of two functions is called first"


def test_constants_count_by_content():
    table = np.random.default_rng(0).normal(size=(50, 50))
    other = table.copy()
    other[17, 3] = np.nextafter(other[17, 3], 1)
    x = np.ones((50, 50))
    one, same, another = (text_of(lambda x, t=t: x + jnp.asarray(t), x) for t in (table, table.copy(), other))
    assert hash_of(one) == hash_of(same) != hash_of(another)
    assert len({hash_of(constants=[t]) for t in (table, other, table.astype(np.float32), table.ravel())}) == 4


def test_what_the_text_does_not_tell_counts():
    def observed(name="x", axis="entry", group="measured", **more):
        return jd.observables(**{group: {name: jd.named(np.zeros(2), axis)}}, **more)

    others = [observed("y"), observed(axis="place"), observed(group="recorded"), observed(coords={"entry": (0, 1)})]
    assert len({hash_of(results=r) for r in (observed(), *others)}) == 5
    assert len({hash_of(swept=s) for s in ([("a", None), ("b", None)], [("b", None), ("a", None)], [("a", ("gd", "sign"))])}) == 3


@pytest.mark.parametrize(
    ("function", "opaque"),
    [
        (lambda x: jnp.sin(x), False),
        (lambda x: jnp.linalg.svd(x)[1], False),
        (lambda x: jnp.linalg.svd(x.astype(complex))[1], False),
        (lambda x: jnp.linalg.eigh(x)[1], False),
        (lambda x: jnp.linalg.eig(x)[1], False),
        (lambda x: jnp.linalg.qr(x)[1], False),
        (lambda x: jax.scipy.linalg.qr(x, pivoting=True)[1], False),
        (lambda x: jnp.linalg.cholesky(x), False),
        (lambda x: jnp.linalg.solve(x, x), False),
        (lambda x: jax.scipy.linalg.schur(x)[0], False),
        (lambda x: jax.lax.linalg.hessenberg(x)[0], False),
        (lambda x: jax.lax.linalg.tridiagonal(x)[0], False),
        (lambda x: jax.lax.linalg.tridiagonal_solve(x[0], x[1], x[2], x[:, :1]), False),
        (lambda x: jax.lax.top_k(x, 2)[0], False),
        (lambda x: jax.lax.approx_max_k(x, 2)[0], False),
        (lambda x: jnp.fft.fft(x), False),
        (lambda x: jax.scipy.special.erfinv(x), False),
        (lambda x: x + jax.random.normal(jax.random.key(0), (3, 3), jnp.float32), False),
        (lambda x: jax.ffi.ffi_call("times", jax.ShapeDtypeStruct(x.shape, x.dtype))(x), True),
        (lambda x: jax.ffi.ffi_call("my lapack", jax.ShapeDtypeStruct(x.shape, x.dtype))(x), True),
        (lambda x: jax.pure_callback(np.sin, x, x), True),
        (lambda x: (jax.debug.print("{}", x), x)[1], True),
        (lambda x: (jax.debug.callback(lambda y: None, x), x)[1], True),
        (lambda x: jax.experimental.io_callback(np.sin, x, x), True),
    ],
)
def test_code_that_the_text_does_not_contain_is_seen(function, opaque):

    assert calls_back(text_of(function, jnp.ones((3, 3), jnp.float32))) is opaque


PRINTED = """
import os
import jaxdyn as jd
from jaxdyn.engine.programs.direct import facts_of
from jaxdyn.maintain.shipped import theory_programs
for program, facts in facts_of(theory_programs(["cal.quadratic_rate", "lyu.*"])[::{step}]).items():
    print(program.trial, program.label, facts["fingerprint"])
"""


@pytest.mark.slow
def test_two_processes_find_the_same_fingerprints():
    """With other hashes of strings and in another order: JAX numbers its private functions by what it has traced before."""
    found = []
    for seed, step in (("1", 1), ("2", -1)):
        env = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run(
            [sys.executable, "-c", PRINTED.format(step=step)], env=env, capture_output=True, encoding="utf-8", check=True
        )
        found.append(sorted(done.stdout.splitlines()))
    assert found[0] == found[1] and len(found[0]) > 1 and all(re.search(r" cpu-[0-9a-f]{20}$", line) for line in found[0])
