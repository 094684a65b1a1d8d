"""Parsers whose errors are sentences."""

import argparse

import pytest

from jaxdyn.cli.arguments import Parser, add_explore, add_models, add_probe, filled
from jaxdyn.engine.base.parsing import parse_seeds, parse_sets
from jaxdyn.errors import UsageError


def parsed(*words):
    parser = Parser(prog="jaxdyn")
    commands = parser.add_subparsers(dest="command", required=True, parser_class=Parser)
    add_explore(commands)
    add_models(commands)
    add_probe(commands)
    return parser.parse_args(words)


def test_an_error_is_a_sentence_that_names_the_help():
    with pytest.raises(UsageError, match=r"--nothing is no option of `jaxdyn probe` \(see `jaxdyn probe --help`\)"):
        parsed("probe", "model", "--nothing")


def test_options_of_a_probe():
    args = parsed("probe", "a", "b", "--only", "sinks")
    assert args.models == ["a", "b"] and args.only == "sinks" and args.tokens == "4096" and args.out is None and not args.json


@pytest.mark.parametrize("words", [("--only", "sinks", "--only", "heavy"), ("--only=sinks", "--tokens", "512", "--only", "heavy")])
def test_an_option_with_one_value_is_given_once(words):
    with pytest.raises(UsageError, match=r"--only is not allowed twice \(see `jaxdyn probe --help`\)"):
        parsed("probe", "a", *words)
    assert parsed("explore", "a", "--set", "x=1", "--set", "y=2").sets == ["x=1", "y=2"], "others add up"


def test_nothing_is_no_name():
    assert filled("x") == "x"
    with pytest.raises(argparse.ArgumentTypeError, match="it is empty"):
        filled(" ")


def test_options_of_an_exploration():
    args = parsed("explore", "toy.decay", "--set", "lr=0.1", "--set", "rate=1,2", "--no-browser")
    assert args.claim == "toy.decay" and args.host == "127.0.0.1" and args.port is None and args.no_browser
    assert parse_sets(args.sets) == {"lr": "0.1", "rate": ["1", "2"]} and parse_seeds("4:8") == range(4, 8)
