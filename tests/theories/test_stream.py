"""StreamingLLM: network, equations, judges, and the law of attention against NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

import jaxdyn as jd
from jaxdyn.data import backcopy
from jaxdyn.errors import UsageError
from jaxdyn.nn import Transformer
from jaxdyn.nn.cache import Policy, losses
from jaxdyn.nn.transformer import apply
from jaxdyn.theories.sink.language import EDGES, POLICIES, places
from jaxdyn.theories.stream import cost, pretraining, streamed, text, window_sinks
from jaxdyn.theories.stream.cost import Cost, bytes_of
from jaxdyn.theories.stream.instrument import SINKS, STREAMING, measure
from jaxdyn.theories.stream.streamed import SPARE, Streamed, lacking, sample_texts, started, trained
from jaxdyn.theories.stream.window_lost_sink import Stream
from jaxdyn.theories.stream.window_sinks import POLICIES as WINDOW_POLICIES
from jaxdyn.theories.stream.window_sinks import trial as window_trial
from tests.instruments import plain
from tests.theories.galore.helpers import passed

# Bytes of caches by hand.


def test_by_hand():
    assert bytes_of(Cost(), "9 heads share 3, float32", 64) == 2 * 30 * 3 * 64 * 32 * 4
    assert bytes_of(Cost(kind="dense"), "8 heads share 2, bfloat16", 256) == 2 * 4 * 2 * 64 * 256 * 2


def test_products_are_counted_as_often_as_they_run():
    def program(x, w):
        once = x @ w  # 2 * 3 * 4
        again = jax.lax.scan(lambda y, _: (y @ (w.T @ w), None), once, None, length=5)[0]  # 5 * (4 * 3 * 4 + 2 * 4 * 4)
        return jnp.einsum("ij,kj->ik", again, jax.jit(lambda w: 2 * w)(w)) + jnp.sum(x)  # 2 * 4 * 3

    jaxpr = jax.make_jaxpr(program)(jnp.zeros((2, 3)), jnp.zeros((3, 4))).jaxpr
    assert cost.multiplications(jaxpr) == 24 + 5 * (48 + 32) + 24


def test_multiplications_by_hand():
    shape = Transformer(vocabulary=5, width=6, layers=2, heads=3, groups=1, hidden=7)  # heads of two entries
    block = 6 * 6 + 2 * 6 * 2 + 6 * 6 + 3 * 6 * 7  # queries, keys and values, output, MLP
    keys = {"streaming": 4, "window": 4, "dense": 9}
    for policy, size in keys.items():
        assert cost.counted(policy, 4, shape, 9) == 2 * (block + 2 * 6 * size) + 6 * 5
    assert cost.counted("recomputed", 4, shape, 9) == 4 * 2 * (block + 2 * 6 * 4) + 6 * 5
    assert cost.counted("streaming", 4, shape, 30) == cost.counted("streaming", 4, shape, 9)


@pytest.mark.parametrize("wrong", [{"kind": "lru"}])
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(UsageError, match="not allowed"):
        Cost(**wrong)


# Settings of streaming caches; the caches themselves are tested in tests/nn/cache.


@pytest.mark.parametrize("wrong", [{"sinks": 6.0}, {"layers": 3.0}])
def test_equivalence_wrong_settings_are_refused(wrong):
    with pytest.raises(UsageError, match="not allowed"):
        Stream(**wrong)


# Weights before and after a key has left, on a few runs.


# Judges of caches in a language model, on made-up cross-entropies.


def made(**more):
    """Three runs whose policies lose nothing but what is given, in nats or as a function of the position."""
    rng = np.random.default_rng(0)
    x = np.asarray(places(32, "float32"))
    base = 2 + 0.1 * rng.normal(size=(3, 1, 7)) + np.zeros((3, len(POLICIES), 7))
    for i, name in enumerate(POLICIES):
        base[:, i] += (
            {"dense": 1.0, "absolute": 0.1}.get(name, 0) + more.get(name.replace(" ", "_"), 0) + 1e-3 * rng.normal(size=(3, 7))
        )
    return xr.Dataset(
        {
            "measured_loss": (("seed", "policy", "stretch"), base),
            "measured_sink": (("seed", "step"), np.zeros((3, 2))),
            "validation": (("seed", "step"), np.tile([5.5, 2.0], (3, 1))),  # 2.1 nats are 38% of the start
            "place": (("seed", "stretch"), np.tile(x, (3, 1))),
        },
        coords={"policy": list(POLICIES)},
    )


def decided(checks):
    return passed([c for c in checks if not c.gate])


def test_a_window_without_a_sink():
    assert decided(text.judge_window(made())) == [True, True, True]
    assert decided(text.judge_window(made(window=0.05))) == [True, False, False]
    assert decided(text.judge_window(text.read_by("dense", instead=("window",))(made()))) == [False, False, False]
    untrained = made()
    assert decided(text.judge_window(untrained.assign(measured_loss=0 * untrained.measured_loss + 5.5)))[0] is False
    assert {*text.STILL, *text.WINDOWS_BREAK} == {c.name for c in text.judge_window(made()) if not c.gate}
    sink = made()
    sink["measured_sink"] = sink.measured_sink + 0.1
    assert [c.passed for c in text.judge_window(sink) if c.gate] == [True, False]


def test_streaming_against_recomputation():
    assert decided(text.judge_recomputed(made())) == [True, True, True]
    assert decided(text.judge_recomputed(text.read_by("absolute")(made()))) == [True, False, False]
    assert {*text.STILL, *text.SINKS_BREAK} == {c.name for c in text.judge_recomputed(made()) if not c.gate}
    assert decided(text.judge_level(made())) == [True] * 11
    growing = 0.05 * np.log10(np.asarray(places(32, "float32")))
    assert decided(text.judge_level(made(**{"1_sink": growing}))).count(False) == 2
    assert decided(text.judge_level(made(**{"8_sinks": 0.1}))).count(False) == 1


def test_dense_caches_and_positions():
    assert decided(text.judge_dense(made())) == decided(text.judge_positions(made())) == [True]
    same = made(dense=-1.0, absolute=-0.1)
    assert decided(text.judge_dense(same)) == decided(text.judge_positions(same)) == [False]
    assert decided(text.judge_positions(jd.swap(measured_loss=text.exchanged)(made()))) == [False]
    assert float(text.mean_ratio(made(), "dense", "dense").max()) == 1


def test_more_first_tokens():
    readings = {r.name: r.value for r in text.judge_count(made(**{"8_sinks": 0.1})) if r.name in text.HELPED}
    assert list(readings.values()) == pytest.approx([1, 1, np.exp(0.1)], abs=0.01)
    assert list(text.HELPED.values()) == pytest.approx([10.51 / 11.88, 9.59 / 11.88, 9.54 / 11.88])


# What a network lacks in the Bigram-Backcopy task, short runs, and judges on made-up divergences.

SMALL = {"vocabulary": 9, "triggers": 3, "length": 14, "keys": 10, "width": 8, "hidden": 8, "batch": 8, "steps": 40, "streams": 2}


@pytest.mark.slow
def test_a_network_that_knows_the_law_lacks_nothing(x64):
    law = backcopy.law(jax.random.key(0), 7, 2, dtype="float64")
    tokens = backcopy.draw(jax.random.key(1), law, 200)
    copied = jax.nn.one_hot(tokens[:-1], 7, dtype="float64")
    pi = jnp.where(law.triggers[tokens[1:]][:, None], copied, law.chain[tokens[1:]])
    logits = jnp.log(jnp.maximum(jnp.concatenate([pi[:1], pi]), 1e-300))
    np.testing.assert_allclose(lacking(law, tokens, logits), 0, atol=1e-12)
    uniform = lacking(law, tokens, jnp.zeros_like(logits))
    np.testing.assert_allclose(uniform[1:], np.log(7) - backcopy.entropies(law)[tokens[1:]], rtol=1e-9)
    other = lacking(law, tokens, 0.1 * logits)
    assert float(jnp.min(other[1:])) >= 0 and float(jnp.max(other)) > 0.1
    assert float(other[0]) == 0


@pytest.mark.slow
def test_fronts_are_cut_off():
    law = backcopy.law(jax.random.key(0), 9, 2)
    whole, cut = (np.asarray(sample_texts(law, n, jax.random.key(1), 5, 20)) for n in (0, SPARE))
    assert whole.shape == cut.shape == (5, 20) and (whole[:, 0] == 0).all() and (cut > 0).all()
    np.testing.assert_array_equal(whole[:, SPARE:], cut[:, :-SPARE])


@pytest.mark.slow
def test_shares_of_what_is_lost():
    ds = jd.sweep(window_trial, jd.grid(Streamed, **SMALL), 2)
    late = (ds.measured_lacks * xr.DataArray(np.diff(EDGES), dims="stretch")).isel(stretch=slice(2, None)).sum("stretch")
    lost = {name: late.sel(policy=name) - late.sel(policy="1 sink") for name in ("replaced", "window")}
    np.testing.assert_allclose(ds.measured_share.squeeze(), (lost["replaced"] / lost["window"]).squeeze(), rtol=0.02)
    np.testing.assert_array_equal(ds.predicted_share.isel(seed=0).squeeze(), [1, 0])


@pytest.mark.slow
def test_short_runs():
    ds = jd.sweep(window_trial, jd.grid(Streamed, decay=[0.0, 0.1], **SMALL), 2)
    assert ds.sizes["policy"] == len(WINDOW_POLICIES) and ds.sizes["stretch"] == 7
    assert bool((ds.measured_lacks > 0).all()) and bool((ds.status == 0).all())
    first = ds.measured_lacks.isel(stretch=0)
    np.testing.assert_allclose(first.sel(policy="window"), first.sel(policy="dense"), rtol=1e-4, err_msg="nothing has left yet")
    assert np.ptp(ds.measured_lacks.isel(stretch=-1).values, axis=-1).min() > 1e-6
    assert bool((ds.idle > 0).all()) and bool((ds.idle < 1).all())
    np.testing.assert_allclose(ds.place.values[0, 0], [5, 15, 30, 60, 120, 240, 410])


@pytest.mark.parametrize("wrong", [{"triggers": 32}, {"keys": 33}])
def test_window_wrong_settings_are_refused(wrong):
    with pytest.raises(UsageError, match="not allowed"):
        Streamed(**wrong)


@pytest.mark.slow
def test_embeddings_start_with_entries_of_size_one_and_training_reads_other_sequences_by_another_key():
    s = Streamed(**SMALL)
    law = backcopy.law(jax.random.key(0), 9, 3)
    first = started(s, jax.random.key(1))
    assert float(jnp.std(first["embed"])) == pytest.approx(1, rel=0.2)
    params, same, other = (trained(s, law, jax.random.key(1), jax.random.key(n)) for n in (2, 2, 3))
    np.testing.assert_array_equal(params["embed"], same["embed"])
    assert float(jnp.max(jnp.abs(params["embed"] - other["embed"]))) > 1e-3
    assert float(jnp.max(jnp.abs(params["embed"] - first["embed"]))) > 1e-2


def test_one_unit_is_the_default_and_many_are_another_program():
    assert Streamed().shape.hidden == 1 and Streamed(hidden=64).shape.hidden == 64
    assert {"hidden", "steps"} <= set(Streamed.static_fields) and "lr" in Streamed.swept_fields


def window_made(idle=0.4, **more):
    """Six runs whose policies lack nothing more than the network itself but what is given, in nats."""
    rng = np.random.default_rng(0)
    lacks = np.full((6, len(WINDOW_POLICIES), 7), 0.003) + 1e-5 * rng.normal(size=(6, len(WINDOW_POLICIES), 7))
    for i, name in enumerate(WINDOW_POLICIES):
        lacks[:, i, 1:] += {"dense": 1.0}.get(name, 0) * np.linspace(0.5, 1, 6) + more.get(name.replace(" ", "_"), 0)
    scalars = {"idle": idle, "idle_lacks": 0.01, "entropy": 2.0}
    ds = {name: ("seed", np.full(6, value) * (1 + 0.01 * rng.normal(size=6))) for name, value in scalars.items()}
    ds |= {"measured_lacks": (("seed", "policy", "stretch"), lacks)}
    ds |= {"place": (("seed", "stretch"), np.tile(np.asarray(places(24, "float32")), (6, 1)))}
    return xr.Dataset(ds, coords={"policy": list(WINDOW_POLICIES)})


def test_ratios_are_of_perplexities_after_two_lengths():
    ds = window_made(window=np.log(2))
    np.testing.assert_allclose(window_sinks.ratio(ds, "window", "1 sink"), 2, rtol=1e-4)
    np.testing.assert_allclose(window_sinks.ratio(ds, "replaced", "1 sink"), 1, rtol=1e-4)
    first = ds.copy(deep=True)
    first.measured_lacks[:, :, :2] = 99
    np.testing.assert_array_equal(window_sinks.ratio(first, "window", "1 sink"), window_sinks.ratio(ds, "window", "1 sink"))


def worlds(without=0.0, **more):
    """Networks with token 0, and the same without, of which a window loses ``without`` nats; enough for a share."""
    parts = [xr.concat([one] * 3, "seed") for one in (window_made(**more), window_made(idle=0.05, window=without))]
    return xr.concat(parts, "cut").assign_coords(cut=[0, window_sinks.CUT])


def test_windows_that_break_and_windows_that_hold():
    assert decided(window_sinks.judge_breaks(worlds(window=0.7))) == [True, True]
    assert decided(window_sinks.judge_breaks(worlds())) == [False, True]
    assert decided(window_sinks.judge_breaks(worlds(without=0.7, window=0.7))) == [True, False]
    assert decided(window_sinks.judge_breaks(window_sinks.EXCHANGED(worlds(window=0.7)))) == [False, False]
    assert [c.passed for c in window_sinks.judge_breaks(worlds(idle=0.1)) if c.gate] == [True, False, True, True]
    assert decided(window_sinks.judge_holds(window_made())) == [True, True]
    assert decided(window_sinks.judge_holds(window_made(window=0.7))) == [False, False]
    assert decided(window_sinks.judge_holds(jd.swap(measured_lacks=window_sinks.dense_as_window)(window_made()))) == [False, False]
    assert window_sinks.CHANCE[window_sinks.LACKS](window_made()) == pytest.approx(np.log(33) - 2, abs=0.05)


def test_a_sink_that_emerges():
    ds = window_made(idle=0.8).assign(copying=("seed", np.full(6, 0.02)))
    assert decided(window_sinks.judge_emerges(ds)) == [True]
    assert decided(window_sinks.judge_emerges(ds.assign(copying=ds.idle))) == [False]
    assert decided(window_sinks.judge_emerges(window_made(idle=0.1).assign(copying=ds.copying))) == [False]


def with_shares(predicted=1.0):
    shares = 0.97 + 0.01 * np.random.default_rng(0).normal(size=18)
    ds = xr.concat([window_made(window=0.7)] * 3, "seed").assign(measured_share=("seed", shares))
    return ds.assign(predicted_share=predicted + 0 * ds.measured_share)


def test_the_token_and_its_place():
    ds = with_shares()
    assert decided(window_sinks.judge_token(ds)) == [True]
    assert decided(window_sinks.judge_token(with_shares(0.0))) == decided(window_sinks.judge_token(with_shares(0.5))) == [False]
    dense = float((streamed.SHARES * np.linspace(0.5, 1, 6)[1:]).sum()) / 0.7
    np.testing.assert_allclose(window_sinks.dense_share(ds), dense, rtol=0.02)
    assert [c.passed for c in window_sinks.judge_token(ds.assign(measured_lacks=0 * ds.measured_lacks)) if c.gate][-1] is False


def test_runs_that_are_not_judged_do_not_count():
    left_out = xr.DataArray(np.arange(18) < 2, dims="seed")
    broken = worlds(window=0.7)
    breaks = window_sinks.judge_breaks(broken.assign(measured_lacks=broken.measured_lacks.where(~left_out)))
    assert [c.value for c in breaks if "share of runs" in c.name] == [1.0]


def test_perplexity_that_stays_and_perplexity_that_grows():
    assert decided(window_sinks.judge_stable(window_made())) == [True, True]
    assert decided(window_sinks.judge_stable(window_sinks.read_by("dense")(window_made()))) == [False, False]
    assert decided(window_sinks.judge_stable(window_sinks.read_by("window")(window_made(window=0.7)))) == [True, False]


# Kinds of networks: plain, with a zero sink, and with a sink token.


@pytest.mark.slow
def test_the_sink_token_comes_first_and_a_zero_sink_is_a_one_in_the_denominator():
    tokens = jnp.arange(8).reshape(2, 4)
    worlds = {kind: pretraining.Pretrained(kind=kind, **SMALL) for kind in pretraining.KINDS}
    np.testing.assert_array_equal(pretraining.begun(worlds["sink token"], tokens), [[9, 0, 1, 2], [9, 4, 5, 6]])
    np.testing.assert_array_equal(pretraining.begun(worlds["zero sink"], tokens), tokens)
    params = started(worlds["vanilla"], jax.random.key(0))
    assert params["embed"].shape == (10, 8)
    sums = {}
    for kind, s in worlds.items():
        weights = apply(s.shape, pretraining.fixed(s, params), tokens, observe=("attention",))[1]["attention"]
        sums[kind] = np.asarray(weights.sum(-1))
    np.testing.assert_allclose(sums["vanilla"], 1, rtol=1e-5)
    np.testing.assert_allclose(sums["sink token"], 1, rtol=1e-5)
    assert (sums["zero sink"] < 0.999).all() and (sums["zero sink"] > 0).all()


@pytest.mark.slow
def test_short_runs_of_every_kind():
    ds = jd.sweep(pretraining.trial, jd.grid(pretraining.Pretrained, kind=list(pretraining.KINDS), **SMALL), 2)
    lacks = ds.measured_lacks.squeeze()
    assert ds.sizes["policy"] == len(pretraining.SINKS) and bool((lacks > 0).all()) and bool((ds.status == 0).all())
    np.testing.assert_allclose(lacks.isel(stretch=0).sel(policy="window"), lacks.isel(stretch=0).sel(policy="4 sinks"), rtol=1e-4)
    late = lacks.isel(stretch=-1)
    assert float((late.max("kind") - late.min("kind")).min()) > 1e-6
    assert bool((ds.idle > 0).all()) and bool((ds.idle.sum("first") < 1).all())


def by_kind(**lost):
    """Twelve runs of every kind that lose so many nats with 0, 1 and 2 first tokens kept; 4 are enough."""
    lacks = np.zeros((3, 12, 4, 7)) + 1e-3 * np.random.default_rng(0).normal(size=(3, 12, 1, 1))
    for i, kind in enumerate(pretraining.KINDS):
        lacks[i, :, :3, 2:] += np.asarray(lost[kind.replace(" ", "_")])[:, None]
    variables = {
        "measured_lacks": (("kind", "seed", "policy", "stretch"), lacks),
        "idle_lacks": (("kind", "seed"), lacks[..., 0, 0]),
    }
    return xr.Dataset(variables, coords={"kind": list(pretraining.KINDS), "policy": list(pretraining.SINKS)})


LOST = {"vanilla": (0.5, 0.0, 0.0), "zero_sink": (0.7, 0.0, 0.0), "sink_token": (0.9, 0.1, 0.03)}


def test_first_tokens_that_are_needed_by_kind():
    found = [r.value for r in pretraining.judge(by_kind(**LOST)) if not hasattr(r, "gate")]
    assert found == pytest.approx([0.5, 0.7, 0.9, 1, 0.01])
    assert pretraining.published("zero sink", "window") == pytest.approx(np.log(29214 / 18.01))
    assert decided(pretraining.judge_needed(by_kind(**LOST))) == [True] * 4
    assert decided(pretraining.judge_needed(by_kind(**LOST | {"zero_sink": (0.0, 0.0, 0.0)}))) == [True, False, True, True]
    assert decided(pretraining.judge_needed(by_kind(**LOST | {"zero_sink": (0.7, 0.1, 0.0)}))) == [True, True, True, False]
    ds = by_kind(**LOST)
    dropped = ds.assign(measured_lacks=pretraining.dropped(ds).transpose(*ds.measured_lacks.dims))
    assert decided(pretraining.judge_needed(dropped)) == [True, True, False, False]


SLOW = pytest.mark.slow


@pytest.fixture(scope="module")
def planted():
    return measure(plain.planted(), plain.circles(), plain.nothing)


@SLOW
def test_nats_are_those_of_caches_token_by_token():
    one = plain.model()
    ds = measure(one, plain.TOKENS, plain.nothing)
    _, nats = plain.pieces_of(plain.SHAPE, one.params, plain.TOKENS)
    np.testing.assert_allclose(ds.nats.sel(policy="dense"), nats, rtol=1e-3, atol=1e-4)
    for name, sinks in SINKS.items():
        policy = Policy(kind="streaming", size=ds.attrs["size"], sinks=sinks)
        expected = jax.vmap(lambda t, p=policy: losses(plain.SHAPE, one.params, p, t)[1])(plain.TOKENS)
        np.testing.assert_allclose(ds.nats.sel(policy=name), expected, rtol=1e-3, atol=1e-4)


@SLOW
def test_recomputation_reads_the_last_tokens_alone():
    one = plain.model()
    ds = measure(one, plain.TOKENS, plain.nothing)
    size = ds.attrs["size"]
    for piece in range(3):
        for place, found in zip(ds.spot.values, ds.recomputed.values[piece], strict=True):
            window = plain.TOKENS[piece, place - size : place + 1]
            assert found == pytest.approx(plain.inside(plain.SHAPE, one.params, window)[1][-1], rel=1e-3, abs=1e-4)


def test_a_window_breaks_once_the_sink_is_gone(planted):
    late = planted.nats.sel(token=slice(planted.attrs["size"] + 1, None)).mean(["piece", "token"])
    assert float(late.sel(policy="window") - late.sel(policy="dense")) > 0.5
    np.testing.assert_allclose(late.sel(policy=["1 sink", "4 sinks", "8 sinks"]), late.sel(policy="dense"), atol=0.05)
    early = planted.nats.sel(token=slice(None, planted.attrs["size"])).mean(["piece", "token"])
    np.testing.assert_allclose(early, early[0], rtol=1e-5)
    again = float(planted.recomputed.mean() - late.sel(policy="dense"))
    assert again < 0.3  # the first of the last tokens is at the first place, so that it is a sink


def test_the_table_begins_with_the_model(planted):
    table = STREAMING.table(planted)
    assert table.rows[0][0] == "this model, L = 20" and len(table.rows[0][1]) == len(table.columns) == 7
    for name, cell in zip((*SINKS, "dense"), table.rows[0][1], strict=False):
        nats = planted.nats.sel(policy=name, token=slice(21, None)).mean()
        assert float(cell.split("\n")[0]) == pytest.approx(np.exp(float(nats)), rel=1e-3), name
    rows = dict(table.rows)
    assert rows["Llama-2-7B, PG19"][:5] == ("3359.95", "11.88", "10.51", "9.59", "9.54")
    ratio = {n.name: n for n in STREAMING.numbers(planted)}["perplexity over 4 sinks, 0+20"]
    assert ratio.value > 1.5 and ratio.low <= ratio.value <= ratio.high and ratio.expected == pytest.approx(3359.95 / 9.59)


def test_without_attention_no_policy_matters():
    one = plain.model()
    blocks = one.params["blocks"]
    still = one._replace(params=one.params | {"blocks": blocks | {"o": 0 * blocks["o"]}})
    ds = measure(still, plain.TOKENS, plain.nothing)
    np.testing.assert_allclose(ds.nats - ds.nats.sel(policy="dense"), 0, atol=1e-5)
    row = STREAMING.table(ds).rows[0][1]
    assert len(set(row)) == 1, "recomputation is read at few tokens, and compared with four sinks at these"
