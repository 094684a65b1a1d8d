"""Claims on published models: trials against plain NumPy on tiny networks, judges on made-up runs, all of it on the real one."""

import functools

import jax
import jax.numpy as jnp
import matplotlib
import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn.engine.catalogue import registry
from jaxdyn.engine.claims import resource
from jaxdyn.models.on_text import ModelAndText, OnText, piece
from jaxdyn.nn import cache
from jaxdyn.nn.transformer import apply
from jaxdyn.theories.dejavu import pretrained_model as dejavu
from jaxdyn.theories.galore import instrument as gradients
from jaxdyn.theories.galore import pretrained_model as galore
from jaxdyn.theories.h2o import pretrained_model as h2o
from jaxdyn.theories.joma import pretrained_model as joma
from jaxdyn.theories.orth import pretrained_model as orth
from jaxdyn.theories.sink import pretrained_model as sink
from jaxdyn.theories.stream import linebreak
from jaxdyn.theories.stream import pretrained_model as stream
from tests.instruments import plain
from tests.models.hugging import REAL, needs_smollm2

MODULES = (sink, stream, linebreak, h2o, orth, dejavu, joma, galore)
CLAIMS = {claim.id: claim for module in MODULES for claim in module.CLAIMS}
N = 64
S = OnText(length=N)
BREAK = 3  # the line break of a tiny network


def shared(model, tokens=None):
    """What a trial gets: this model, and words in disorder."""
    words = np.random.default_rng(0).integers(0, model.shape.vocabulary, 200) if tokens is None else tokens
    return ModelAndText(model.shape, model.params, jnp.asarray(words, jnp.int32), jnp.zeros(0, jnp.int32), jnp.asarray(BREAK))


@functools.cache
def ran(module, model=plain.model):
    """A module's trial on one piece, and the piece; values by group and name."""
    held, key = shared(model()), jax.random.key(3)
    found = jax.device_get(jax.jit(module.trial)(S, key, held))
    groups = {name: {k: v.value for k, v in getattr(found, name).items()} for name in ("predicted", "measured", "recorded")}
    return groups, np.asarray(piece(S, key, held)), held


def inside(tokens):
    return plain.inside(plain.SHAPE, plain.model().params, tokens)


def mean_cosine(x):
    u = x / np.linalg.norm(x, axis=-1, keepdims=True)
    return np.abs(u @ u.T)[~np.eye(len(u), dtype=bool)].mean()


@pytest.mark.slow
def test_weights_on_the_first_place_and_on_the_first_token_elsewhere():
    found, tokens, held = ran(sink)
    layers, _ = inside(tokens)
    weight = [x["attention"][:, 1:, 0].mean() for x in layers]
    np.testing.assert_allclose(found["predicted"]["replaced"], weight, rtol=1e-4)
    ends = [[np.min(weight), 0, 0, 0], [np.max(weight), 0, 0, 0]]  # of layers 1 and 2
    np.testing.assert_allclose(found["measured"]["sink"], ends, rtol=1e-4)
    drawn = jax.random.randint(jax.random.fold_in(jax.random.key(3), 1), (), 0, held.tokens.size)
    other = tokens.copy()
    other[0], other[N // 2] = held.tokens[drawn], tokens[0]
    layers, _ = inside(other)
    first, middle = ([x["attention"][:, i + 1 :, i].mean() for x in layers] for i in (0, N // 2))
    np.testing.assert_allclose(found["measured"]["replaced"], first, rtol=1e-4)
    np.testing.assert_allclose(found["recorded"]["moved"], middle, rtol=1e-4)
    assert found["recorded"]["uniform"] == pytest.approx(np.mean(1 / np.arange(2, N + 1)))


def test_weights_of_uniform_attention_are_those_of_counting():
    found, _, _ = ran(sink, plain.uniform)
    np.testing.assert_allclose(found["predicted"]["replaced"], found["recorded"]["uniform"], rtol=1e-5)


@pytest.mark.slow
def test_streams_embeddings_and_rows_have_the_cosines_of_numpy():
    found, tokens, held = ran(orth)
    layers, _ = inside(tokens)
    new = [i for i in range(1, N) if tokens[i] not in tokens[:i]]
    streams = [np.asarray(held.params["embed"])[tokens], *(x["after"] for x in layers)]
    raw = [mean_cosine(x[new]) for x in streams]
    centred = [mean_cosine(x[new] - x[new].mean(0)) for x in streams]
    np.testing.assert_allclose(found["recorded"]["raw"], raw, rtol=1e-4)
    np.testing.assert_allclose(found["recorded"]["centred"], centred, rtol=1e-4)
    rows = np.mean([mean_cosine(w) for w in np.asarray(held.params["blocks"]["down"])])  # fewer units than are drawn: all of them
    expected = [rows, raw[0], centred[0], np.mean(raw[1:]), np.mean(centred[1:])]
    np.testing.assert_allclose(found["measured"]["cosine"], expected, rtol=1e-4)
    only, every = found["predicted"]["cosine"]
    assert only[0] == every[0] and (only[1:] == 1).all() and len(set(every)) == 1


@pytest.mark.slow
def test_cosines_from_block_to_block_are_those_of_numpy():
    found, tokens, _ = ran(dejavu)
    for layer, measured in zip(inside(tokens)[0], found["measured"]["slow"], strict=True):
        x, y = layer["before"][1:], layer["after"][1:]
        cosine = (x * y).sum(-1) / np.linalg.norm(x, axis=-1) / np.linalg.norm(y, axis=-1)
        assert measured == pytest.approx(cosine.mean(), rel=1e-4)
    assert found["predicted"]["slow"].tolist() == [[0, 0], [1, 1]]


@pytest.mark.slow
def test_entropies_are_those_of_numpy():
    found, tokens, _ = ran(joma)
    for layer, measured in zip(inside(tokens)[0], found["measured"]["entropy"], strict=True):
        b = layer["attention"]
        assert measured == pytest.approx(-(b * np.log(np.where(b > 0, b, 1))).sum(-1).mean(), rel=1e-4)
    uniform, _, _ = ran(joma, plain.uniform)
    np.testing.assert_allclose(uniform["measured"]["entropy"], uniform["predicted"]["entropy"], rtol=1e-5)


@pytest.mark.slow
def test_losses_with_a_fifth_of_the_keys_are_those_of_caches_token_by_token():
    found, tokens, held = ran(h2o)
    half, size = (N - 1) // 2, round(h2o.BUDGET * (N - 1))
    assert found["recorded"]["nats"][0] == pytest.approx(inside(tokens)[1][half:].mean(), rel=1e-4)
    kinds = {"last keys": {"kind": "window"}, "first and last keys": {"kind": "streaming", "sinks": 4}}
    kinds |= {"H2O": {"kind": "h2o", "recent": size // 2}}
    for name, fields in kinds.items():
        policy = cache.Policy(size=size, positions="absolute", **fields)
        expected = cache.losses(held.shape, held.params, policy, jnp.asarray(tokens))[1][half:].mean()
        assert found["recorded"]["nats"][list(h2o.KEPT).index(name)] == pytest.approx(float(expected), rel=1e-3)


@pytest.mark.slow
def test_caches_hold_what_the_formula_says_and_losses_are_those_of_the_policies():
    found, tokens, held = ran(stream)
    np.testing.assert_array_equal(found["measured"]["bytes"], found["predicted"]["bytes"])
    one = 2 * plain.SHAPE.depth * plain.SHAPE.key_heads * plain.SHAPE.entries * 4
    assert found["measured"]["bytes"][:, -1].tolist() == [stream.SMALL * one, stream.DECODED * one]
    first = N // 4
    policy = cache.Policy(kind="streaming", size=first, sinks=1)
    expected = float(cache.losses(held.shape, held.params, policy, jnp.asarray(tokens))[1][first:].mean())
    assert found["recorded"]["nats"][0] == pytest.approx(inside(tokens)[1][first:].mean(), rel=1e-4)
    assert found["recorded"]["nats"][2] == pytest.approx(expected, rel=1e-3)
    ratio = found["recorded"]["nats"][[2, 3, 5]] - found["recorded"]["nats"][4]
    np.testing.assert_allclose(np.log(found["measured"]["ratio"]), ratio, rtol=1e-3, atol=1e-6)


@pytest.mark.slow
def test_line_breaks_are_read_in_the_place_of_the_first_tokens():
    found, tokens, held = ran(linebreak)
    first, nats = N // 4, found["recorded"]["nats"]
    broken, within = tokens.copy(), tokens.copy()
    broken[:4] = within[N // 2 : N // 2 + 4] = BREAK
    for value, text, sinks in zip(nats, (tokens, tokens, broken, broken), (0, 4, 4, 0), strict=True):
        policy = cache.Policy(kind="streaming", size=first, sinks=sinks)
        expected = float(cache.losses(held.shape, held.params, policy, jnp.asarray(text))[1][first:].mean())
        assert value == pytest.approx(expected, rel=1e-3)
    assert found["measured"]["saved"] == pytest.approx(nats[0] - nats[2])
    assert found["predicted"]["saved"] == pytest.approx(linebreak.PRINTED * (nats[0] - nats[1]))
    for text, begin, weights in zip((tokens, broken, within), (0, 0, N // 2), found["recorded"]["weights"], strict=True):
        for layer, own in zip(inside(text)[0], weights, strict=True):
            alpha = [layer["attention"][:, i + 1 :, i].mean() for i in range(begin, begin + 4)]
            np.testing.assert_allclose(own, alpha, rtol=1e-4)
    np.testing.assert_array_equal(found["measured"]["each"], found["recorded"]["weights"][1])
    np.testing.assert_allclose(found["predicted"]["each"].sum(-1), found["measured"]["each"].sum(-1), rtol=1e-6)


@pytest.mark.slow
def test_equal_tokens_in_front_have_equal_streams():
    """Why line breaks share the weight of a sink: they see nothing else, and a mean of equal values is that value."""
    layers, _ = inside(np.asarray([BREAK] * 4 + [5, 1, 7]))
    for layer in layers:
        np.testing.assert_allclose(layer["after"][:4], np.repeat(layer["after"][:1], 4, 0), rtol=1e-10)


@pytest.mark.slow
def test_spectra_are_those_of_the_whole_gradient():
    found, tokens, held = ran(galore)

    def loss(params):
        wide = jax.nn.log_softmax(apply(held.shape, params, tokens[None, :-1])[0])
        return -jnp.mean(jnp.take_along_axis(wide, tokens[1:, None], -1))

    gradient = jax.jit(jax.grad(loss))(held.params)["blocks"]
    for i, matrix in enumerate(held.shape.weights):
        s = np.linalg.svd(np.asarray(gradient[matrix]), compute_uv=False) ** 2
        np.testing.assert_allclose(found["measured"]["rank"][:, i], s.sum(-1) / s[:, 0], rtol=1e-3)
        quarter = max(1, round(s.shape[-1] / 4))
        np.testing.assert_allclose(found["measured"]["share"][:, i], s[:, :quarter].sum(-1) / s.sum(-1), rtol=1e-3)
    assert gradients.SHARES[4] == 1 / 4


def test_gradients_are_looked_at_in_a_few_layers():
    assert galore.looked_at(30) == (10, 20, 30) and galore.looked_at(2) == (1, 2) and galore.looked_at(1) == (1,)


@pytest.mark.slow
def test_an_unstructured_gradient_has_the_rank_of_its_tokens():
    held = shared(plain.model())
    few, many = (galore.unstructured(held, jax.random.key(0), count) for count in (1, 400))
    np.testing.assert_allclose(few["rank"], 1, rtol=1e-4)
    np.testing.assert_allclose(few["share"], 1, rtol=1e-4)
    assert float(many["rank"].min()) > 1.5 and float(many["share"].max()) < 0.9


def upheld(judge, ds):
    return all(check.passed for check in judge(ds))


def runs(**variables):
    """A Dataset of made-up runs: name -> (axes, values); the seed comes first, with a little noise."""
    rng, data = np.random.default_rng(0), {}
    for name, (axes, values) in variables.items():
        values = np.asarray(values, float)
        noise = rng.normal(size=(6, *values.shape)) * (0 if name.startswith("predicted") else 0.002)
        data[name] = (("seed", *axes.split()), values * (1 + noise))
    return xr.Dataset(data, {"seed": range(6)})


def changed(ds, name, **where):
    """The Dataset with a variable's entry replaced by ``to``."""
    to = where.pop("to")
    copy = ds[name].copy(deep=True)
    copy.loc[where] = to
    return ds.assign({name: copy})


LAYERS = np.arange(1, 31)


def sinks():
    ds = runs(
        predicted_sink=("group", sink.SOME),
        measured_sink=("end group", [[0.01, 0.15, 0.01, 0.3], [0.02, 0.4, 0.01, 0.7]]),
        predicted_replaced=("layer", [0.5] * 30),
        measured_replaced=("layer", [0.5] * 30),
        moved=("layer", [0.005] * 30),
        uniform=("", 0.02),
    )
    return ds.assign_coords(layer=LAYERS, group=list(sink.GROUPS), end=list(sink.ENDS))


MADE = {
    "sink.model": (
        sinks,
        sink.judge,
        [
            ("measured_sink", {"group": "4 to 10", "end": "least", "to": 0.02}),
            ("measured_sink", {"group": "12", "end": "largest", "to": 0.3}),
            ("measured_sink", {"group": sink.TOP, "end": "least", "to": 0.15}),
            ("measured_replaced", {"to": 0.1}),
            ("moved", {"to": 0.4}),
            ("predicted_sink", {"group": "12", "to": 1.0}),
        ],
    ),
    "dejavu.model_slow": (
        lambda: runs(
            predicted_slow=("layer", [0, *[1] * 28, 0]),
            measured_slow=("layer", [0.1, *[0.95] * 28, 0.6]),
            bound=("layer", [0.5] * 30),
        ).assign_coords(layer=LAYERS),
        dejavu.judge,
        [
            ("measured_slow", {"layer": 9, "to": 0.5}),
            ("measured_slow", {"layer": 30, "to": 0.95}),
            ("predicted_slow", {"layer": 1, "to": 1}),
        ],
    ),
    "joma.model_entropy": (
        lambda: runs(predicted_entropy=("layer", [4.5] * 30), measured_entropy=("layer", np.linspace(2.5, 1, 30))).assign_coords(
            layer=LAYERS
        ),
        joma.judge,
        [
            ("measured_entropy", {"to": 4.5}),
            ("measured_entropy", {"layer": 1, "to": 4.5}),
            ("measured_entropy", {"layer": slice(1, 15), "to": 1}),
        ],
    ),
    "orth.model": (
        lambda: runs(
            predicted_cosine=("group", [0.033, 1, 1, 1, 1]),
            measured_cosine=("group", [0.038, 0.18, 0.15, 0.6, 0.11]),
            random=("", 0.033),
        ).assign_coords(group=list(orth.GROUPS)),
        orth.judge,
        [("measured_cosine", {"group": name, "to": 0.06}) for name in ("written", *orth.LEAST)]
        + [("predicted_cosine", {"to": 0.033})],
    ),
    "h2o.model_budget": (
        lambda: runs(predicted_cost=("", 1.0), measured_cost=("", 0.4), nats=("policy", [2.0, 2.4, 2.5, 4.0, 5.0])).assign_coords(
            policy=list(h2o.KEPT)
        ),
        h2o.judge,
        [
            ("nats", {"policy": "last keys", "to": 2.5}),
            ("nats", {"policy": "H2O's opposite", "to": 2.5}),
            ("measured_cost", {"to": 0.01}),
            ("nats", {"policy": "first and last keys", "to": 3.5}),
            ("predicted_cost", {"to": 0}),
        ],
    ),
    "galore.model_gradients": (
        lambda: runs(
            predicted_rank=("layer matrix", np.full((3, 7), 40)),
            measured_rank=("layer matrix", np.full((3, 7), 2)),
            predicted_share=("layer matrix", np.full((3, 7), 0.8)),
            measured_share=("layer matrix", np.full((3, 7), 0.99)),
        ),
        galore.judge,
        [("measured_rank", {"layer": 1, "matrix": 3, "to": 20}), ("measured_share", {"layer": 0, "matrix": 6, "to": 0.75})],
    ),
}


@pytest.mark.parametrize("name", MADE)
def test_judges_uphold_what_the_statement_says_and_nothing_else(name):
    make, judge, others = MADE[name]
    assert upheld(judge, make())
    for variable, change in others:
        checks = judge(changed(make(), variable, **change))
        assert any(check.passed is False for check in checks), (variable, change)


def streamed():
    nats = np.array([2.0, 3.2, 2.12, 2.12, 2.14, 2.16])
    held = np.stack([np.minimum(np.arange(1, 13), 6), np.arange(1, 13)]) * 46080.0
    ds = runs(
        predicted_ratio=("sinks", [1, 1, 1]),
        measured_ratio=("sinks", np.exp(nats[[2, 3, 5]] - nats[4])),
        nats=("policy", nats),
        stretches=("policy stretch", np.repeat(nats[:, None], 6, 1)),
        again=("", 0.05),
        again_window=("", 1.2),
    )
    ds = ds.assign(predicted_bytes=(("cache", "token"), held), measured_bytes=(("cache", "token"), held))
    names = {"policy": ["dense", "window", "1 sink", "2 sinks", "4 sinks", "8 sinks"], "sinks": [1, 2, 8]}
    return ds.assign_coords(names | {"cache": list(stream.CACHES), "token": range(1, 13)})


@pytest.mark.parametrize(
    ("judge", "variable", "change"),
    [
        (stream.judge_window, "nats", {"policy": "window", "to": 2.2}),
        (stream.judge_window, "nats", {"policy": "window", "to": 9.0}),
        (stream.judge_window, "nats", {"policy": "4 sinks", "to": 2.9}),
        (stream.judge_window, "again", {"to": 1.2}),
        (stream.judge_sinks, "measured_ratio", {"sinks": 1, "to": 1.3}),
        (stream.judge_sinks, "predicted_ratio", {"sinks": 1, "to": 1.239}),
        (stream.judge_sinks, "nats", {"policy": "window", "to": 2.2}),
        (stream.judge_bytes, "measured_bytes", {"cache": "streaming", "token": 9, "to": 1e6}),
        (stream.judge_bytes, "measured_bytes", {"token": 12, "to": 1e6}),
        (stream.judge_bytes, "stretches", {"policy": "4 sinks", "to": 3.5}),
    ],
)
def test_judges_of_streaming(judge, variable, change):
    assert upheld(judge, streamed())
    assert any(check.passed is False for check in judge(changed(streamed(), variable, **change)))


def broken():
    own, breaks, middle = [0.47, 0.02, 0.01, 0.01], [0.13] * 4, [0.01] * 4
    ds = runs(
        predicted_saved=("", linebreak.PRINTED * 1.08),
        measured_saved=("", 1.05),
        predicted_each=("layer place", [breaks] * 30),
        measured_each=("layer place", [breaks] * 30),
        nats=("reading", [3.2, 2.12, 2.15, 3.3]),
        weights=("text layer place", [[own] * 30, [breaks] * 30, [middle] * 30]),
    )
    names = {"reading": list(linebreak.READINGS), "text": list(linebreak.TEXTS), "layer": LAYERS, "place": range(1, 5)}
    return ds.assign_coords(names)


@pytest.mark.parametrize(
    ("variable", "change"),
    [
        ("measured_saved", {"to": 0.9}),
        ("predicted_saved", {"to": 0.0}),
        ("measured_each", {"to": 0.01}),
        ("measured_each", {"place": 4, "to": 0.1}),
        ("predicted_each", {"place": 1, "to": 0.47}),
    ],
)
def test_the_judge_of_line_breaks(variable, change):
    assert upheld(linebreak.judge, broken())
    assert any(check.passed is False for check in linebreak.judge(changed(broken(), variable, **change)))


def test_a_random_network_that_is_as_slow_reads_zero():
    make = MADE["dejavu.model_slow"][0]
    both = xr.concat([make(), make()], "weights").assign_coords(weights=["published", "shuffled"])
    (reading,) = dejavu.read_excess(both)
    assert reading.value == pytest.approx(0, abs=1e-9)
    half = both.assign(measured_slow=both.measured_slow * xr.DataArray([1, 0.5], dims="weights"))
    assert dejavu.read_excess(half)[0].value == pytest.approx(0.475, rel=0.01)


@pytest.mark.parametrize("claim", CLAIMS.values(), ids=CLAIMS)
def test_claims_name_the_model_and_are_registered(claim):
    assert claim.evidence == "model" and "SmolLM2" in claim.title and "SmolLM2-135M-Instruct" in claim.statement
    assert registry.all_claims(theories={claim.theory})[claim.id] is not None and "SmolLM2" in claim.tested


def test_without_the_model_claims_are_skipped(tmp_path, monkeypatch):
    monkeypatch.setenv("JAXDYN_CACHE", str(tmp_path))
    resource.loaded.cache_clear()
    results = [jd.verify(claim) for claim in sink.CLAIMS]
    assert [r.verdict for r in results] == ["skipped", "skipped"]
    assert "jaxdyn models get smollm2" in results[0].message


@pytest.mark.slow
@needs_smollm2
def test_on_the_real_model_verdicts_are_as_expected_and_figures_are_drawn():
    results = jd.verify_many(list(CLAIMS), model=str(REAL))
    assert {r.claim.id: r.verdict for r in results} == {name: claim.expected for name, claim in CLAIMS.items()}
    for result in results:
        with matplotlib.rc_context():
            figure = Figure()
            result.claim.plot(result.data, figure)
            assert figure.axes
