"""GaLore's topics: gradients of quadratics, subspaces, the optimizer and its memory."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import metrics
from jaxdyn.engine.catalogue.registry import all_claims
from jaxdyn.engine.claims.contract import MECHANISM
from jaxdyn.errors import Inconclusive, UsageError
from jaxdyn.theories.galore import (
    descent,
    drawings,
    dynamics,
    fixed_proj_parallel,
    grad_form,
    model,
    optax_agree,
    optimizer,
    stable_rank_limits,
    table,
    varying_kappa,
)
from jaxdyn.theories.galore import memory as module
from jaxdyn.theories.galore.descent import Quadratic, descend, problem, ranks
from jaxdyn.theories.galore.memory import Table, table_trial
from jaxdyn.theories.galore.published import EIGHT_BIT_7B, MEMORY, MODELS, PERPLEXITY, SPLIT, STEPS
from jaxdyn.theories.galore.text import claims
from tests.theories.galore.helpers import passed, runs


def plain(w, x, kind, bias):
    for i, matrix in enumerate(w):
        x = matrix @ x
        if i < len(w) - 1:
            x = x + bias[i] if kind == "bias" else x
            if kind in ("relu", "bias"):
                x = np.maximum(x, 0)
            elif kind == "leaky":
                x = np.where(x > 0, x, 0.1 * x)
            elif kind == "layernorm":
                x = (x - x.mean()) / np.sqrt(x.var() + 1e-6)
            else:
                x = len(x) * np.exp(x) / np.exp(x).sum() * x
    return x


@pytest.mark.parametrize("kind", model.LAYERS)
def test_chains_and_their_loss(kind, x64):
    rng = np.random.default_rng(0)
    w, bias = rng.normal(size=(3, 4, 4)), rng.normal(size=(3, 4))
    x, y = rng.normal(size=(2, 5, 4))
    outs = np.stack([plain(w, one, kind, bias) for one in x])
    np.testing.assert_allclose(model.chain(w, x[0], model.LAYERS.index(kind), bias), outs[0], atol=1e-12)
    loss = model.squared(w, x, y, jnp.int32(model.LAYERS.index(kind)), bias)
    np.testing.assert_allclose(loss, 0.5 * np.mean(np.sum((y - outs) ** 2, 1)), rtol=1e-12)


def test_cross_entropy_is_that_of_the_softmax(x64):
    rng = np.random.default_rng(0)
    w, x = rng.normal(size=(2, 4, 4)), rng.normal(size=(5, 4))
    labels = np.array([0, 3, 1, 1, 2])
    z = np.stack([plain(w, one, "relu", None) for one in x])
    expected = np.mean([np.log(np.exp(row).sum()) - row[i] for row, i in zip(z, labels, strict=True)])
    np.testing.assert_allclose(model.cross_entropy(w, x, np.eye(4)[labels]), expected, rtol=1e-12)


def test_the_quadratic_has_the_parametric_gradient(x64):
    rng = np.random.default_rng(0)
    a, w = rng.normal(size=(2, 3, 4))
    b, c = rng.normal(size=(2, 3, 3)), rng.normal(size=(2, 4, 4))
    b, c = b @ b.transpose(0, 2, 1), c @ c.transpose(0, 2, 1)
    expected = a - np.mean([b[i] @ w @ c[i] for i in range(2)], 0)
    np.testing.assert_allclose(-jax.grad(model.linear_loss)(w, a, b, c), expected, atol=1e-12)


def test_all_rows_but_the_first_feel_noise_alone(x64):
    rng = np.random.default_rng(0)
    w, target, noise = rng.normal(size=(3, 5)), rng.normal(size=5), rng.normal(size=(2, 5))
    np.testing.assert_allclose(jax.grad(model.row_loss)(w, target, noise), np.stack([w[0] - target, *noise]), atol=1e-12)


rng = np.random.default_rng(0)


def test_remainders_need_all_sizes_and_the_right_order():
    sizes = np.array(grad_form.SIZES)
    linear = rng.normal(size=(50, 1, 1, 3, 3)) * np.ones((1, sizes.size, 1, 1, 1))
    off = rng.normal(size=linear.shape) * sizes[:, None, None, None]
    ds = xr.Dataset(
        {name: (("seed", "size", "place", "row", "col"), value) for name, value in (("predicted_linear", linear),
                                                                                  ("measured_linear", linear + off))},
        coords={"size": sizes},
    )  # fmt: skip
    assert passed(grad_form.judge_logits(ds)) == [True, True]
    assert passed(grad_form.judge_logits(ds.assign(measured_linear=ds.predicted_linear + off**2)))[1] is False
    assert passed(grad_form.judge_logits(ds.assign(measured_linear=0.9 * ds.measured_linear)))[0] is False
    assert passed(grad_form.judge_logits(ds.assign(predicted_linear=0 * ds.predicted_linear))) == [False, False]
    with pytest.raises(Inconclusive):
        grad_form.judge_logits(ds.isel(size=slice(0, 2)))


def test_errors_are_relative_to_the_first_term_and_not_to_a_gradient_that_vanishes():
    first = xr.DataArray([[3.0, 4.0]], dims=("row", "col"))
    ds = xr.Dataset({"predicted_gradient": 0 * first, "measured_gradient": 1e-12 * first, "targets_alone": first})
    assert float(grad_form.form_error(ds)) == pytest.approx(1e-12)


PROBLEM, MODES, LOWEST = map(jax.jit, (problem, dynamics.modes, dynamics.lowest))


@pytest.mark.slow
def test_entries_have_the_eigenvalues_that_are_stated(x64):
    b, c, g = PROBLEM(Quadratic(kind="entries"), jax.random.key(0))
    modes = MODES(b, c)
    np.testing.assert_allclose(modes.values[:2], [0.05, 0.5], atol=1e-10)
    assert np.all((modes.values[2:-4] > 0.79) & (modes.values[2:-4] < 1.21)) and np.all(abs(modes.values[-4:] - 3) < 0.031)
    kept, _, second = LOWEST(modes, g)
    assert np.linalg.matrix_rank(kept, tol=1e-10) == 1 and abs(second - 0.5) < 1e-10
    np.testing.assert_allclose(kept @ modes.matrices[1].T, 0, atol=1e-10)  # neither factor is shared
    np.testing.assert_allclose(kept.T @ modes.matrices[1], 0, atol=1e-10)


def test_pairs_are_turned_counterexamples(x64):
    for flip, sign in ((0.0, 1), (1.0, -1)):
        b, c, g = PROBLEM(Quadratic(kind="pair", flip=flip), jax.random.key(0))
        modes = MODES(b, c)
        kept, _, _ = LOWEST(modes, g)
        s = np.linalg.svd(kept)[1]
        assert 0.15 < s[1] / s[0] < 0.35
        u, _, vt = np.linalg.svd(kept)
        assert np.sign(u[:, 0] @ (g - kept) @ vt[0]) == -sign  # negative: the spectral norm is below that of the part


@pytest.mark.slow
def test_a_gradient_that_vanishes_altogether_has_a_rank(x64):
    """At some seeds rounding makes the decayed gradient exactly zero, on some machines."""
    run = jax.jit(descend)(Quadratic(kind="pair", step=0.4), jax.random.key(0))
    found = ranks(run._replace(path=run.path.at[-1].set(0.0)))
    np.testing.assert_array_equal(found[:-1], metrics.stable_rank(run.path[:-1]))
    assert found[-1] == 1


def test_wrong_settings_are_refused():
    with pytest.raises(UsageError, match="not allowed"):
        Quadratic(kind="other")


def test_bounds_are_judged_while_the_gradient_is_no_rounding_error():
    size = np.tile([1.0, 1e-3, 2e-5, 1e-7], (200, 1))
    rank, delta = np.tile([3.0, 1.5, 1.5, 2.0], (200, 1)), np.tile([1.0, 1e-3, 1e-5, 1e-8], (200, 1))
    rest = delta * np.array([1.0, 0.5, 0.5, 2.0])
    ds = runs(measured_bound=(("time",), rank), predicted_bound=(("time",), rank + np.array([1.0, 0.001, 0.001, -1.0])),
              measured_rest=(("time",), rest), predicted_rest=(("time",), delta),
              measured_square=(("time",), 1 + rest**2), predicted_square=(("time",), 1 + delta**2),
              remaining=(("time",), size), delta=(("time",), delta)).expand_dims(kind=["entries"])  # fmt: skip

    def judged(**changed):
        return passed(stable_rank_limits.judge_bound(ds.assign(**changed)))

    assert all(judged())
    assert judged(predicted_bound=ds.predicted_bound + 0.1)[1] is False
    assert judged(predicted_bound=ds.predicted_bound - 0.01)[0] is False
    for k, name in enumerate(("rest", "square")):
        assert judged(**{f"predicted_{name}": ds[f"predicted_{name}"] / 2})[2 + k] is False
        assert judged(**{f"predicted_{name}": ds[f"predicted_{name}"] * 2})[4 + k] is False
    assert judged(predicted_rest=ds.predicted_rest**2)[6] is False


def test_rates_are_judged_by_their_order():
    one = np.full(200, -0.5)
    ds = runs(measured_first_order=((), one), predicted_first_order=((), one * 1.0005),
              measured_second_order=((), one), predicted_second_order=((), one * 2))  # fmt: skip
    assert passed(stable_rank_limits.judge_rate(ds)) == [True] and passed(stable_rank_limits.judge_rank_one(ds)) == [False]


def test_the_limit_of_the_step_size():
    excess = np.tile([-1e-12] * 6 + [0.05, 0.6], (200, 1))[:, :, None]
    ds = runs(measured_bound=(("step", "time"), 2 + excess), predicted_bound=(("step", "time"), 0 * excess + 2),
              remaining=(("step", "time"), 0 * excess + 1), rank_start=(("step",), 0 * excess[..., 0] + 3))  # fmt: skip
    ds = ds.assign_coords(step=stable_rank_limits.SHARES)
    assert passed(stable_rank_limits.judge(ds)) == [True] * 3
    assert passed(stable_rank_limits.judge(stable_rank_limits.REVERSED(ds))) == [False] * 3
    assert passed(stable_rank_limits.judge(stable_rank_limits.NEVER(ds)))[1:] == [False] * 2
    assert (
        passed(stable_rank_limits.judge(stable_rank_limits.CLAIMS[-1].rivals["nothing moves: the stable rank of the start"](ds)))[
            1:
        ]
        == [False] * 2
    )


@pytest.mark.parametrize(
    ("setting", "wrong"),
    [(descent.Fixed, {"rank": 8}), (descent.Span, {"span": 8})],
)
def test_wrong_settings_are_refused_of_projection(setting, wrong):
    with pytest.raises(UsageError, match="not allowed"):
        setting(**wrong)


def test_ranks_of_updates():
    rank = np.tile([4.0, 8.0, 10.0], (200, 1))
    full = np.full(200, 10.0)
    ds = runs(measured_rank=(("time",), rank), predicted_rank=(("time",), rank), measured_end=((), 0 * full),
              predicted_end=((), 0 * full), measured_final_rank=((), full), predicted_final_rank=((), full))  # fmt: skip
    assert passed(fixed_proj_parallel.judge_switching(ds)) == [True, True, True]
    assert passed(fixed_proj_parallel.judge_switching(ds.assign(measured_rank=ds.measured_rank + 1)))[1] is False
    assert passed(fixed_proj_parallel.judge_switching(ds.assign(measured_final_rank=ds.measured_final_rank - 1)))[2] is False


def test_a_span_of_all_dimensions_is_refused():
    with pytest.raises(UsageError, match="not allowed"):
        fixed_proj_parallel.Free(span=8)


def test_the_end_and_its_rank():
    end = np.ones((200, 2, 2))
    ds = runs(measured_end=(("row", "col"), end), predicted_end=(("row", "col"), end),
              measured_rank=((), np.full(200, 3.0)), predicted_rank=((), np.full(200, 3.0)))  # fmt: skip
    assert passed(fixed_proj_parallel.judge(ds)) == [True, True]
    assert (
        passed(fixed_proj_parallel.judge(ds.assign(predicted_end=0 * ds.predicted_end, measured_rank=2 * ds.measured_rank)))
        == [False] * 2
    )


@pytest.mark.slow
def test_steep_coefficients_break_the_printed_bound_alone():
    ds = jd.sweep(varying_kappa.varying_trial, jd.grid(varying_kappa.Varying, rank=1, kind=["wave", "steep"], offset=[0.0, 1.0]), 3)
    excess = (ds.measured_shrink - ds.predicted_shrink).where(ds.inside > 0).max("time")
    inside = excess.sel(offset=0.0)
    assert float(inside.sel(form="corrected").max()) < 0 < float(inside.sel(form="printed", kind="steep").min())
    assert float(excess.sel(offset=1.0, form="corrected", kind="steep").min()) > 0
    assert float(ds.assumed_coefficients_over_bound.sel(offset=0.0).max()) <= 1 + 1e-12
    np.testing.assert_allclose(ds.kappa.sel(offset=0.0, kind="steep").isel(time=0), 1, rtol=1e-9)  # b = c = 1, of rank one
    assert int(ds.status.max()) == 0 and (ds.remaining > 0.9).any() and (ds.inside.isel(time=0) == 1).all()


def test_a_subspace_that_is_the_whole_space_is_refused():
    with pytest.raises(UsageError, match="not allowed"):
        varying_kappa.Varying(rank=5)


def test_every_step_is_below_its_bound_and_steep_ones_near_it():
    growth, inside = np.tile([[0.1, 0.3, 9.0]], (200, 1)), np.tile([[1.0, 1.0, 0.0]], (200, 1))
    ds = runs(
        measured_shrink=(("time",), growth),
        predicted_shrink=(("time",), np.minimum(growth, 1) + 0.2),
        inside=(("time",), inside),
        unit=((), np.ones(200)),
    )
    kinds = xr.concat([ds, ds], xr.DataArray(["wave", "steep"], dims="kind", name="kind"))
    both = kinds.expand_dims(rank=[1, 2])
    assert passed(varying_kappa.judge_varying(ds)) == [True] and passed(varying_kappa.judge_varying(both)) == [True, True]
    assert passed(varying_kappa.judge_varying(both.assign(predicted_shrink=both.predicted_shrink + 1))) == [True, False]
    assert passed(varying_kappa.judge_varying(both.assign(predicted_shrink=both.predicted_shrink - 0.21))) == [False, True]
    loose = both.assign(predicted_shrink=both.predicted_shrink + xr.where(both["rank"] > 1, 1.0, 0.0))
    assert passed(varying_kappa.judge_varying(loose)) == [True, True]
    assert passed(varying_kappa.judge_varying(kinds)) == [True]


def test_parts_that_wave_have_frobenius_norm_one(x64):
    found = np.asarray(varying_kappa.unit(varying_kappa.positive(jax.random.key(0), 3, 5)))
    np.testing.assert_allclose((found**2).sum((1, 2)), 1, rtol=1e-12)
    assert (np.linalg.norm(found, 2, (1, 2)) < 1).all()


@pytest.mark.slow
def test_kappa_is_exact_for_one_term_alone():
    ds = jd.sweep(varying_kappa.loose_trial, jd.grid(varying_kappa.Spread, terms=[1, 10]), 4)
    over = ds.measured_rate / ds.predicted_rate
    np.testing.assert_allclose(over.sel(terms=1.0), 1, rtol=1e-10)
    assert float(over.sel(terms=10.0).min()) > 1.05


def test_a_fraction_of_a_term_is_refused():
    with pytest.raises(UsageError, match="not allowed"):
        varying_kappa.Spread(terms=1.5)


def test_kappa_is_compared_by_terms():
    over = np.stack([np.full(200, r) for r in (1.0, 1.2, 1.4)], 1)
    ds = runs(measured_rate=(("terms",), over), predicted_rate=(("terms",), np.ones((200, 3)))).assign_coords(
        terms=[1.0, 3.0, 10.0]
    )
    claim = varying_kappa.CLAIMS[-1]
    np.testing.assert_allclose([r.value for r in varying_kappa.read(ds)], (1.2, 1.4))
    assert set(claim.recorded) == {r.name for r in varying_kappa.read(ds)}


@pytest.mark.slow  # a verification runs the same trial, at its full size
def test_optimizers():
    ds = jd.sweep(optimizer.full_rank_trial, jd.grid(optimizer.FullRank, steps=6, depth=2, every=[2.0, 0.0]), 3)
    assert float(jd.relative_error(ds, "sgd", "place row col").max()) < 1e-9
    adam = jd.relative_error(ds, "adam", "place row col")
    assert float(adam.sel(every=0.0).max()) < 1e-6 and float(adam.sel(every=2.0).min()) > 0.01
    ds = jd.sweep(optimizer.sides_trial, jd.grid(optimizer.Sides, steps=10, depth=2, every=[1.0, 5.0]), 3)
    error = jd.relative_error(ds, "change", "place row col").max(("seed", "side"))
    assert error.sel(every=1.0) < 1e-9 < error.sel(every=5.0)
    ds = jd.sweep(optax_agree.agreement_trial, jd.grid(optax_agree.Agreement, periods=2, every=3), 3)
    assert float(jd.relative_error(ds, "change", "entry").max()) < 1e-5


@pytest.mark.slow
def test_rows_without_noise_take_no_direction():
    grid = jd.grid(optimizer.Noisy, rows=4, rank=2, noisy=[1.0, 2.0], lr=0.02, steps=400)
    left = jd.sweep(optimizer.noisy_trial, grid, 16).measured_left.isel(time=-1).mean("seed")
    assert float(left.sel(noisy=1.0)) < 0.01 and float(left.sel(noisy=2.0)) > 0.9


@pytest.mark.parametrize(
    ("setting", "wrong"),
    [
        (optimizer.FullRank, {"rank": 7}),
        (optax_agree.Agreement, {"side": "top"}),
        (optimizer.Noisy, {"finder": "guess"}),
        (optimizer.Noisy, {"rank": 3}),
        (optimizer.Noisy, {"noisy": 2.0}),
    ],
)
def test_wrong_settings_are_refused_of_optimizer(setting, wrong):
    with pytest.raises(UsageError, match="not allowed"):
        setting(**wrong)


rng_of_optimizer = np.random.default_rng(0)


def test_noise_is_judged_by_means_over_seeds():
    left = np.stack([np.full((200, 2), 0.97), np.full((200, 2), 0.24)], 1) * np.exp(
        0.01 * rng_of_optimizer.normal(size=(200, 2, 1))
    )
    ds = xr.Dataset({name: (("seed", "finder", "time"), left) for name in ("measured_left", "predicted_left")},
                    coords={"finder": ["svd", "orthonormal"]})  # fmt: skip
    assert passed(optimizer.judge_noise(ds)) == [True] * 5
    assert passed(optimizer.judge_noise(ds.assign(measured_left=ds.measured_left * 0.5)))[0] is False
    assert passed(optimizer.judge_noise(ds.assign(measured_left=ds.measured_left * 2)))[1:] == [False] * 4
    late = ds.measured_left.where([[True, True], [True, False]], 0.28 * np.ones(left.shape))  # a plateau that is too high
    assert passed(optimizer.judge_noise(ds.assign(measured_left=late))) == [True, True, True, False, False]
    little = ds.measured_left.where([[True, False], [True, True]], 0.975 * np.ones(left.shape))  # a fifth of what is learned
    assert passed(optimizer.judge_noise(ds.assign(measured_left=little))) == [True, False, True, True, True]
    with pytest.raises(Inconclusive):
        optimizer.judge_noise(ds.isel(finder=[0]))


def noise(ranks=(1, 2)):
    dims, shape = ("finder", "rank", "noisy", "seed", "time"), (2, len(ranks), 3, 4, 5)
    left = np.random.default_rng(0).random(shape)
    coords = {"finder": ["svd", "orthonormal"], "rank": list(ranks), "noisy": [0, 1, 2], "seed": range(4)}
    return xr.Dataset({"measured_left": (dims, left), "predicted_left": (dims, left)}, coords)


def test_changes_are_drawn_for_what_was_predicted():
    values = (("seed", "entry"), np.ones((2, 3)))
    for names in (("sgd", "adam"), ("change",)):
        ds = xr.Dataset({f"{side}_{name}": values for name in names for side in ("predicted", "measured")}, {"seed": range(2)})
        fig = Figure()
        drawings.plot_changes(ds, fig)
        assert len(fig.axes) == len(names)


@pytest.mark.parametrize(
    ("draw", "ds"),
    [(drawings.plot_noise, noise((1,)).isel(rank=0, noisy=0)), (drawings.plot_rank, noise().isel(finder=0))],
    ids=["noise", "rank"],
)
def test_distances_have_a_line_of_the_theory(draw, ds):
    fig = Figure()
    draw(ds, fig)
    (ax,) = fig.axes
    assert [line for line in ax.get_lines() if line.get_linestyle() == "--"]


# GB: full, GaLore short, GaLore long, low-rank, LoRA, LoRA by the paper's count
COMPUTED = {
    "60M": (0.348, 0.280, 0.275, 0.257, 0.307, 0.373),
    "130M": (0.805, 0.611, 0.588, 0.564, 0.734, 0.832),
    "350M": (2.208, 1.389, 1.326, 1.111, 1.716, 1.847),
    "1B": (8.034, 4.763, 4.511, 3.656, 6.072, 6.334),
}


@pytest.mark.parametrize("model", MODELS)
def test_gigabytes(model):
    found = [table.memory(model, "full"), table.memory(model, "galore", side="short"), table.memory(model, "galore")]
    found += [table.memory(model, "low_rank"), table.memory(model, "lora"), table.lora_as_published(model)]
    assert [round(b.total / table.GB, 3) for b in found] == pytest.approx(list(COMPUTED[model]), abs=1.1e-3)


def test_units_differ_from_model_to_model():
    full = {m: table.memory(m, "full").total for m in MODELS}
    assert full["350M"] / table.GIB == pytest.approx(2.06, abs=0.005)
    assert full["60M"] / table.GB == pytest.approx(0.36, abs=0.015)
    assert full["1B"] / table.GB == pytest.approx(7.80 / 0.971, rel=0.001)


def test_galore_states_are_those_of_the_long_side():
    for size, unit in (("350M", table.GIB), ("1B", table.GB / 0.971)):
        states = SPLIT["galore"].states[MODELS.index(size)]
        assert table.memory(size, "galore").states / unit == pytest.approx(states, rel=0.02)
        assert table.memory(size, "galore", side="short").states / unit > 1.05 * states


def test_lora_counted_once_misses_the_published_weights():
    once, published = table.memory("130M", "lora").weights / table.GB, SPLIT["lora"].weights[1]
    assert round(once, 3) == pytest.approx(0.358, abs=1e-3) and published / once > 1.2
    assert table.lora_as_published("130M").weights / table.GB == pytest.approx(published, rel=0.05)


def test_seven_billion_with_states_of_one_byte():
    adam = table.memory("7B", "full", moments="8bit")
    galore = table.memory("7B", "galore", moments="8bit")
    blocks = 1 + 4 / 256  # each block of 256 codes carries its largest value: the paper leaves it out
    assert adam.total / table.GIB == pytest.approx(25.10, rel=0.01)
    assert galore.total / table.GIB == pytest.approx(17.81, rel=0.01)
    assert adam.moments == pytest.approx(2 * 6_738_415_616 * blocks, rel=1e-4)
    for name, found in (("full", adam), ("galore", galore)):
        assert found.total / table.GIB == pytest.approx(EIGHT_BIT_7B[name], rel=0.04)
    short = table.memory("7B", "galore", side="short", moments="8bit")
    assert short.total / galore.total == pytest.approx(1, abs=0.002)  # one-byte moments, two-byte bases: both sides cost the same


def test_tables_are_complete():
    assert all(len(row) == len(MODELS) == len(STEPS) for row in (*MEMORY.values(), *PERPLEXITY.values()))
    for method, (weights, states) in SPLIT.items():
        for w, s, total in zip(weights, states, MEMORY[method], strict=True):
            assert w + s == pytest.approx(total, rel=0.05)


@pytest.mark.parametrize(("m", "n", "r"), [(3, 5, 2), (4, 4, 1), (6, 9, 6)])
def test_real_states_hold_what_the_corrected_formulas_say(m, n, r):
    found = module.real(m, n, r, 2)
    assert found == module.formulas(m, n, r)["corrected"]
    assert found["full"] == (2 * m * n, 3 * m * n)
    assert found["adaptor"] == (2 * r * (m + n), m * n + 3 * r * (m + n))
    assert found["galore"] == (2 * n * r, m * n + m * r + 2 * n * r)
    printed = module.formulas(m, n, r)["printed"]
    assert printed["adaptor"][1] - found["adaptor"][1] == m * n and printed["galore"][1] - found["galore"][1] == m * r


def test_one_moment_is_half_of_the_states():
    one, two = (module.real(8, 12, 3, moments) for moments in (1, 2))
    assert all(2 * one[method][0] == two[method][0] for method in module.METHODS)


SHAPE_60M = (512, 1376, 8, 128)  # width, units, layers, rank


def by_hand(side):
    """Bytes in GB of the 60M model by method, two bytes a number: full, GaLore."""
    d, f, layers, r = SHAPE_60M
    rest = 2 * 32_000 * d + (2 * layers + 1) * d
    matrices = [(d, d)] * 4 + [(d, f)] * 3
    full = layers * sum(3 * m * n for m, n in matrices)
    galore = 0
    for m, n in matrices:
        low, high = min(m, n), max(m, n)
        moments, basis = (low, high) if side == "long" else (high, low)
        galore += layers * (m * n + 2 * moments * r + basis * r)
    return [2 * (3 * rest + part) / 1e9 for part in (full, galore)]


@pytest.mark.parametrize("side", ["short", "long"])
def test_the_smallest_model_by_hand(side):
    ds = jd.sweep(table_trial, jd.grid(Table, side=side), [0])
    ours = ds.predicted_total.sel(model="60M", algorithm=["full", "galore"]).values.ravel()
    np.testing.assert_allclose(ours, by_hand(side), rtol=1e-5)  # counters of steps aside


def test_wrong_settings_are_refused_of_memory_table():
    with pytest.raises(UsageError, match="side is short or long"):
        Table(side="left")


CLAIMS = all_claims(theories={"galore"}).values()
BY_ID = {c.id: c for c in CLAIMS if c not in claims.CLAIMS}


@pytest.mark.parametrize("name", BY_ID)
def test_claims_are_complete(name):
    claim = BY_ID[name]
    assert len(BY_ID) + len(claims.CLAIMS) == len(CLAIMS) and name.startswith("galore.")
    assert claim.evidence and claim.plot and claim.caption
    assert claim.recorded if claim.expected == "measured" else claim.bounds
    assert claim.expected == "refuted" or (claim.controls and claim.rivals)
    trained = claim.evidence in MECHANISM and claim.evidence != "model"
    assert not trained or "moves" in next(iter(claim.rivals)) or "weights" in next(iter(claim.rivals))
    assert claim.seeds >= 100 or claim.evidence in ("numbers", "model")
    assert claim.expected != "refuted" or (name.endswith("_as_printed") and claim.printed)
    if claim.evidence == "reduced":
        assert claim.statement.startswith("In the reduced dynamics")
