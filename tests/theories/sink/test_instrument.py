"""Sinks: against NumPy, planted by position and by content, and none in uniform attention."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn import nn
from jaxdyn.instruments.law import Asked
from jaxdyn.instruments.moment import Moment
from jaxdyn.laboratory.lab import study
from jaxdyn.laboratory.tasks import TASKS
from jaxdyn.models.tokenizer import Tokenizer
from jaxdyn.nn.activations import reduce_blocks, scores
from jaxdyn.theories.sink.instrument import AS_IT_IS, GROWTH, MIDDLE, SINKS, Grown, Sink, followed, look, measure, uniform
from tests.instruments import plain

OTHER = "another word of the text"


@pytest.fixture(scope="module")
def random():
    return measure(plain.model(), plain.TOKENS, plain.nothing)


def test_weights_are_those_of_plain_attention(random):
    seen, _ = plain.pieces_of(plain.SHAPE, plain.model().params, plain.TOKENS)
    b, n = seen["attention"], plain.TOKENS.shape[1]
    expected = np.stack([b[..., j + 1 :, j].mean(-1) for j in range(8)], -1)
    own = random.sel(variant=AS_IT_IS)
    np.testing.assert_allclose(own.weight, expected, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(own.middle, b[..., n // 2 + 1 :, n // 2].mean(-1), rtol=1e-4, atol=1e-6)
    norms = np.linalg.norm(seen["value"], axis=-1)
    np.testing.assert_allclose(random.drain, norms[:, :, 0] / norms[:, :, 1:].mean(2), rtol=1e-4)
    size = np.abs(seen["after"])
    np.testing.assert_allclose(random.largest, size.max((2, 3)), rtol=1e-4)
    np.testing.assert_allclose(random.typical, np.median(size, (2, 3)), rtol=1e-4)
    np.testing.assert_array_equal(random.place, size.max(3).argmax(2))
    length = np.linalg.norm(size, axis=-1)
    np.testing.assert_allclose(random.length, length[..., 0] / np.median(length[..., 1:], -1), rtol=1e-4)


def test_first_tokens_are_replaced_by_tokens_that_the_model_has():
    words = [*"abcdefghi", "\n", "<s>", "<bos>"]
    for rows, names in ((11, ["a line break", "<s>"]), (10, ["a line break"])):
        measured = measure(plain.model(tokenizer=Tokenizer(plain.Words(words), rows=rows)), plain.TOKENS, plain.nothing)
        assert measured.variant.values.tolist() == [AS_IT_IS, OTHER, *names, MIDDLE]


def test_variants_replace_one_token(random):
    tokens = plain.TOKENS.copy()
    tokens[:, 0] = tokens[:, 20 // 3]
    seen, _ = plain.pieces_of(plain.SHAPE, plain.model().params, tokens)
    np.testing.assert_allclose(
        random.weight.sel(variant=OTHER).isel(token=0), seen["attention"][..., 1:, 0].mean(-1), rtol=1e-4, atol=1e-6
    )
    assert random.variant.values.tolist() == [AS_IT_IS, OTHER, MIDDLE]


def test_a_sink_by_position_stays_when_the_token_changes():
    ds = measure(plain.planted("position"), plain.circles(), plain.nothing)
    weight = ds.weight.isel(token=0, layer=0).mean("piece")
    assert float(weight.sel(variant=AS_IT_IS)[0]) > 0.999 and float(weight.sel(variant=OTHER)[0]) > 0.999
    np.testing.assert_allclose(weight.sel(variant=AS_IT_IS)[1], uniform(plain.SHAPE, 80), rtol=1e-5)
    assert float(ds.middle.sel(variant=MIDDLE).max()) < 0.05
    shown = {n.name: n for n in SINKS.numbers(ds)}
    assert shown[r"share of heads with a sink, $\alpha_0 > 0.3$"].value == 0.5
    assert shown[f"weight on the first place with {OTHER} there, over that with its own first token"].value == pytest.approx(
        1, abs=1e-3
    )


def test_a_sink_by_content_goes_with_the_token():
    ds = measure(plain.planted("content"), plain.circles(), plain.nothing)
    head = ds.isel(head=0, layer=0).mean("piece")
    assert float(head.weight.sel(variant=AS_IT_IS)[0]) > 0.999 and float(head.weight.sel(variant=OTHER)[0]) < 0.06  # uniform
    assert float(head.middle.sel(variant=AS_IT_IS)) < 0.01 and float(head.middle.sel(variant=MIDDLE)) > 0.45


@pytest.mark.parametrize("fields", [{}, {"window": 4}, {"sees_itself": False}], ids=str)
def test_uniform_attention_has_the_weights_that_are_predicted(fields):
    ds = measure(plain.uniform(plain.changed(**fields)), plain.TOKENS, plain.nothing)
    law = SINKS.predict(ds)
    np.testing.assert_allclose(ds.weight.mean(["piece", "variant", "layer", "head"]), law.weight, rtol=1e-5)
    np.testing.assert_allclose(ds.middle.mean(), law.middle, rtol=1e-5)
    assert uniform(plain.SHAPE, 20) == pytest.approx(np.mean(1 / np.arange(2, 21))) and uniform(plain.SHAPE, 64) < 0.06


def test_a_sink_token_is_the_first():
    ds = measure(plain.model(plain.changed(sink_token=True)), plain.TOKENS, plain.nothing)
    assert ds.attrs["tokens"] == 21 and float(ds.weight.max()) <= 1


def test_a_token_that_stands_first_anyway_is_no_replacement():
    """Where a tokenizer begins every piece with <s>, the piece with <s> there is the piece itself."""
    model = plain.model(tokenizer=Tokenizer(plain.Words([*"abcdefghi", "\n", "<s>"]), rows=11))
    begun = plain.TOKENS.copy()
    begun[:, 0] = 10
    ds = measure(model, begun, plain.nothing)
    assert ds.variant.values.tolist() == [AS_IT_IS, OTHER, "a line break", MIDDLE]
    assert not any("<s>" in n.name for n in SINKS.numbers(ds))
    begun[1:, 0] = 0
    ds = measure(model, begun, plain.nothing)
    weight = ds.weight.sel(variant="<s>")
    assert np.isnan(weight[0]).all() and np.isfinite(weight[1:]).all()
    (row,) = [n for n in SINKS.numbers(ds) if "<s>" in n.name]
    assert row.name.endswith(f"in {len(begun) - 1} of {len(begun)} pieces") and np.isfinite(row.value)


def test_the_other_word_is_another_one():
    same = np.full_like(plain.TOKENS, 3)
    same[:, -2] = 4
    ds = measure(plain.model(), same, plain.nothing)
    assert np.isfinite(ds.weight.sel(variant=OTHER)).all()
    assert not np.allclose(ds.weight.sel(variant=OTHER), ds.weight.sel(variant=AS_IT_IS))
    same[:, -2] = 3
    ds = measure(plain.model(), same, plain.nothing)
    assert OTHER not in ds.variant.values and np.isnan(ds.middle.sel(variant=MIDDLE)).all()


def test_a_stream_of_zeros_has_no_largest_entry():
    ds = measure(plain.model(), plain.TOKENS, plain.nothing)
    empty = ds.assign(largest=0 * ds.largest, place=0 * ds.place)
    shown = [n for n in SINKS.numbers(empty) if n.name.startswith("share of layers in which it is the first")]
    assert np.isnan(shown[0].value) and "in 0 of 3 pieces" in shown[0].name


# the growth of a sink


def moment(count=6, **fields):
    task = TASKS["copies"]
    fields = {"position": "none", "mlp": "none", "norm": "none"} | fields
    shape = nn.Transformer(vocabulary=task.vocabulary, width=8, layers=2, start="fan_in", length=task.length, **fields)
    params = nn.network(shape).init(jax.random.key(0))
    batch = task.batch(task.world(jax.random.key(1)), jax.random.key(2), count)
    return Moment(shape, params, batch, params, None, (), jnp.float32(0.1), jnp.int32(0))


@pytest.mark.parametrize(
    "fields", [{}, {"heads": 4, "groups": 2, "position": "rotary"}, {"attention": "zero_sink", "norm": "rms"}], ids=str
)
def test_what_the_flow_reads_is_that_of_numpy(fields):
    with jax.enable_x64(True):
        at = moment(**fields)
        found = look(at)
    idle = ~np.asarray(at.batch.known["due"]) & (np.arange(32) >= 2)

    def margins(params):
        def of(block):
            s = scores(at.shape, block).astype(jnp.float32)
            means = jnp.stack([jnp.mean(s[..., i, 1 : i + 1], -1) for i in range(1, 32)], -1)
            return (s[..., 1:, 0] - means), means, s

        gap, means, s = reduce_blocks(at.shape, params, at.batch.tokens, of)[1]
        return jnp.sum(gap * idle[None, :, None, 1:], (1, 3)) / idle.sum(), means, s

    own, means, s = margins(at.params)
    np.testing.assert_allclose(found.margin, own, rtol=1e-4, atol=1e-5)
    extra = float("zero_sink" in fields.values())
    s = np.asarray(s, np.float64)
    log = np.stack([np.log(np.exp(s[..., i, 1 : i + 1]).sum(-1) + extra) for i in range(1, 32)], -1) - np.asarray(means)
    np.testing.assert_allclose(found.others, (log * idle[None, :, None, 1:]).sum((1, 3)) / idle.sum(), rtol=1e-4)
    slopes = jax.jacrev(lambda p: margins(p)[0][1])(at.params)["blocks"]  # of the last block, by its own weights
    heads = at.shape.heads
    for head in range(heads if "groups" not in fields else 0):  # heads that share keys share these, too
        size = sum(float(jnp.sum(jnp.square(slopes[name][head, 1]))) for name in ("q", "k"))
        assert float(found.mobility[1, head]) == pytest.approx(size, rel=1e-3)


def test_the_flow_is_the_closed_solution_once_its_rate_is_known():
    keys, rate, mobility = 12.0, 0.02, 3.0
    e = np.geomspace(1 / keys, 40, 4000)
    time = np.cumsum(np.diff(e**2 / 2 + 3 * e + 3 * np.log(e) - 1 / e, prepend=0)) / (rate * mobility)
    time = time - time[0]
    at = np.linspace(0, 1.0, 60) ** 2 * time[-1]
    margins = np.interp(at, time, np.log(keys * e))
    with jax.enable_x64(True):

        def sink(margin):
            return Sink(*(jnp.full((1, 1), x, jnp.float64) for x in (margin, np.log(keys), mobility)))

        zero = jnp.zeros((1, 1), jnp.float64)
        state = Grown(sink(margins[0]), zero, zero, zero, sink(margins[0]).margin, zero > 0, jnp.float64(0))
        step, flows = jax.jit(followed), []
        for m, t in zip(margins, at, strict=True):
            state = step(state, sink(m), jnp.float64(t))
            flows.append(state)
    begun = np.asarray([bool(x.begun[0, 0]) for x in flows])
    first = np.argmax(begun)
    assert margins[first] >= 0.5 > margins[first - 1] and not begun[:first].any() and begun[first:].all()
    assert float(state.rate[0, 0]) == pytest.approx(rate, rel=0.02)  # as the readings before that are few
    np.testing.assert_allclose([float(x.expected[0, 0]) for x in flows[first:]], margins[first:], atol=0.03)
    heuristic = np.log1p(np.expm1(margins[first]) * at / at[first])  # the loss left to gain falls as exp(-margin)
    assert np.abs(heuristic - margins)[first:].max() > 0.2 * margins[-1]


def test_networks_without_a_sink_of_token_0_are_refused():
    def why(optimizer="sgd", **fields):
        return GROWTH.why_not(Asked(nn.Transformer(vocabulary=24, width=8, mlp="none", **fields), "copies", optimizer, False))

    assert not why() and not why(attention="zero_sink")
    assert "no shares" in why(attention="linear") and "no shares" in why(attention="sigmoid")
    assert "do not see" in why(window=4) and "of its own" in why(sink_token=True)
    assert "optimizer" in why(optimizer="adam")


@pytest.mark.slow
def test_the_margin_follows_the_reduced_flow():
    fields = {"data": "copies", "layers": 1, "width": 32, "position": "learned", "reading": 64, "lr": 0.3}
    plain = study("sink", seeds=3, steps=2400, every=60, **fields).cells[0]
    assert plain.error < GROWTH.bound and min(plain.off, plain.shuffled) > 2 * GROWTH.bound
