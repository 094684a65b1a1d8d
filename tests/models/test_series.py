"""Steps of a series from its names: tables written by hand, and names made from templates whose numbers are known."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxdyn.errors import UsageError
from jaxdyn.models.series import given_steps, labels, short, steps_of


@pytest.mark.parametrize(
    ("names", "steps"),
    [
        (["step100-bf16", "step20-bf16"], [100, 20]),
        (["checkpoint-500-v2", "checkpoint-1000-v2"], [500, 1000]),
        (["step10-seed1", "step2-seed1"], [10, 2]),
        (["step1000-160m", "step512-160m"], [1000, 512]),
        (["step1e3", "step500", "step2e+03"], [1000, 500, 2000]),
        (["step10k", "step1.5k", "step1M", "step2K", "step900"], [10_000, 1500, 1_000_000, 2000, 900]),
        (["tok4B", "tok10B"], [4 * 10**9, 10**10]),
        (["1k", "7k"], [1000, 7000]),
        (["ckpt.5", "ckpt.100"], [5, 100]),
        (["step-100000", "step-110000"], [100_000, 110_000]),
        (["model-1b-step5", "model-1b-step10"], [5, 10]),
        (["step00010", "step00200", "step9"], [10, 200, 9]),
        (["run3/step8/model.gguf", "run3/step16/model.gguf"], [8, 16]),
        (["org/net-step1", "org/net-step0"], [1, 0]),
        (["1E3", "5E2", "1e+4"], [1000, 500, 10_000]),
        (["tok1T", "tok500G", "tok100B"], [10**12, 5 * 10**11, 10**11]),
        (["100Btokens", "1.5Ttokens", "20Mtokens"], [10**11, 15 * 10**11, 2 * 10**7]),
        (["10B tokens", "20B tokens"], [10**10, 2 * 10**10]),
        (["step1e3steps", "step500steps"], [1000, 500]),
        (["step-0001000", "step-0020000"], [1000, 20_000]),
        (["lr1e-3-step5", "lr1e-3-step6"], [5, 6]),
        (["2024-01-31-step5", "2024-01-31-step9"], [5, 9]),
        (["v1_100-160m-0x10-step3", "v1_100-160m-0x10-step4"], [3, 4]),
        (["100e-1", "200e-1"], [10, 20]),
        (["step100bf16", "step200bf16"], [100, 200]),
        (["step100 final", "step200 final"], [100, 200]),
        (["step1 (copy)", "step2 (copy)"], [1, 2]),
        (["v1.5-step3", "v1.5-step4"], [3, 4]),
        (["gpt2-1000", "gpt2-500"], [1000, 500]),
        (["iter_1_5", "iter_1_25"], [5, 25]),
        (["1/tok5M", "1/tok25M"], [5 * 10**6, 25 * 10**6]),
        (["v1.5-tok5M", "v1.5-tok25M"], [5 * 10**6, 25 * 10**6]),
        (["160m-5Btokens", "160m-25Btokens"], [5 * 10**9, 25 * 10**9]),
        (["step100-7B", "step200-7B"], [100, 200]),
        (["run3-100", "run3-200"], [100, 200]),
        (["seed-step1", "seed-step2"], [1, 2]),
        (["base", "chat"], None),
    ],
)
def test_the_number_that_varies_is_the_step(names, steps):
    assert steps_of(names) == steps


@pytest.mark.parametrize(
    ("names", "words"),
    [
        *(([f"step1{unit}", f"step2{unit}"], "step1") for unit in (" k", " mln", "mln", " Mio", "Tsd", ".k", "x10^3", " md")),
        *(([f"step1{unit}", f"step2{unit}"], "step1") for unit in (" ksteps", "\u200b0", "%", "h", "万", "-of-5", " 千", "\u20e3")),
        (["12:30", "13:30"], "12:30"),
        *(([f"{before}10", f"{before}20"], before[-2:]) for before in ("step0x", "step_0x", "step0o", "ckpt0b")),
        (["step100-left", "step50-left"], "100-left"),
        (["step_100_remaining", "step_50_remaining"], "100_remaining"),
        (["2*3", "2*4"], "2*3"),
        (["model-00001-of-00003", "model-00002-of-00003"], "1-of-00003"),
        (
            ["step1-seed1", "step2-seed2"],
            "step2-seed2 are not allowed as a series without steps: they differ in several",
        ),
        (["step1-seed1", "step1-seed2", "step2-seed1"], "they differ in several numbers; --steps (steps= in Python) gives them"),
        (["a/step1", "b/step2"], "they differ in more than a number"),
        (["step100", "final"], "step100, final are not allowed as a series without steps: they differ in more than a number"),
        (["step10", "step010"], "they hold the same numbers"),
        (["step1e3", "step1000", "step1k"], "they hold the same numbers"),
        (["step5", "step05", "step6"], "they hold the same number more than once"),
        (["epoch0.5", "epoch1"], "they differ in a number that is not whole"),
        (["step-1", "step1"], "they differ in more than a number"),
        (["step1_000", "step10_000"], "they hold a number that is one or several; --steps (steps= in Python) gives them"),
        (["step1,000", "step2,000"], "they hold a number that is one or several"),
        (["step1 000", "step2 000"], "they hold a number that is one or several"),
        (["step1'000'000", "step2'000'000"], "they hold a number that is one or several"),
        (["step1.000", "step2.000"], "they hold a number that is one or several"),
        (["seed1_100", "seed2_200"], "they differ in several numbers"),
        (["1m", "2m"], "they differ in 1m, which can be read in several ways; --steps (steps= in Python) gives them"),
        (["1.5m", "2.5m"], "they differ in 1.5m, which can be read in several ways"),
        (["1b", "7b"], "they differ in 1b, which"),
        (["step1k5", "step2k5"], "they differ in 1k5, which"),
        (["step1e3f", "step2e3f"], "they differ in 1e3f, which"),
        (["1Ki", "2Ki"], "they differ in 1Ki, which"),
        (["10million", "20million"], "they differ in 10million, which"),
        (["10 billion", "20 billion"], "they differ in 10 billion, which"),
        (["10_B_tokens", "20_B_tokens"], "they differ in 10_B_tok"),
        (["a-0x10", "a-0x20"], "they differ in 0x10, which"),
        (["step2^10", "step2^11"], "they differ in ^10, which"),
        (
            ["step1p5M", "step1p25M"],
            "they differ in 1p5M, which can be read in several ways; --steps (steps= in Python) gives them",
        ),
        (["step1-5M", "step1-25M"], "they differ in 1-5M, which"),
        (["step1_5e3", "step1_25e3"], "they differ in 1_5e3, which"),
        (["1_5k", "1_25k"], "they differ in 1_5k, which"),
        (["epoch1,5", "epoch1,25"], "they differ in 1,5, which"),
        (["step_1·5", "step_1·25"], "they differ in 1·5, which"),
        (["1p5", "2p5"], "they differ in 1p5, which"),
        (["1,5k", "2,5k"], "they differ in 1,5, which"),
        (["1½", "2½"], "they differ in 1½, which"),
        (["step10²", "step20²"], "they differ in 10², which"),
        (["step1億", "step9億"], "they differ in 1億, which"),
        (["5 hundred", "9 hundred"], "they differ in 5 hundred, which"),
        (["lr1e-3", "lr1e-4"], "they differ in a number that is not whole"),
        (["2e-05", "3e-05"], "they differ in a number that is not whole"),
        (["2.5x", "3.5x"], "they differ in a number that is not whole"),
        (["ckpt-2024-01-01", "ckpt-2024-01-02"], "they differ in a date"),
        (["c20240101", "c20240201"], "they differ in a date"),
        (["ck-15012024", "ck-01022024"], "they differ in a date"),
        (["01-15-2024", "01-16-2024"], "they differ in a date"),
        (["ck-150124", "ck-010224"], "they differ in a date"),
        ([".5M", ".25M"], "they differ in .5M, which"),
        (["run-.5M", "run-.25M"], "they differ in .5M, which"),
        (["x_.5k", "x_.25k"], "they differ in .5k, which"),
        (["tok.5B", "tok.25B"], "they differ in .5B, which"),
        (["-.5", "-.25"], "they differ in .5, which"),
        (["1k5", "1k25"], "they differ in 1k5, which"),
        (["ckpt-1B5", "ckpt-1B25"], "they differ in 1B5, which"),
        (["ckpt-1k5", "ckpt-1k7"], "they differ in 1k5, which"),
        (["5\u2009000", "10\u2009000"], "they hold a number that is one or several"),
        (["0o10", "0o7"], "they differ in 0o10, which"),
        (["1.e3", "2.e3"], "they differ in 1.e3, which"),
        (["ckpt-2024-01-31", "ckpt-2024-02-01"], "they differ in several numbers"),
        (["1e98", "1e99"], "they differ in a number above 9223372036854775807"),
        (["step1", "step1"], "step1 is not allowed twice in a series"),
        (["1B", "7B"], "they differ in 1B, which may be the size of a model; --steps (steps= in Python) gives them"),
        (["run/160M", "run/410M"], "they differ in 160M, which may be the size of a model"),
        (["org/model-1B", "org/model-7B"], "they differ in 1B, which may be the size of a model"),
        (["pythia-1B", "pythia-7B"], "they differ in 1B, which may be the size of a model"),
        (["-100", "-200"], "they differ in -100, which may be below 0; --steps (steps= in Python) gives them"),
        (["a/-100", "a/-200"], "they differ in -100, which may be below 0"),
        (["step=-1", "step=-2"], "they differ in -1, which may be below 0"),
        (["chat", "chat"], "chat is not allowed twice in a series"),
        (["seed1", "seed2"], "they differ in a number next to 'seed', which may be no step; --steps (steps= in Python) gives them"),
        (["run-3", "run-12"], "they differ in a number next to 'run', which may be no step"),
        (["net_rank=0", "net_rank=1"], "which may be no step"),
        (["cv/fold_1/final", "cv/fold_2/final"], "which may be no step"),
        (["Replica 1", "Replica 2"], "which may be no step"),
        (["trial_no_7", "trial_no_8"], "which may be no step"),
        (["seeds/1", "seeds/2"], "which may be no step"),
        (["lr1", "lr2"], "which may be no step"),
        (["bs32", "bs64"], "which may be no step"),
        (["init-1", "init-2"], "which may be no step"),
        (["s1", "s2"], "which may be no step"),
        (["prune1", "prune2"], "a number next to 'prune'"),
        (["3a", "4a"], "a number next to 'a'"),
        (["tiny-Q4_0.gguf", "tiny-Q8_0.gguf"], "a number next to 'Q'"),
        (["model.Q4_K_M.gguf", "model.Q5_K_M.gguf"], "a number next to 'Q'"),
        (["int4", "int8"], "a number next to 'int'"),
        (["fp16", "fp32"], "a number next to 'fp'"),
        (["4L", "8L"], "a number next to 'L'"),
        (["adam_b2_99", "adam_b3_99"], "a number next to 'b'"),
        (["stage1-step100", "stage2-step100"], "a number next to 'stage'"),
        (["tinyRun1", "tinyRun2"], "which may be no step"),
        (["SEED01-step5", "SEED02-step5"], "which may be no step"),
        (["step5_seed1", "step5_seed2"], "which may be no step"),
        ([f"step{i}-{i}" for i in range(9)], "step5-5, … are not allowed"),
    ],
)
def test_names_that_leave_the_order_open_are_refused(names, words):
    with pytest.raises(UsageError) as error:
        steps_of(names)
    assert words in str(error.value) and "\n" not in str(error.value)


WORDS = st.text("abcdxyz", min_size=1, max_size=4)
SEPARATORS = st.sampled_from(["-", "_", "/", "."])
SPELLINGS = {
    "plain": str,
    "padded": lambda n: f"{n:012d}",
    "thousands": lambda n: f"{n // 1000}.{n % 1000:03d}k",
    "power": lambda n: f"{n}e0",
}


@settings(deadline=None, max_examples=200)
@given(
    st.lists(st.integers(0, 10**9), min_size=2, max_size=6, unique=True),
    st.lists(st.tuples(WORDS, SEPARATORS, st.integers(0, 999)), max_size=3),
    st.lists(st.tuples(WORDS, SEPARATORS, st.integers(0, 999)), max_size=3),
    st.sampled_from(["step", "ckpt", "Iter", "epoch", "tok"]),
    st.lists(st.sampled_from(sorted(SPELLINGS)), min_size=6, max_size=6),
    st.data(),
)
def test_names_from_a_template(steps, before, after, word, spellings, data):
    """Words with numbers around the step: however it is spelt, it is found; a second number that varies is refused."""
    left = "".join(f"{text}{number}{mark}" for text, mark, number in before)
    right = "".join(f"_{text}{mark}{number}" for text, mark, number in after)
    spelt = [SPELLINGS[how](n) for how, n in zip(spellings, steps, strict=False)]
    names = [f"{left}{word}-{n}{right}" for n in spelt]
    assert steps_of(names) == steps
    others = data.draw(st.lists(st.integers(0, 999), min_size=len(steps), max_size=len(steps)))
    both = [f"{name}_of{other}" for name, other in zip(names, others, strict=True)]
    if len(set(others)) == 1:
        assert steps_of(both) == steps
    else:
        with pytest.raises(UsageError, match="they differ in several numbers"):
            steps_of(both)


@settings(deadline=None, max_examples=200, derandomize=True)
@given(
    st.lists(st.tuples(st.integers(0, 99), st.integers(1, 99)), min_size=2, max_size=4, unique=True),
    st.characters(exclude_categories=["Nd", "Cs"], exclude_characters="/\\"),
    st.sampled_from(["k", "M", "B", "T", "e6"]),
)
def test_decimals_are_right_or_refused(parts, point, unit):
    """Thousands and millions with any character for the point: no step is read of what stands behind it."""
    names = [f"step{whole}{point}{part:02d}{unit}" for whole, part in parts]
    values = [round((100 * whole + part) * 10 ** ({"k": 3, "M": 6, "B": 9, "T": 12, "e6": 6}[unit] - 2)) for whole, part in parts]
    try:
        steps = steps_of(names)
    except UsageError:
        assert point != "." or len(set(values)) < len(values)
        return
    one_whole = len({whole for whole, _ in parts}) == 1
    same_part = len({part for _, part in parts}) == 1
    assert steps == values if point == "." else same_part and not one_whole and steps == [whole for whole, _ in parts]


def test_steps_that_are_given():
    for steps in ([3, 1], (3, 1), "3,1", " 3, 1", np.asarray([3, 1]), range(3, 0, -2)):
        assert given_steps(steps, 2) == [3, 1]


@pytest.mark.parametrize(
    ("steps", "count", "words"),
    [
        ("1,x", 2, "steps=1,x is not allowed: steps are whole numbers with commas between them"),
        ("1,", 2, "steps are whole numbers with commas"),
        ("-1,2", 2, "steps are whole numbers with commas"),
        ([1, 2.0], 2, "an entry of steps=2.0 is not allowed: an entry of steps is a whole number"),
        ([1, True], 2, "an entry of steps=True is not allowed"),
        ([1, -2], 2, "an entry of steps=-2 is not allowed"),
        ([1, 2**63], 2, "an entry of steps=9223372036854775808 is not allowed"),
        (5, 2, "steps=5 is not allowed: steps are a list of whole numbers"),
        ({1, 2}, 2, "steps are a list of whole numbers"),
        (np.ones((2, 2), int), 2, "steps are a list of whole numbers"),
        ([1, 2], 3, "each of two or more models has its own, and there is a series of 3 models"),
        ([2, 2], 2, "steps=[2, 2] is not allowed: each of two or more models has its own"),
        ([2], 1, "and there is 1 model"),
    ],
)
def test_steps_that_are_refused(steps, count, words):
    with pytest.raises(UsageError) as error:
        given_steps(steps, count)
    assert words in str(error.value)


@pytest.mark.parametrize(
    ("names", "steps", "told"),
    [
        (["hf/step100/model", "hf/step300/model"], [100, 300], ["step100", "step300"]),
        (["a/1.5k/model", "a/20k/model"], [1500, 20000], ["step 1,500 (1.5k)", "step 20,000 (20k)"]),
        (["runs/step20-bf16", "runs/step100-bf16"], [20, 100], ["step20-bf16", "step100-bf16"]),
        (["x/base/model", "x/chat/model"], [None, None], ["base", "chat"]),
        (["x/base/last/model", "x/chat/best/model"], [None, None], ["base/last", "chat/best"]),
        (["x", "x/model"], [1, 2], ["step 1 (x)", "step 2 (model)"]),
        (["a model in memory"] * 2, [7, 9], ["step 7 (a model in memory)", "step 9 (a model in memory)"]),
        (["a model in memory"] * 2, [None, None], ["checkpoint 1 (a model in memory)", "checkpoint 2 (a model in memory)"]),
        (["hf/step100/model"], [None], ["model"]),
        (["org/tiny"], [None], ["org/tiny"]),
    ],
)
def test_labels_say_what_differs(names, steps, told):
    assert labels(names, steps) == told


def test_the_folder_here_has_its_name(tmp_path, monkeypatch):
    (tmp_path / "tiny" / "below").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "tiny")
    assert short(".") == "tiny" and short("below/..") == "tiny" and short("../tiny/") == "tiny" and short("./below") == "below"
