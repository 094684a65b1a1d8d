"""What a run may return: names, kinds of numbers, axes and coordinates; a stored sweep and one in memory agree in every bit."""

import tempfile

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxdyn as jd
from jaxdyn.engine.claims.observables import Named, observables, refuse_clashes
from jaxdyn.status import DIVERGED, OK, UNCONVERGED

THREE = jd.named(np.arange(3.0), "step")
MAKERS = {}  # name of a run -> what it returns


@jd.setting
class Drawn:
    """A run by its name."""

    a: jd.Swept = 1.0
    kind: str = ""


def drawn(s, key):
    """The observables of this name."""
    return MAKERS[s.kind](s)


def swept(make, kind, **options):
    MAKERS[kind] = make
    return jd.sweep(drawn, jd.grid(Drawn, a=[1.0, 2.0], kind=kind), 2, **options)


def bits(ds):
    """Axes, dtype and bytes of everything in a Dataset."""
    return {name: (var.dims, var.dtype, var.values.tobytes()) for name, var in ds.variables.items()}


# observables through JAX


def test_observables_pass_through_jax_with_their_names():
    """Compiled and over a batch: arrays are traced, axis names, coordinates and the groups' names are not."""

    def trial(x):
        return observables(
            predicted={"z": jd.named(jnp.stack([x, 2 * x]), "form")},
            measured={"z": x},
            recorded={"kept": x > 1, "path": jd.named(jnp.stack([x, x]), "step")},
            assumed={"drift": x / 2},
            status=jnp.where(x > 1, DIVERGED, OK),
            coords={"form": ("printed", "derived"), "step": np.arange(2)},
        )

    found = jax.jit(jax.vmap(trial))(jnp.array([1.0, 3.0]))
    assert found.predicted["z"].dims == ("form",) and found.measured["z"].dims == ()
    np.testing.assert_array_equal(found.predicted["z"].value, [[1, 2], [3, 6]])
    np.testing.assert_array_equal(found.assumed["drift"].value, [0.5, 1.5])
    np.testing.assert_array_equal(found.status, [OK, DIVERGED])
    assert found.coords == (("form", ("printed", "derived")), ("step", (0, 1)))
    assert jax.tree.structure(found) == jax.tree.structure(jax.jit(trial)(2.0)), "the batch changes no name"


def test_named_counts_the_axes():
    assert jd.named(np.ones((2, 3)), "step token") == Named(pytest.approx(np.ones((2, 3))), ("step", "token"))
    assert jd.named(1.0).dims == ()


@pytest.mark.parametrize(
    ("value", "dims", "message"),
    [
        (np.ones((2, 3)), "step", r"of shape \(2, 3\) needs 2 axis names, got 'step'"),
        (np.ones((2, 2)), "step step", "two axes called 'step'"),
        (np.ones(2), "seed", "the axis 'seed' of an array: the name is taken by an axis of the runs"),
        (np.ones(2), "cell", "the name is taken by an axis of stored runs"),
        (np.ones(2), "method", "the name is taken by an argument of xarray's sel"),
        (np.ones(2), "a/b", "the axis 'a/b' of an array is not allowed: a name begins with a letter"),
        (np.ones(2), ["step"], r"axis names \['step'\] are not allowed: they are one text"),
        ([1.0, 2.0], "step", "of type list: an observable is a number or an array; jnp.stack makes one"),
        (None, "", "of type NoneType: an observable is a number or an array"),
    ],
)
def test_arrays_with_other_names_than_axes_are_refused(value, dims, message):
    with pytest.raises(jd.UsageError, match=message):
        jd.named(value, dims)


# the gate

NAME = "is not allowed: a name begins with a letter or a digit and has printable characters other than '/'"


@pytest.mark.parametrize("name", ["a/b", "", ".", "..", " x", "_nc4_non_coord_x", "a\nb", "a\0b", "a\ud800", 3, None, ("a", "b")])
def test_names_that_a_file_could_not_hold_are_refused(name):
    for group in ("measured", "recorded", "assumed"):
        with pytest.raises(jd.UsageError) as error:
            observables(**{group: {name: 1.0}})
        assert str(error.value) == f"{group} {name!r} {NAME}"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"recorded": {"cell": 1.0}}, "recorded 'cell': the name is taken by an axis of stored runs; rename it"),
        ({"recorded": {"seed": 1.0}}, "recorded 'seed': the name is taken by an axis of the runs; rename it"),
        ({"recorded": {"form": 1.0}}, "recorded 'form': the name is taken by the axis of forms; rename it"),
        ({"recorded": {"status": 1}}, "recorded 'status': the name is taken; give status=... to jd.observables"),
        ({"recorded": {"step": THREE}}, "recorded 'step': the name 'step' is that of an axis; rename one of them"),
        ({"measured": {"z": THREE}, "recorded": {"step": 1}}, r"known before the run are coords=\{'step': ...\}"),
        ({"measured": {"z": jd.named(1.0)}, "recorded": {"w": jd.named(np.ones(2), "measured_z")}}, "'measured_z' is that of an"),
        ({"recorded": {"predicted_z": 1.0}}, "names that begin with predicted_, measured_, assumed_ are those of the other"),
        ({"predicted": {"z": 1.0}}, "predicted 'z' has no measured 'z'; measured are: none"),
        ({"measured": [1.0]}, "measured of type list is not allowed: it is a dict of names and their arrays"),
        ({"measured": {"z": np.ones((2, 3))}}, r'measured .z. has shape \(2, 3\): name its axes, jd.named\(z, "axis axis"\)'),
        ({"measured": {"z": Named(np.ones(2), ())}}, r"measured 'z' of shape \(2,\) needs 1 axis names, got ''"),
        ({"measured": {"z": [1.0, 2.0]}}, "measured 'z' is of type list: an observable is a number or an array; jnp.stack"),
        ({"measured": {"z": "abc"}}, "measured 'z' is of type str: an observable is a number or an array"),
        ({"measured": {"z": np.datetime64("2020-01-01")}}, "is of dtype datetime64.*: an observable holds numbers or truth values"),
        ({"measured": {"z": np.array([None])}}, "is of dtype object"),
        ({"measured": {"z": jax.random.key(0)}}, "is of dtype key<.*>: an observable holds numbers or truth values"),
        ({"measured": {"z": np.longdouble(1)}}, "an observable holds numbers or truth values of at most 64 bits"),
        ({"measured": {"z": 2**63}}, "an observable holds numbers or truth values of at most 64 bits"),
        ({"assumed": {"z": np.ones(2)}}, "assumed 'z' has shape .* an assumption bounds one number per run"),
        ({"assumed": {"z": THREE}}, "an assumption bounds one number per run"),
        ({"assumed": {"z": 1j}}, "dtype complex128: an assumption bounds one number per run"),
    ],
)
def test_what_a_dataset_would_lose_or_confuse_is_refused(fields, message):
    with pytest.raises(jd.UsageError, match=message):
        observables(**fields)


def test_an_axis_has_one_length():
    with pytest.raises(jd.UsageError, match="the axis 'step' has length 3 in measured 'z', but 2 in recorded 'w'; rename one"):
        observables(measured={"z": THREE}, recorded={"w": jd.named(np.ones((1, 2)), "layer step")})


def test_a_prediction_has_the_axes_of_its_measurement():
    """Other names would broadcast to a product, on which a true law fails: 0, 1, 2 against 0, 1, 2 differ off the diagonal."""
    with pytest.raises(jd.UsageError) as error:
        observables(predicted={"z": THREE}, measured={"z": jd.named(np.arange(3.0), "steps")})
    assert str(error.value) == (
        "predicted 'z' has the axis 'step', which measured 'z' lacks (its axes: steps): "
        "the axes of a prediction are among those of its measurement, except for `form`"
    )
    with pytest.raises(jd.UsageError, match=r"lacks \(its axes: none\)"):
        observables(predicted={"z": THREE}, measured={"z": 1.0})
    square = jd.named(np.ones((3, 2)), "step layer")
    for predicted in (square, jd.named(np.ones((2, 3)), "layer step"), THREE, 1.0):
        observables(predicted={"z": predicted}, measured={"z": square})  # fewer axes: the theory says they do not matter
    forms = jd.named(np.ones((2, 2, 3)), "form layer step")
    observables(predicted={"z": forms}, measured={"z": square}, coords={"form": ["printed", "derived"]})


@pytest.mark.parametrize("forms", [None, ("a",) * 3, (1, 2, 3)])
def test_forms_are_told_apart_by_their_names(forms):
    with pytest.raises(jd.UsageError, match="forms have distinct names, by which claims choose one"):
        coords = {} if forms is None else {"form": forms}
        observables(predicted={"z": jd.named(np.arange(3.0), "form")}, measured={"z": 1.0}, coords=coords)


DATES = np.array(["2020-01-01", "2020-01-02", "2020-01-03"])
KINDS = r"coords of 'step' are not allowed: they are real numbers \(no NaN\), printable words, or truth values"


@pytest.mark.parametrize(
    ("coords", "message"),
    [
        ({"step": [1, 2]}, "coords of 'step' are 2 values, but the axis has length 3: give one value per entry"),
        ({"step": [[1, 2], [3, 4], [5, 6]]}, r"coords of 'step' have shape \(3, 2\), but the axis has length 3"),
        ({"step": [(1, 2), (3,), (4,)]}, r"coords of 'step' have shape \(\), but the axis has length 3"),
        ({"step": "abc"}, r"coords of 'step' have shape \(\), but the axis has length 3"),
        ({"step": 3}, r"coords of 'step' have shape \(\), but the axis has length 3"),
        ({"steps": [1, 2, 3]}, "coords of 'steps' are not allowed: no array has this axis; the axes are: step"),
        ([1, 2, 3], "coords of type list are not allowed: they are a dict of axes and the values along them"),
        ({"step": [1j, 2, 3]}, KINDS),
        ({"step": DATES.astype("datetime64[D]")}, KINDS),
        ({"step": DATES.astype("datetime64[ns]")}, KINDS),
        ({"step": [b"a", b"b", b"c"]}, KINDS),
        ({"step": [None, 1, 2]}, KINDS),
        ({"step": ["a", 1, 2]}, KINDS),
        ({"step": [np.nan, 1, 2]}, KINDS),
        ({"step": ["\ud800", "b", "c"]}, KINDS),
        ({"step": [2**70, 1, 2]}, KINDS),
        ({"step": np.arange(3, dtype=np.longdouble)}, KINDS),
    ],
)
def test_coordinates_that_would_be_dropped_or_lost_are_refused(coords, message):
    with pytest.raises(jd.UsageError, match=message):
        observables(measured={"z": THREE}, coords=coords)


def test_coordinates_are_known_before_the_run():
    def trial(x):
        return observables(measured={"z": jd.named(x, "step")}, coords={"step": 2 * x})

    with pytest.raises(jd.UsageError, match="coords of 'step' are not allowed: they are computed in the run; record them"):
        jax.jit(trial)(jnp.arange(3.0))


@pytest.mark.parametrize("status", [np.int64(3), np.array(3), jnp.int32(3), np.uint8(3), 3])
def test_a_status_is_a_whole_number_of_any_library(status):
    assert observables(status=status).status == 3 and observables(status=status).status.dtype == jnp.int32


@pytest.mark.parametrize("status", [True, np.True_, jnp.array(False), 5, 99, -1, np.int64(5), 0.0, np.float32(0), "ok", None, [0]])
def test_a_status_that_is_none_is_refused(status):
    with pytest.raises(jd.UsageError, match="status=.* is not allowed: status is "):
        observables(status=status)


@pytest.mark.parametrize("status", [np.zeros(2, int), np.zeros((1,), int), np.float32(0), np.array(True)])
def test_a_traced_status_that_is_no_number_is_refused(status):
    with pytest.raises(jd.UsageError, match="status=.* is not allowed: status is a whole number"):
        jax.jit(lambda x: observables(status=x).status)(status)


def test_a_traced_status_is_cut_to_32_bits_without_becoming_another(x64):
    found = jax.jit(jax.vmap(lambda x: observables(status=x).status))(np.array([2**32, -(2**32), UNCONVERGED, OK]))
    assert found.dtype == jnp.int32 and found.tolist() == [UNCONVERGED + 1, -1, UNCONVERGED, OK]


def test_names_that_a_swept_field_hides_are_refused():
    found = observables(
        predicted={"z": THREE}, measured={"z": jd.named(np.ones((3, 2)), "step layer")}, recorded={"start": 1.0}, assumed={"gap": 1}
    )
    refuse_clashes(found, ["lr", "z", "gap"])
    for axis, message in {
        "start": "recorded 'start': it has the name of a field that is swept, 'start'; rename it",
        "assumed_gap": "assumed 'gap': it has the name of a field that is swept, 'assumed_gap'",
        "layer": "measured 'z': its axis 'layer' has the name of a field that is swept, 'layer'; rename it",
    }.items():
        with pytest.raises(jd.UsageError, match=message):
            refuse_clashes(found, ["lr", axis])


# memory and store

WIDER = {"bfloat16": "float32", "float8_e5m2": "float32", "float8_e4m3fn": "float32", "float4_e2m1fn": "float32"}
WIDER |= {"int4": "int8", "int2": "int8", "uint4": "uint8", "uint2": "uint8"}
NUMPY = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
NUMPY += ["float16", "float32", "float64", "complex64", "complex128"]


@pytest.mark.parametrize("short", WIDER)
def test_number_formats_that_numpy_lacks_are_widened_and_change_no_value(short):
    """All values of 8 bits or fewer, those with exponents at both ends of 16: as ml_dtypes reads them."""
    dtype = np.dtype(getattr(ml_dtypes, short))
    count = 2**16 if dtype.itemsize == 2 else 256
    values = np.arange(count, dtype=f"u{dtype.itemsize}").view(dtype)
    if dtype.itemsize == 1 and not short.startswith("float8"):
        values = np.unique(values.astype(np.float32)).astype(dtype)  # several bytes stand for one value of 4 bits
    found = observables(recorded={"x": jd.named(jnp.asarray(values), "place")}).recorded["x"].value
    assert found.dtype == WIDER[short]
    np.testing.assert_array_equal(np.asarray(found), values.astype(WIDER[short]))


def test_a_low_precision_measurement_that_is_not_finite_is_a_diverged_run():
    ds = swept(lambda s: observables(measured={"z": (s.a / (2 - s.a)).astype(jnp.bfloat16)}), "half of them infinite")
    assert ds.status.values.tolist() == [[OK, OK], [DIVERGED, DIVERGED]] and ds.measured_z.dtype == np.float32


REAL = [0.0, -0.0, 1.5, -3.0, np.nan, np.copysign(np.nan, -1), np.inf, -np.inf, 1e-45, 6e4]
NUMBERS = {"bool": [0, 1], "int": [0, 1, -1, -128, 127], "uint": [0, 1, 255]}
AXES = ("step", "layer", "e-1", "größe")
WORDS = st.text("aZ9_-. é", min_size=1, max_size=4).filter(lambda name: name[0].isalnum())


@st.composite
def arrays(draw, sizes):
    """An array on some of the axes, of any dtype."""
    dims = draw(st.permutations(sorted(sizes)))[: draw(st.integers(0, 2))]
    shape = tuple(sizes[axis] for axis in dims)
    dtype = jnp.dtype(draw(st.sampled_from([*NUMPY, *WIDER])))
    pool = NUMBERS.get(dtype.name.rstrip("0123456789"), REAL)
    if jnp.issubdtype(dtype, jnp.complexfloating):
        pool = [complex(x, y) for x in REAL for y in REAL]
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    with np.errstate(all="ignore"):
        return rng.choice(np.array(pool), shape).astype(dtype), dims


@st.composite
def whatever(draw):
    """Groups of arrays with their axes, and coordinates."""
    sizes = {axis: draw(st.integers(0, 3)) for axis in draw(st.lists(st.sampled_from(AXES), min_size=1, max_size=3, unique=True))}
    measured = draw(st.dictionaries(WORDS, arrays(sizes), min_size=1, max_size=2))
    recorded = draw(st.dictionaries(WORDS.filter(lambda name: name not in (*AXES, "a")), arrays(sizes), max_size=3))
    used = {axis for _, dims in (*measured.values(), *recorded.values()) for axis in dims}
    kinds = [st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False), st.text("aé \"'", max_size=3), st.booleans()]
    along = {
        axis: draw(st.lists(draw(st.sampled_from(kinds)), min_size=sizes[axis], max_size=sizes[axis])) for axis in sorted(used)
    }
    coords = {axis: along[axis] for axis in draw(st.lists(st.sampled_from(sorted(used)), unique=True))} if used else {}
    return measured, recorded, coords


@pytest.mark.slow
@settings(max_examples=15, deadline=None, derandomize=True)
@given(whatever(), st.sampled_from(["vmap", "map", "flat"]), st.integers(0, 10**9))
def test_memory_and_store_agree_in_every_bit(given_, executor, number):
    measured, recorded, coords = given_

    def make(s):
        groups = (
            {name: jd.named(jnp.asarray(value), " ".join(dims)) for name, (value, dims) in g.items()} for g in (measured, recorded)
        )
        return observables(**dict(zip(("measured", "recorded"), groups, strict=True)), coords=coords)

    kind = f"{number} {len(MAKERS)}"
    in_memory = swept(make, kind, executor=executor)
    with tempfile.TemporaryDirectory() as out:
        stored = swept(make, kind, executor=executor, out=out)
    assert bits(stored) == bits(in_memory) and stored.sizes == in_memory.sizes
    finite = all(np.isfinite(value.astype(np.complex128)).all() for value, _ in measured.values())
    assert (in_memory.status == (OK if finite else DIVERGED)).all()
    for label, (value, dims) in {**{f"measured_{n}": v for n, v in measured.items()}, **recorded}.items():
        assert in_memory[label].dims == ("a", "seed", *dims) and in_memory[label].dtype == WIDER.get(value.dtype.name, value.dtype)
        one = in_memory[label].isel(a=1, seed=1).values
        np.testing.assert_array_equal(one, value.astype(one.dtype))
    for axis, values in coords.items():
        assert in_memory[axis].values.tolist() == values
