"""The list of attacks."""

from jaxdyn.attacks.listed import ATTACKS


def test_attacks_have_names_of_their_own_and_ask_a_question():
    names = [attack.name for attack in ATTACKS]
    assert len(set(names)) == len(names) >= 9
    assert all(attack.asks.endswith("?") and ":" not in attack.name for attack in ATTACKS)


def test_what_needs_new_runs_is_asked_last_but_for_words_and_luck():
    assert {attack.name for attack in ATTACKS if attack.costly} == {"no learning", "neighbours", "more time", "luck"}
