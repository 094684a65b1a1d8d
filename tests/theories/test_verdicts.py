"""Topics of which the verdicts are all that is to be asked: their claims come out as expected, with all controls and rivals.

A verification of everything judges the same runs, so these are slow tests but for those that take a second.
"""

import pytest

import jaxdyn as jd
from jaxdyn.engine.catalogue import registry

TOPICS = {  # theory.topic -> options of jd.verify_many
    "assort.autoencoder_capacity": {},
    "assort.hybrid": {},
    "assort.quantiser": {},
    "collapse.flow_descent": {},
    "emer.bounded_growth": {},
    "emer.direction": {},
    "emer.reduction_expansion": {},
    "hyper.spectral": {},
    "icl.gf_limit": {},
    "icl.plateaus": {},
    "icl.sgd": {},
    "ih.baselines": {},
    "ih.phases": {},
    "margin.factored": {},
    "margin.vector_matrix": {},
    "memo.finite_sample": {},
    "sink.reduced_log": {"seeds": 2},
    "sln.exact": {},
    "sln.linegraph": {},
    "sln.rates": {},
    "stream.window_lost_sink": {"seeds": 3},
    "sup.layer1_chooser": {"seeds": 1},
    "sup.limits": {},
    "sup.superposition": {"seeds": 1},
}
FAST = {
    "dejavu.cos_shift_zeros": {},
    "h2o.frozen_cache_error": {"seeds": 256},
    "h2o.greedy_submodular": {"seeds": 8},
    "mobile.counts": {},
    "sink.softmax_variants": {"seeds": 4},
    "stream.cost": {"seeds": 3},
}


def verdicts_are_as_expected(topic, options):
    theory, _, name = topic.partition(".")
    claims = registry.all_claims(theories={theory}).values()
    mine = [c for c in claims if registry.home(c).removeprefix(f"jaxdyn/theories/{theory}/").removesuffix(".py") == name]
    results = jd.verify_many(mine, **options)
    assert {r.claim.id: r.verdict for r in results} == {c.id: c.expected for c in mine} != {}


@pytest.mark.thinned
@pytest.mark.parametrize("topic", FAST)
def test_fast_topics(topic):
    verdicts_are_as_expected(topic, FAST[topic])


@pytest.mark.slow
@pytest.mark.parametrize("topic", TOPICS)
def test_topics(topic):
    verdicts_are_as_expected(topic, TOPICS[topic])
