"""A hash of Python code without its docstrings, comments and layout, the modules that it imports, and what a function reaches.

The hash is of the instructions to which Python compiles the code. What a function reaches (:func:`reached`) is users' own code and
the values that it uses, at any depth; functions and classes of libraries are known by their names and the library's version.
"""

from __future__ import annotations

import ast
import contextlib
import copyreg
import dataclasses
import dis
import functools
import hashlib
import importlib.metadata
import importlib.util
import re
import sys
import threading
import types
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePath
from typing import Any

import numpy as np

from jaxdyn.engine.base.failure import PACKAGE, installed
from jaxdyn.homes import home_of

__all__ = ["Unfollowed", "code_hash", "imports_of", "instructions_hash", "reached"]

PLAIN = (type(None), bool, int, float, complex, str, bytes, type(...), range, slice)
LOCKS = (type(threading.Lock()), type(threading.RLock()))  # which hold no content
HIDING = {"eval", "exec", "__import__"}  # functions of Python's that reach what code does not mention
LOADING = {"import_module", "run_path", "run_module"}  # and of its modules
USER_FILE = re.compile(r"^(jaxdyn_user_.*)_[0-9a-f]{12}$")  # the name of a user's file ends with a hash of its content
LOOKING = {"getattr", "vars", "globals", "attrgetter", "__dict__"}  # reach what modules have by names that code does not mention
COMPILED = ("ctypes", "_ctypes", "cffi", "_cffi_backend")  # libraries whose objects are users' compiled code
MADE = {  # by Python in classes, or of no effect on what they do
    *("__module__", "__doc__", "__dict__", "__weakref__", "__annotations__", "__qualname__", "__firstlineno__", "__slots__"),
    *(
        "__static_attributes__",
        "__dataclass_params__",
        "__dataclass_fields__",
        "__match_args__",
        "__abstractmethods__",
        "_abc_impl",
    ),
    *("__annotate_func__", "__annotations_cache__", "__parameters__", "__orig_bases__", "hints", "ranges"),
}


def code_hash(content: bytes) -> str:
    """Hash of the code of a module with this content: twenty hexadecimal digits."""
    tree = ast.parse(content)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module) and _is_text(node.body[:1]):
            node.body = node.body[1:] or [ast.Pass()]
    for node in ast.walk(tree):  # Python compiles some lines into its instructions, from 3.13 on those of classes
        if isinstance(node, ast.expr | ast.stmt | ast.arg | ast.keyword | ast.alias | ast.excepthandler | ast.pattern):
            node.lineno = node.end_lineno = 1
            node.col_offset = node.end_col_offset = 0
    return instructions_hash(compile(tree, "", "exec", dont_inherit=True))


def instructions_hash(code: types.CodeType) -> str:
    """Hash of the instructions, names and constants of compiled code: twenty hexadecimal digits."""
    return hashlib.sha256(repr(_facts(code)).encode()).hexdigest()[:20]


def _is_text(statements: list[ast.stmt]) -> bool:
    """Whether a body begins with a docstring."""
    return any(isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant) and isinstance(s.value.value, str) for s in statements)


def _facts(code: types.CodeType) -> tuple[Any, ...]:
    """Instructions, names and constants of compiled code, without line numbers."""
    constants = tuple(_facts(c) if isinstance(c, types.CodeType) else _constant(c) for c in code.co_consts)
    names = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
    return code.co_code, code.co_exceptiontable, code.co_flags, code.co_argcount, code.co_kwonlyargcount, names, constants


def _constant(value: Any) -> str:
    """A constant as text; sets are sorted, since their order differs between processes."""
    if isinstance(value, frozenset):
        return f"set {sorted(map(_constant, value))}"
    return f"({', '.join(map(_constant, value))})" if isinstance(value, tuple) else repr(value)


def imports_of(content: bytes, package: str) -> Iterator[str]:
    """Modules and names of jaxdyn that code imports, at any depth; for ``import jaxdyn as jd``, the homes of ``jd.…``."""
    tree, fronts = ast.parse(content), set[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            fronts |= {alias.asname or alias.name for alias in node.names if alias.name == "jaxdyn"}
            yield from (alias.name for alias in node.names if alias.name.startswith("jaxdyn."))
        elif isinstance(node, ast.ImportFrom):
            outer = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*outer, *filter(None, [node.module])])
            if base == "jaxdyn":
                yield from (home_of(alias.name) for alias in node.names)
            elif base.startswith("jaxdyn."):
                yield from (base, *(f"{base}.{alias.name}" for alias in node.names))
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in fronts:
            yield home_of(node.attr)


class Unfollowed(Exception):
    """Something that a function reaches, in words, whose content cannot be known."""


class _Walk:
    """What was reached so far: content by place, and where to look for names that are mentioned anywhere."""

    def __init__(self) -> None:
        self.facts: dict[str, str] = {}
        self.met: dict[int, tuple[str, Any]] = {}  # places by objects, which are held, or another could get its number
        self.taken: dict[str, int] = {}
        self.names: set[str] = set()
        self.modules: dict[str, types.ModuleType] = {}

    def enter(self, place: str, value: Any) -> str:
        """Note an object as met, with a name that no other one has."""
        number = self.taken[place] = self.taken.get(place, -1) + 1
        name = f"{place}#{number}" if number else place
        self.met[id(value)] = name, value
        return name


def reached(function: Any, given: type | None = None) -> dict[str, str]:
    """The content, as hashes, of all of users' own code and values that a callable reaches, by the places where it finds them.

    Globals, helpers, closures, defaults, arguments of partial functions, wrapped functions, classes, and the state of objects. Of a
    module, it is what has a name that any reached function mentions.

    Args:
        function: any callable.
        given: class of an object that it is called with: its methods are reached if their names are mentioned.

    Raises:
        Unfollowed: something is compiled code of no library, or cannot be looked into.
    """
    walk = _Walk()
    try:
        walk.facts["function"] = _fact(function, "function", walk)
        while len(walk.facts) != _look_up(walk, given):
            pass
    except Unfollowed:
        raise
    except RecursionError:
        raise Unfollowed("objects that hold too many others, one within the other") from None
    except Exception as error:  # of an object that is looked into
        raise Unfollowed(f"an object that raises {type(error).__name__}: {error}") from None
    return {place: hashlib.sha256(text.encode(errors="replace")).hexdigest() for place, text in walk.facts.items()}


def _look_up(walk: _Walk, given: type | None) -> int:
    """Follow what has a mentioned name in modules, and in a given class; returns how many facts there were before."""
    before = len(walk.facts)
    for name, module in sorted(walk.modules.items()):
        every = [one for one in vars(module) if not one.startswith("__")] if walk.names & LOOKING else walk.names
        for one in sorted(vars(module).keys() & every):
            _note_global(name, one, vars(module)[one], walk)
    for cls in () if given is None else given.__mro__:
        if _home(cls.__module__) == "":
            fields = getattr(cls, "__dataclass_fields__", {})
            for one in sorted(vars(cls).keys() & walk.names - fields.keys() - MADE):
                _note_global(f"{cls.__module__}:{cls.__qualname__}", one, vars(cls)[one], walk)
    return before


def _note_global(home: str, name: str, value: Any, walk: _Walk) -> None:
    place = f"{_title(home)}:{name}"
    if place not in walk.facts:
        walk.facts[place] = ""  # in case it reaches itself
        walk.facts[place] = _fact(value, place, walk)


def _title(module: str) -> str:
    return USER_FILE.sub(r"\1", module)


def _fact(value: Any, place: str, walk: _Walk) -> str:
    """A value as text that is the same in every process."""
    if type(value) in PLAIN:
        return repr(value)
    if isinstance(value, types.ModuleType):
        return _module(value, walk)
    if id(value) in walk.met:
        return f"<{walk.met[id(value)][0]}>"
    if (named := _of_library(value, walk)) is not None:
        return named
    if isinstance(value, type):
        return _class(value, walk)
    if isinstance(value, types.FunctionType):
        return _function(value, walk)
    return _value(value, walk.enter(place, value), walk)


def _value(value: Any, place: str, walk: _Walk) -> str:
    """A value that is neither a function nor a class of its own."""

    def inner(*parts: Any) -> str:
        return ", ".join(_fact(part, f"{place}[{i}]", walk) for i, part in enumerate(parts))

    match value:
        case types.MethodType():
            return f"method({inner(value.__func__, value.__self__)})"
        case functools.partial():
            return f"partial({inner(value.func, value.args, value.keywords, vars(value))})"
        case staticmethod() | classmethod():
            return f"{type(value).__name__}({inner(value.__func__)})"
        case property():
            return f"property({inner(value.fget, value.fset, value.fdel)})"
        case functools.cached_property():
            return f"cached({inner(value.func)})"
        case PurePath() | np.dtype():
            return repr(value)
        case np.generic():
            return f"{value.dtype} {value!r}"
    kind = type(value)
    if kind in LOCKS or isinstance(value, types.MemberDescriptorType | types.GetSetDescriptorType):
        return kind.__name__
    if kind in (list, tuple):
        return f"{kind.__name__}({inner(*value)})"
    if kind in (dict, types.MappingProxyType):
        return f"dict({inner(*(part for item in value.items() for part in item))})"
    if kind in (set, frozenset):
        return f"set({inner(*sorted(value, key=_order))})"
    if kind is np.ndarray or kind is np.memmap or (_home(kind.__module__).startswith("jax") and hasattr(value, "__array__")):
        return _array(value, place, walk)
    if callable(wrapped := getattr(value, "__wrapped__", None)) and _home(kind.__module__):  # a cache, or jit
        return f"{kind.__name__}({inner(wrapped)})"
    if isinstance(value, types.BuiltinMethodType | types.MethodWrapperType) and not isinstance(
        value.__self__, types.ModuleType | None
    ):
        return f"{value.__qualname__} of {inner(value.__self__)}"
    return _object(value, place, walk)


def _order(value: Any) -> str:
    """By what the elements of a set are sorted."""
    return f"{type(value).__qualname__} {getattr(value, '__qualname__', value)!r}"


def _array(value: Any, place: str, walk: _Walk) -> str:
    try:
        array = np.asarray(value)
    except Exception:
        raise Unfollowed(f"an array of the type {type(value).__qualname__}") from None
    if array.dtype.hasobject:
        return f"array({array.shape}, {_fact(array.tolist(), place, walk)})"
    return f"array({array.dtype}, {array.shape}, {hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()})"


def _object(value: Any, place: str, walk: _Walk) -> str:
    """An object by its class, and by what pickle would store of it."""
    kind = type(value)
    if kind.__module__.partition(".")[0] in COMPILED or isinstance(value, types.BuiltinFunctionType):
        raise Unfollowed(f"the compiled code {getattr(value, '__qualname__', getattr(value, '__name__', kind.__name__))}")
    try:
        made = copyreg.dispatch_table[kind](value) if kind in copyreg.dispatch_table else value.__reduce_ex__(2)
    except Exception:  # whatever the author of a class raises
        raise Unfollowed(f"an object of the class {kind.__qualname__}") from None
    if isinstance(made, str):  # a name in its module
        raise Unfollowed(f"the compiled code {made}")
    function, args, state, *items = (*made, None, None, None)[:5]
    if isinstance(state, Mapping):
        lazy = functools.cached_property  # may be there or not
        own = {str(k): v for k, v in state.items() if not isinstance(getattr(kind, str(k), None), lazy)}
        for name in own:
            walk.facts[f"{place}.{name}"] = _fact(own[name], f"{place}.{name}", walk)
        state = sorted(own)
    parts = [kind, function, args, state, *(None if one is None else list(one) for one in items)]
    return f"object({', '.join(_fact(part, f'{place}({i})', walk) for i, part in enumerate(parts))})"


def _class(cls: type, walk: _Walk) -> str:
    """A class of a user's own, by its bases and members."""
    place = walk.enter(f"class {_title(cls.__module__)}:{cls.__qualname__}", cls)
    walk.facts[place] = f"class({', '.join(_fact(one, place, walk) for one in (type(cls), *cls.__bases__))})"
    for name, value in vars(cls).items():
        if name not in MADE:
            walk.facts[f"{place}.{name}"] = _fact(value, f"{place}.{name}", walk)
    for field in dataclasses.fields(cls) if dataclasses.is_dataclass(cls) else ():
        walk.facts[f"{place}.{field.name}()"] = _fact((field.default, field.default_factory), f"{place}.{field.name}()", walk)
    return f"<{place}>"


def _function(function: types.FunctionType, walk: _Walk) -> str:
    """A function by its instructions and all that it uses; one of a library, with a user's in it, by its name and what is in it."""
    code, place = function.__code__, walk.enter(f"function {_title(function.__module__)}:{function.__qualname__}", function)
    kinds = getattr(function, "registry", None)
    if isinstance(kinds, types.MappingProxyType):  # of functools.singledispatch
        walk.facts[place] = _fact(dict(kinds), f"{place}.registry", walk)
        return f"<{place}>"
    inside = dict(zip(code.co_freevars, map(_content, function.__closure__ or ()), strict=True))
    inside |= {"defaults": function.__defaults__, "keywords": function.__kwdefaults__}
    inside |= {name: value for name, value in vars(function).items() if name != "__wrapped__"}
    for name, value in inside.items():
        walk.facts[f"{place}.{name}"] = _fact(value, f"{place}.{name}", walk)
    if home := _home_of_code(function):
        walk.facts[place] = f"{home} {function.__qualname__} {_version(home, walk)}"
        return f"<{place}>"
    # code of a user's own
    bare = code.replace(co_consts=(None, *code.co_consts[1:])) if code.co_consts[:1] == (function.__doc__,) else code
    walk.facts[place] = instructions_hash(bare)
    names = {name for one in _codes(code) for name in one.co_names}
    called = {name for one in _codes(code) for name in _globals_of(one)} - function.__globals__.keys()
    if hiding := called & HIDING | names & LOADING:
        raise Unfollowed(f"what {min(hiding)}() in {function.__qualname__} gives")
    walk.names |= names
    if names & {"globals"} and isinstance(module := sys.modules.get(function.__module__), types.ModuleType):
        walk.modules[module.__name__] = module
    for name in sorted(names & function.__globals__.keys()):
        _note_global(str(function.__globals__.get("__name__")), name, function.__globals__[name], walk)
    for name in dict.fromkeys(name for one in _codes(code) for name in _imported(one, function.__globals__)):
        _import(name, walk)
    return f"<{place}>"


def _content(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not assigned yet
        return None


def _globals_of(code: types.CodeType) -> Iterator[str]:
    yield from (step.argval for step in dis.get_instructions(code) if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"))


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """A function's code and that of all functions in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def _imported(code: types.CodeType, globals_: Mapping[str, Any]) -> Iterator[str]:
    """The modules that a function's code imports, with the packages around them."""
    steps, name = list(dis.get_instructions(code)), ""
    for i, step in enumerate(steps):
        if step.opname == "IMPORT_NAME":
            level = next((one.argval for one in steps[max(0, i - 2) : i] if isinstance(one.argval, int) and one.opname != "NOP"), 0)
            package = globals_.get("__package__") or ""
            name = importlib.util.resolve_name("." * level + step.argval, package) if level else step.argval
            parts = name.split(".")
            yield from (".".join(parts[: j + 1]) for j in range(len(parts)))
        elif step.opname == "IMPORT_FROM":  # of the last one
            yield f"{name}.{step.argval}"  # a module in a package, perhaps


def _import(name: str, walk: _Walk) -> None:
    """Follow a module that a function imports; those of libraries are not imported here."""
    if home := _home_of_import(name.partition(".")[0]):
        _version(home, walk)
        return
    with contextlib.suppress(Exception):  # as it will be where the function imports it
        importlib.import_module(name)
    walk.facts[f"import {name}"] = _module(sys.modules[name], walk) if name in sys.modules else "missing"


def _home_of_import(top: str) -> str:
    """As :func:`_home`, of a module that may not be imported yet."""
    if top in sys.modules:
        return _home(top)
    spec = importlib.util.find_spec(top)
    if spec is None:
        return ""
    place = spec.origin or next(iter(spec.submodule_search_locations or ()), "")
    return "python" if place in ("built-in", "frozen") else library_of(place, top)


def _module(module: types.ModuleType, walk: _Walk) -> str:
    """A module by its name; names in it are looked up if it is a user's own."""
    if home := _home(module.__name__):
        return f"module {module.__name__} {_version(home, walk)}"
    if (getattr(module, "__file__", None) or ".py").endswith((".so", ".pyd", ".dylib")):
        raise Unfollowed(f"the compiled module {module.__name__}")
    walk.modules[module.__name__] = module
    return f"module {_title(module.__name__)}"


def _of_library(value: Any, walk: _Walk) -> str | None:
    """A function or class that a library has under its name, as text; None for anything else."""
    if isinstance(value, np.ufunc):
        special = sys.modules.get("scipy.special", np)
        if not any(getattr(module, value.__name__, None) is value for module in (np, special)):
            raise Unfollowed("a function that numpy.frompyfunc made")
        return f"ufunc {value.__name__} {_version('numpy', walk)}"
    owner = (
        getattr(value, "__objclass__", None)
        if isinstance(value, types.MethodDescriptorType | types.WrapperDescriptorType)
        else value
    )
    name, module = getattr(value, "__qualname__", getattr(value, "__name__", None)), getattr(owner, "__module__", None)
    if not (callable(value) and isinstance(name, str)):
        return None
    if module is None and isinstance(value, types.BuiltinFunctionType) and isinstance(value.__self__, types.ModuleType):
        module = value.__self__.__name__
    if not isinstance(module, str) or not (home := _home(module)):
        return None
    found = functools.reduce(lambda one, part: getattr(one, part, None), name.split("."), sys.modules.get(module))
    if found is not value and not isinstance(value, type | types.MethodDescriptorType | types.WrapperDescriptorType):
        return None
    return f"{module}.{name} {_version(home, walk, module)}"


def _home_of_code(function: types.FunctionType) -> str:
    file = function.__code__.co_filename
    return _home(str(function.__globals__.get("__name__"))) if file.startswith("<") else library_of(file, "")


def _home(module: str) -> str:
    """The library of a module, "python" or "jaxdyn"; empty for a user's own."""
    top, found = module.partition(".")[0], sys.modules.get(module)
    file = getattr(found, "__file__", None)
    if top in ("__main__", "__mp_main__"):  # also a prompt that a library gives
        return ""
    if isinstance(file, str):
        return library_of(file, module)
    if found is None:  # a class that says it is of a module which is not here
        return "python" if top in sys.stdlib_module_names else ""
    if any(installed(Path(place)) for place in getattr(found, "__path__", ())):
        return top
    return "python" if top in sys.stdlib_module_names or top == "builtins" else ""


@functools.cache
def library_of(file: str, module: str = "") -> str:
    """The library of a file, "python" or "jaxdyn"; empty for a user's own."""
    path = Path(file)
    if path.is_relative_to(PACKAGE):
        return PACKAGE.name
    if not installed(path):
        return ""
    inside = [i for i, part in enumerate(path.parts) if part in ("site-packages", "dist-packages")]
    if not inside:
        return "python"
    return module.partition(".")[0] or path.parts[inside[-1] + 1].partition(".")[0]


def _version(home: str, walk: _Walk, module: str = "") -> str:
    """Note the version of a library; of a module of jaxdyn, its code."""
    if home == PACKAGE.name and module:
        file = getattr(sys.modules.get(module), "__file__", None)
        walk.facts[f"code {module}"] = code_hash(Path(file).read_bytes()) if file else ""
    walk.facts[f"version {home}"] = version_of(home)
    return home


@functools.cache
def version_of(home: str) -> str:
    """The version of a library.

    Raises:
        Unfollowed: it has none.
    """
    if home == "python":
        return repr((sys.implementation.name, tuple(sys.version_info)))
    try:
        return importlib.metadata.version(home)
    except importlib.metadata.PackageNotFoundError:  # it is distributed under another name
        if names := importlib.metadata.packages_distributions().get(home):
            return repr([(name, importlib.metadata.version(name)) for name in names])
    found = getattr(sys.modules.get(home), "__version__", None)
    if not isinstance(found, str):
        raise Unfollowed(f"the library {home}, which has no version")
    return found
