"""Numbers drawn in one place are those of jax.random; none is drawn in a narrow dtype."""

import ast
import inspect
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import jaxdyn
from jaxdyn import sampling
from jaxdyn.data import backcopy, chains, hypercube, prompts, recall
from jaxdyn.errors import UsageError
from jaxdyn.nn import vq
from jaxdyn.optim import factors

PACKAGE = Path(jaxdyn.__file__).parent
FREE = ("theories",)  # claims say in which dtype they draw
EXACT = ("key", "rademacher", "randint", "bits")  # the same in all dtypes, or whole numbers
NARROW = ("bfloat16", "float16")


@pytest.mark.thinned
@pytest.mark.parametrize("shape", [(1,), (7,), (3, 5), (2, 4, 8)])
def test_normal_numbers_are_those_of_jax(shape, x64):
    key = jax.random.key(3)
    ours = jax.jit(lambda k: sampling.normal(k, shape))
    np.testing.assert_allclose(ours(key), jax.jit(lambda k: jax.random.normal(k, shape, jnp.float64))(key), rtol=1e-14)
    pair = jax.jit(jax.vmap(ours))(jax.random.split(key))
    np.testing.assert_allclose(pair[1], ours(jax.random.split(key)[1]), rtol=1e-14)


def test_there_may_be_none_or_a_single_one(x64):
    key = jax.random.key(0)
    assert sampling.normal(key, (0, 3)).shape == (0, 3) and sampling.normal(key, (np.int64(2), 1)).shape == (2, 1)
    np.testing.assert_allclose(sampling.normal(key, ()), jax.random.normal(key, (), jnp.float64), rtol=1e-14)


@pytest.mark.parametrize("shape", [5, "3", (2.0,), (True,), (-1,), ("a",), None, np.asarray([2])])
def test_what_is_no_shape_is_refused(shape, x64):
    with pytest.raises(UsageError, match="shape=.* is not allowed"):
        sampling.normal(jax.random.key(0), shape)


def test_one_key_and_64_bits_are_needed(x64):
    for key in (jax.random.split(jax.random.key(0)), 3, None, np.zeros(2), np.zeros((2, 2), np.uint32)):
        with pytest.raises(UsageError, match="it is one key of jax.random.key, and jax.vmap takes many"):
            sampling.normal(key, (2,))
    with jax.enable_x64(False), pytest.raises(UsageError, match=r"call this inside jax.enable_x64\(True\)"):
        sampling.normal(jax.random.key(0), (2,))


@pytest.mark.parametrize(
    ("dtype", "drawn"), [("bfloat16", "float32"), ("float16", "float32"), ("float32", "float32"), ("float64", "float64")]
)
def test_the_dtype_of_draws(dtype, drawn, x64):
    assert sampling.wide(dtype) == sampling.wide(jnp.dtype(dtype)) == np.dtype(drawn)


def is_wide(node, names):
    """Whether an expression is a dtype of 32 bits or more: float32, wide(…), promote_types(…, float32), or a name of one."""
    text = ast.unparse(node)
    if isinstance(node, ast.Call):
        name = ast.unparse(node.func).rpartition(".")[2]
        return name == "wide" or (name == "promote_types" and any(is_wide(arg, names) for arg in node.args))
    return text.removeprefix("jnp.").removeprefix("np.").strip("'") in ("float32", "float64") or text in names


def drawing(node):
    """The parameters of the function that ``jax.random.name`` is, if it has a dtype that matters."""
    text = ast.unparse(node) if isinstance(node, ast.Attribute) else ""
    name = text.removeprefix("jax.random.")
    function = getattr(jax.random, name, None) if name != text and name not in EXACT else None
    parameters = list(inspect.signature(function).parameters) if inspect.isroutine(function) or hasattr(function, "lower") else []
    return parameters if "dtype" in parameters else []


def narrow_draws(source):
    """Draws whose dtype may have fewer than 32 bits, and draws under another name, by their lines."""
    nodes, values = list(ast.walk(ast.parse(source))), {}
    for node in nodes:
        for target in node.targets if isinstance(node, ast.Assign) else ():
            values.setdefault(ast.unparse(target), []).append(node.value)
    names = {name for name, given in values.items() if all(is_wide(value, ()) for value in given)}
    calls = [node for node in nodes if isinstance(node, ast.Call) and drawing(node.func)]
    given = [dict(zip(drawing(c.func), c.args, strict=False)) | {k.arg: k.value for k in c.keywords} for c in calls]
    found = [
        c for c, arguments in zip(calls, given, strict=True) if "dtype" in arguments and not is_wide(arguments["dtype"], names)
    ]
    called = [c.func for c in calls]
    found += [node for node in nodes if drawing(node) and node not in called]
    hidden = ("jax.nn.initializers.", "from jax.random ", "from jax.nn.initializers ")
    found += [node for node in nodes if isinstance(node, ast.Attribute | ast.ImportFrom) and ast.unparse(node).startswith(hidden)]
    return [f"{node.lineno}: {ast.unparse(node)}" for node in found]


def test_all_draws_of_the_package_are_wide():
    files = [file for file in PACKAGE.rglob("*.py") if not file.relative_to(PACKAGE).as_posix().startswith(FREE)]
    found = {file.relative_to(PACKAGE).as_posix(): narrow_draws(file.read_text(encoding="utf-8")) for file in sorted(files)}
    assert len(files) > 100 and not {name: lines for name, lines in found.items() if lines}


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("jax.random.normal(key, size, s.dtype)", 1),
        ("jax.random.uniform(key, size, dtype=jnp.bfloat16)", 1),
        ("jax.random.dirichlet(key, alpha, size, dtype)", 1),
        ("w = jnp.promote_types(a, b)\njax.random.uniform(key, size, w)", 1),
        ("w = wide(x)\nw = x.dtype\njax.random.uniform(key, size, w)", 1),
        ("draw = jax.random.normal\ndraw(key, size, dtype)", 1),
        ("from jax.random import normal", 1),
        ("jax.nn.initializers.normal(0.02)", 1),
        ("jax.random.normal(key, size)", 0),
        ("jax.random.normal(key, size, 'float32') + jax.random.normal(key, dtype=jnp.float64)", 0),
        ("jax.random.truncated_normal(key, -2, 2, size, wide(dtype)).astype(dtype)", 0),
        ("w = jnp.promote_types(x.dtype, jnp.float32)\njax.random.uniform(key, size, w)", 0),
        ("jax.random.randint(key, (), 0, 3, dtype)", 0),
        ("jax.random.rademacher(key, (3,), dtype)", 0),
        ("jax.random.split(key)", 0),
    ],
)
def test_narrow_draws_are_found(source, lines):
    assert len(narrow_draws(source)) == lines


ROOT, ONES = jnp.eye(3), jnp.ones((400, 3))
CHUNKS = {"vocabulary": 40, "length": 4, "rate": 2, "codes": 64, "hidden": 64}
DRAWN = {
    "the start of LoRA": lambda key, dtype: factors.lora(optax.sgd(0.1), 32).init({"w": jnp.zeros((64, 64), dtype)}).factors["w"].a,
    "chunks": lambda key, dtype: vq.init(vq.Chunks(dtype=dtype, **CHUNKS), key),
    "a law of fillers": lambda key, dtype: recall.chain(key, recall.Sizes(40, 4, 4), 1.0, dtype),
    "a chain": lambda key, dtype: chains.transitions(key, 40, dtype),
    "a back-copy law": lambda key, dtype: backcopy.law(key, 40, concentration=1.0, dtype=dtype).chain,
    "views": lambda key, dtype: hypercube.view(key, ONES.astype(dtype), 1, False),
    "prompts": lambda key, dtype: prompts.draw(key, 50, 6, ROOT.astype(dtype)),
}


@pytest.mark.parametrize("name", DRAWN)
@pytest.mark.parametrize("dtype", NARROW)
def test_narrow_numbers_are_those_of_float32_rounded(name, dtype):
    """The nearest numbers of the narrow dtype, with its own name."""
    key = jax.random.key(5)
    narrow, wide = (jax.tree.map(np.asarray, DRAWN[name](key, each)) for each in (dtype, "float32"))
    for ours, theirs in zip(jax.tree.leaves(narrow), jax.tree.leaves(wide), strict=True):
        assert ours.dtype == jnp.dtype(dtype) and theirs.dtype == np.float32
        np.testing.assert_array_equal(ours, theirs.astype(ours.dtype))


@pytest.mark.parametrize("dtype", NARROW)
def test_texts_of_narrow_laws_are_those_of_the_same_numbers(dtype):
    """A token is drawn by a number of float32 among sums of float32; in bfloat16 a sum of 40 shares has three digits."""
    key = jax.random.key(6)
    for draw, law in (
        (lambda p: chains.sample(key, p, 200), chains.transitions(key, 40)),
        (lambda p: recall.draw(key, recall.Sizes(40, 4, 4), p, 200), recall.chain(key, recall.Sizes(40, 4, 4), 1.0)),
    ):
        narrow = law.astype(dtype)
        np.testing.assert_array_equal(draw(narrow), draw(narrow.astype(jnp.float32)))
