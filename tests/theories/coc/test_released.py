"""Long trainings: a run that is killed and resumed ends with the bits of one that was not; stages; sizes; refusals."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn.data import prosqa
from jaxdyn.errors import StoreError, UsageError
from jaxdyn.theories.coc import released
from jaxdyn.theories.coc.released import Long

TINY = Long(width=8, heads=2, hidden=8, batch=2, problems=6, steps=6, every=2, warm=2)


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """Four problems in the form of a released file."""
    entries = [
        {
            "root": p.root,
            "target": p.target,
            "neg_target": p.negative,
            "edges": p.edges.tolist(),
            "idx_to_symbol": list(range(p.nodes)),
        }
        for p in prosqa.draw(9, 4)
    ]
    path = tmp_path_factory.mktemp("prosqa") / "test.json"
    path.write_text(json.dumps(entries))
    return path


def same(a, b):
    jax.tree.map(np.testing.assert_array_equal, (a.records, a.state), (b.records, b.state))


@pytest.mark.slow
def test_a_killed_run_resumes_to_the_same_bits(file, tmp_path, monkeypatch):
    whole = released.run(tmp_path / "whole.run", TINY, 3, file, save_seconds=0.0)
    assert whole.records["accuracy"].shape == (4, 7) and whole.steps.tolist() == [0, 2, 4, 6]
    advance = released.longrun.train.segments

    def killed(*args, **options):
        for count, state in enumerate(advance(*args, **options)):
            if count == 2:
                raise KeyboardInterrupt
            yield state

    with monkeypatch.context() as patch:
        patch.setattr(released.longrun.train, "segments", killed)
        with pytest.raises(KeyboardInterrupt):
            released.run(tmp_path / "cut.run", TINY, 3, file, save_seconds=0.0)
    same(released.run(tmp_path / "cut.run", TINY, 3, file, save_seconds=0.0), whole)
    with pytest.raises(StoreError, match="differs in seed"):
        released.run(tmp_path / "cut.run", TINY, 4, file)


def test_stages():
    s = Long(steps=100, first=0.4)
    assert [int(released.stage(s, jnp.int32(i))) for i in (0, 39, 40, 50, 99, 200)] == [0, 0, 1, 2, 6, 6]


def test_inputs_before_the_answer():
    assert [released.inputs(Long(method=m)) for m in ("coconut", "pause", "cot", "icot", "no_cot")] == [6, 6, 6, 0, 0]


@pytest.mark.parametrize(("method", "counts"), [("coconut", (1, 7)), ("cot", (7, 7)), ("no_cot", (1, 1)), ("pause", (7, 7))])
def test_stages_take_no_inputs_without_a_loss(method, counts):
    short = released.tables(Long(method=method))
    whole = released.model.method(method, released.HOPS, Long().mixing)
    assert tuple(how.node.shape[1] for how in short) == counts
    for how, stages in zip(short, (slice(0, 1), slice(1, None)), strict=True):
        for table in ("node", "answer"):
            assert np.isclose(np.sum(getattr(how, table)[stages]), np.sum(getattr(whole, table)[stages]))


def test_problems_have_room():
    packed = released.fitting(0, 30)
    assert packed.edges.shape[1:] == (60, 2) and packed.path.shape[1] == 7 and len(packed.root) >= 54
    assert np.asarray(packed.edges).max(axis=(1, 2))[:25].max() < released.NODES


def test_problems_are_sorted_by_edges():
    packed = released.fitting(1, 60)
    edges, begins, packed = (np.sum(np.asarray(packed.edges)[:, :, 0] >= 0, -1), *reversed(released.by_edges(packed)))
    found = np.sum(np.asarray(packed.edges)[:, :, 0] >= 0, -1)
    assert np.array_equal(found, np.sort(edges)) and begins[0] == 0 and begins[-1] == len(edges)
    for cap, a, b in zip(released.CAPS, begins[:-1], begins[1:], strict=True):
        assert np.all(found[a:b] <= cap) and np.all(found[b:] > cap)


def test_the_cut_takes_padding_only():
    problems = released.by_edges(released.fitting(2, 40))
    prompts = jax.vmap(released.prosqa_tokens.render)(
        jax.random.split(jax.random.key(0), len(problems.packed.root)), problems.packed
    )
    begins = problems.begins.tolist()
    for cap, a, b in zip(released.CAPS, begins[:-1], begins[1:], strict=True):
        short = released.cut(jax.tree.map(lambda x, a=a, b=b: x[a:b], prompts), cap).tokens
        assert short.shape == (b - a, 3 * cap + 5)
        dropped = np.asarray(prompts.tokens[a:b, : -short.shape[1]])
        eos = released.token(released.NAMES, "<eos>")
        assert np.all(dropped == eos) and np.all(short[:, 0] == eos)


def test_each_size_is_drawn_as_often_as_it_occurs(monkeypatch):
    def counted(loss, tx, batch):
        return lambda state, *data: state._replace(opt=state.opt.at[batch(state.step, *data)[1].tokens.shape[1]].add(1))

    monkeypatch.setattr(released.train, "make_step", counted)
    problems, draws = released.by_edges(released.fitting(3, 200)), 4000
    step, key = released.make_step(TINY, None), jax.random.key(0)
    lengths = [released.prosqa_tokens.prompt_length(cap) for cap in released.CAPS]

    def one(i, opt):
        return step(released.train.State(None, opt, i), problems, key).opt

    found = jax.jit(lambda: jax.lax.fori_loop(0, draws, one, jnp.zeros(max(lengths) + 1, jnp.int32)))()[jnp.asarray(lengths)]
    begun = round(TINY.small * TINY.steps)
    shares = np.diff(problems.begins[1:]) / int(problems.begins[-1] - problems.begins[1])
    assert found[0] == begun and found.sum() == draws
    assert np.all(np.abs(found[1:] / (draws - begun) - shares) < 4 * np.sqrt(shares * (1 - shares) / draws))


def test_the_rate_rises_and_falls():
    s = Long(steps=1000, warm=10, lr=2.0)
    at = [float(released.rate(s, jnp.float32(i))) for i in (0, 9, 749, 875, 999)]
    np.testing.assert_allclose(at, [0.2, 2, 2, 1, 0.2], rtol=1e-2)


def test_wrong_settings_are_refused():
    with pytest.raises(UsageError, match="method is one of"):
        Long(method="prayer")
    with pytest.raises(UsageError, match="batch is at least 1"):
        Long(batch=0)
