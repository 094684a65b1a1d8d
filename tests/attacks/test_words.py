"""Words, titles, symbols and promises of a claim: what promises too much is found, and sound ones are not accused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import jaxdyn as jd
from jaxdyn.attacks.promises import promises, without_math
from jaxdyn.attacks.symbols import undefined
from jaxdyn.attacks.titles import asserting
from jaxdyn.attacks.words import ask
from jaxdyn.engine.catalogue.registry import catalogue
from tests.engine.handmade import Fields, case, data, judge, law, scattered, subjects

# What words promise is decided by a check that rejects an opponent, or is found.


LARGEST = {"title": "The measured entry is the largest"}
DECIDES = {"largest": ("relative error", "doubled")}


def means(ds):
    """Checks a mean over runs."""
    return [jd.mean_within("mean error", abs(ds.measured_z / ds.predicted_z - 1).mean("entry"), over=["lr", "seed"], high=0.6)]


def share(low):
    """A judge of the share of runs."""
    return lambda ds: [jd.at_least("share of good runs", float((abs(ds.measured_z / ds.predicted_z - 1) < 0.1).mean()), low)]


def texts(answer):
    return [f.text for f in answer.findings]


def test_a_right_claim_has_no_finding():
    answer = ask(case(law()))
    assert answer.outcome == "noticed" and answer.detail == "no word promises much"


def test_a_word_that_nothing_decides():
    (text,) = texts(ask(case(law(**LARGEST))))
    assert text.startswith("'largest' promises much, and nothing says which check decides it")


def test_a_word_that_a_check_decides():
    answer = ask(case(law(**LARGEST, decides=DECIDES)))
    assert answer.outcome == "noticed" and answer.detail == "words that promise much and are decided: 1 of 1"
    assert answer.facts["promises"] == {"largest": {"check": "relative error", "opponent": "doubled"}}
    assert ask(case(law(**LARGEST, decides={"the largest": ("relative error", "doubled")}))).outcome == "noticed"


@pytest.mark.parametrize(
    ("decides", "text"),
    [
        ({"smallest": ("relative error", "doubled")}, "names a word that stands neither in the title nor in the statement"),
        ({"largest": ("another", "doubled")}, "names a check that there is not: 'another'"),
        ({"largest": ("relative error", "halved")}, "names neither a control nor a rival: 'halved'"),
        ({"largest": ("size", "doubled")}, "'size' does not reject 'doubled'"),
    ],
)
def test_entries_that_decide_nothing(decides, text):
    two = lambda ds: [*judge(ds), jd.at_least("size", ds.measured_z, 0.0)]  # noqa: E731
    negative = {"negative": lambda ds: ds.assign(measured_z=-ds.measured_z)}
    made = law(**LARGEST, judge=two, rivals={}, controls={**law().controls, **negative}, decides=decides)
    assert any(text in each for each in texts(ask(case(made))))


def test_every_run_is_decided_by_a_check_of_each_run():
    every = law(statement="The measured entries are the predicted ones in every run.")
    assert ask(case(every)).facts["promises"] == {"every run": {"check": "relative error", "opponent": "doubled"}}
    blind = law(statement="The measured entries are the predicted ones in every run.", judge=means)
    assert subjects(ask(case(blind, scattered(0.1, 0.01)))) == ["every run"], "a mean does not speak for each of its runs"


def test_every_entry_is_decided_by_its_axis_or_its_name():
    assert ask(case(law(statement="It is so for all rates."))).outcome == "noticed"
    assert subjects(ask(case(law(statement="It is so for all widths.")))) == ["all widths"]
    named = lambda ds: [jd.at_most("error, every width", float(jd.relative_error(ds, "z", "entry").max()), 0.01)]  # noqa: E731
    assert ask(case(law(statement="It is so for all widths.", judge=named))).outcome == "noticed"


def test_most_is_decided_by_a_share_of_a_half():
    most = {"statement": "In most runs the entries are the predicted ones."}
    assert ask(case(law(**most, judge=share(0.5)))).outcome == "noticed"
    assert subjects(ask(case(law(**most, judge=share(0.2))))) == ["most runs"]


def test_titles_of_measured_claims_assert_nothing():
    made = {"expected": "measured", "controls": {}}
    assert subjects(ask(case(law(**made, title="The ratio rises late"), scattered()))) == ["title"]
    assert ask(case(law(**made, title="How late the ratio rises"), scattered())).outcome == "noticed"


def test_a_measured_claim_asks_of_all_and_every():
    made = {"expected": "measured", "controls": {}}
    assert ask(case(law(**made, statement="The ratio of all entries in every run."), scattered())).outcome == "noticed"


def test_symbols_are_defined():
    assert subjects(ask(case(law(statement="It is so for $a b < 1$.")))) == ["$a$", "$b$"]
    assert ask(case(law(statement="It is so for $a b < 1$.", tested="Of a nodes $a$, and $b$ of others."))).outcome == "noticed"


def test_derived_bounds_say_from_what():
    (text,) = texts(ask(case(law(bounds="derived"))))
    assert 'bounds="derived: from …"' in text
    assert ask(case(law(bounds="paper"))).outcome == "noticed"


def test_a_refuted_form_is_asked_for_its_symbols_and_its_limit():
    runs = data(0.001, lr=(0.1, 0.8), forms={"derived": 1.0, "printed": 2.0})
    derived = law(form="derived", bounds="derived", quick=jd.grid(Fields, lr=[0.1, 0.8]))
    printed = derived.as_printed(
        id="toy.law_as_printed", title="Printed: the largest", statement="$a b$", form="printed", printed="eq. (1)"
    )
    answer = ask(case(printed, runs))
    assert subjects(answer) == ["$a$", "$b$"] and answer.facts["misprint"] == "fails against an exact formula"


# Titles of measured claims: sentences are found, questions and noun phrases are not accused.


SENTENCES = {
    "A network trained with codes for a random part writes codes": "writes",
    "Thought 1 leaves more nodes open than thought 2": "leaves",
    "Destroyed images take about as many steps to fit as true ones": "take",
    "With fewer dimensions than tokens, attention ends elsewhere": "ends",
    "Trained thoughts rank nodes": "rank",
    "Equal efficiencies do not say where networks forget": "do",
    "The loss is conserved": "is",
}
PHRASES = [
    "How slowly streams change",
    "From which share of pairs networks generalise",
    "What learned attention does to the gradient's rank",
    "Does training favour the true latents?",
    "At equal numbers of weights, how much do deeper decoders lose?",
    "Perplexity of a small decoder by its alternatives",
    "The share of all attention that the heaviest tokens get",
    "Gradient ranks in small decoders",
    "The cost of attention heads and the return of entropy",
    "Ratio of the ranks, which fall late, of two layers",
]


@pytest.mark.parametrize("title", SENTENCES)
def test_a_title_that_asserts(title):
    assert asserting(title) == SENTENCES[title]


@pytest.mark.parametrize("title", PHRASES)
def test_a_title_that_asks_or_names(title):
    assert asserting(title) is None


def test_questions_of_the_package_are_questions():
    asked = [entry["title"] for entry in catalogue() if entry["expected"] == "measured" and entry["title"].endswith("?")]
    assert len(asked) > 10 and not any(map(asserting, asked))


# Symbols that a statement does not define, and those that it does.


DEFINED = [
    r"The rate $\eta$ multiplies the matrices $A, B$ and $C_1$.",
    r"With $K = 2q$ nodes, where $q$ is the width, $r = \sqrt{K q}$.",
    r"K of n vertices are known, so that $K/n^2$ is small.",
    r"The strength $u$ obeys $\dot u = 2u(s - u)$ with the singular value $s$.",
    r"For $x \sim N(0, I)$ and $p \ge 1$ it is $E[x^p]$.",
    r"The sum $\sum_k k^2$ is $O(n^3)$ for n terms, and $\int_0^1 \delta^2\,d\delta = 1/3$.",
    r"Under gradient flow it falls as $e^{-2\pi t}$.",
    r"It is $\lambda \|w\|^2$, $w$ being the weights and $\lambda$ the decay.",
    r"Each query's logits, $1^\top z_m$, are conserved.",
    r"A node with $\sigma = x^2$ learns.",
    r"The variance $\sigma^2$ is small: $\sigma < 1$.",
    r"The signal $\|G_F\|$ rises, and $\|G_F\|/2$ too.",
    r"The function $f(q(x))$ of the codes has the slope $f'$.",
    r"Descent on $L = \|\Sigma - W_2W_1\|^2$ with weights $W_1$, $W_2$ converges.",
    r"With the letters of another claim it is $a^b c^d$.",
    r"Operators such as $\mathrm{tr}\,A$, $\arg A$ and $\ln A$ are known, and A is a matrix.",
    "Nothing of this has a formula.",
]
UNDEFINED = {
    r"In the flow with overlap $K\|E\| < 1$ the logit rises.": ["K", "E"],
    r"A mode of strength $u = ab$ with the imbalance $c = a^2 - b^2$ grows.": ["a", "b"],
    r"The logit $B$ is $\frac1q\ln(1 + q\rho\Gamma)$.": ["q", r"\rho", r"\Gamma"],
    r"It ends at $A W f$, with the inputs $f_i$.": ["A", "W"],
}


@pytest.mark.parametrize("text", DEFINED)
def test_what_a_reader_would_accept_is_defined(text):
    assert undefined(text) == []


@pytest.mark.parametrize("text", UNDEFINED)
def test_letters_from_nowhere_are_found(text):
    assert undefined(text) == UNDEFINED[text]


def test_other_texts_and_fields_define_as_well():
    text = r"The loss falls as $\beta^{-2} p q$."
    assert undefined(text) == [r"\beta", "p", "q"]
    assert undefined(text, "Networks of p nodes", r"Tested with $\beta = 2$.") == []
    assert undefined(text, fields=("beta", "p", "q_max")) == []


@given(st.text("ab$\\{}_^()=,x2 \n", max_size=60))
def test_any_text_can_be_asked(text):
    assert isinstance(undefined(text), list)


# Words that promise much, and the same words where they promise nothing.


PROMISED = {
    "All networks generalise.": ["all networks"],
    "The loss falls in every run.": ["every run"],
    "It is the same for any activation.": ["any activation"],
    "Attention ends at the largest margin": ["largest"],
    "A construction has the largest margin": ["largest"],
    "A cache holds a set of the largest possible sum.": ["largest"],
    "The gradient is largest before the end.": ["largest"],
    "Near tokens are attended to first": ["first"],
    "The rank first falls and then rises.": ["first"],
    "It never falls, and always rises.": ["never", "always"],
    "Only the order of tokens survives": ["only", "order"],
    "Attention is in the order of the frequencies $P_l$.": ["order"],
    "The bound has the right order: it falls.": ["order"],
    "Weights grow in proportion to $z$.": ["in proportion"],
    "Rates are as the law says": ["as the law says"],
    "Rates are as the Hessian of the loss at the limit says.": ["as the hessian of the loss at the limit says"],
    "It grows if and only if $a > 2$.": ["only"],
    "Zero start helps most when pairs are scarce": ["most"],
    "In most runs it rises.": ["most runs"],
    "The loss is its minimum.": ["minimum"],
    "They fit the targets exactly.": ["exactly"],
    "It keeps the best set.": ["best"],
    "For all recorded times it is so.": ["all recorded times"],
    "If it is small, every run ends well.": ["every run"],
    "With few pairs, as $a = 0.5$ is small, no run is lost. All end well.": ["all end"],
}
HARMLESS = [
    "Do all networks generalise in every run?",
    "If all keys are evicted, the output changes.",
    "Where the first layer is largest, and every unit is active, it holds.",
    "Let every token have a score, and only one be the largest.",
    "Networks that never generalise count with their epochs.",
    "The loss over all pairs falls, and that of all tokens too.",
    "Shares among all names, and from all others.",
    "It does not need all of them.",
    "There is no decay at all.",
    "It holds without any training.",
    "With decay, with noise at every step, and with both, it ends well.",
    "No search is a proof for all weights.",
    "The sharpness is the curvature along the largest eigenvector, at the smallest rate.",
    "$d$ is the largest number of edges.",
    "A cache holds the first tokens and four first ones.",
    "It converges at first order, with order 2 in the step, on a group order.",
    "At first it is above 1%.",
    "It takes at least one step and at most two.",
    "The most frequent token leads.",
    "It takes a shortest path, by least squares.",
    "An identity for all pairs: the energy is a sum.",
    "It equals encoding the window anew for every token.",
    "It is a maximum of the energy.",
]


@pytest.mark.parametrize("text", PROMISED)
def test_promises_are_found(text):
    assert [one.phrase for one in promises(text)] == PROMISED[text]


@pytest.mark.parametrize("text", HARMLESS)
def test_the_same_words_in_other_places_promise_nothing(text):
    assert [one.phrase for one in promises(text)] == []


def test_formulas_are_no_words():
    text = "The rate $\\mathrm{all\\ any}$ is $x$."
    assert promises(text) == [] and len(without_math(text)) == len(text)


@given(st.text("abc $.,;:?!()allfirstmost" + "§", max_size=60))
def test_any_text_can_be_asked_of_promises(text):
    for one in promises(text):
        assert text[one.start : one.end].lower() == one.word
