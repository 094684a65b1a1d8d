"""The digest of a claim: a hash of its judge, its controls and its rivals, and of the functions and values that they use.

A stored result with another digest was judged by other means; it is shown, and marked as stale. Documentation, layout, names of
files and comments make no difference, nor does marking a rival as the mechanism switched off.

Functions and classes of theories and of users are hashed by their source, and so are those of installed packages that offer claims;
those of the engine and of libraries by their names, with a version where jaxdyn itself does not need the library. The source is
that of the code which is loaded: where its file has changed since, the instructions are hashed.
Objects are hashed by their state, which is what pickle would store of them. Where there is none, as of a lock or a generator, no
digest is known (:func:`why_unknown`).
"""

from __future__ import annotations

import ast
import collections
import contextlib
import copyreg
import dataclasses
import enum
import functools
import hashlib
import importlib.metadata
import importlib.util
import os
import sys
import types
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from jaxdyn.engine.base.failure import installed
from jaxdyn.engine.base.syntax import Unfollowed, library_of, version_of
from jaxdyn.engine.claims.claim import Claim, Control
from jaxdyn.engine.claims.edits import Off

__all__ = ["content", "digest", "whole_digest", "why_unknown", "offered"]

ENGINE = Path(__file__).parents[2]  # its functions, except in theories, are identified by their names
ADDED = ("hints", "ranges", "swept_fields", "static_fields", "code_names")  # by jd.setting, from annotations and fields
CONTAINERS = (dict, list, tuple, types.MappingProxyType)
PLAIN = (type(None), bool, int, float, complex, str, bytes)  # their subclasses may have more than their values
REACHING = {  # names of what gets at values that the code does not mention
    *("globals", "eval", "exec", "__import__", "import_module", "open", "read_text", "read_bytes", "memmap"),
    *("loadtxt", "genfromtxt", "fromfile", "open_dataset", "load_dataset", "open_dataarray", "load_dataarray", "read_csv"),
    *("load", "loadmat", "fromregex", "open_memmap", "open_mfdataset", "open_zarr", "File", "netcdf_file", "urlopen"),
    *("read_parquet", "read_excel", "read_json", "read_hdf", "read_pickle", "read_table", "read_sql", "read_feather", "read_xml"),
    *("environ", "getenv", "connect", "Popen", "check_output", "input", "stdin", "listdir", "scandir", "iterdir", "glob", "rglob"),
}
NEEDED = {  # libraries that claims use besides their own code: a name is enough, since what they compute stays what it is
    *("python", "jaxdyn", "jax", "jaxlib", "numpy", "scipy", "xarray", "pandas", "optax", "diffrax", "equinox", "flax", "chex"),
    *("jaxtyping", "lineax", "optimistix", "networkx", "matplotlib", "mpmath", "sympy"),
}
SMALL = 10_000  # an array of at most so many numbers is hashed by value, a larger one by its bytes


class _Unknown(Exception):
    """A value whose content cannot be hashed."""


def digest(claim: Claim) -> str | None:
    """The digest of a claim: sixteen hexadecimal digits; None if something that it uses cannot be hashed."""
    try:
        return _digest(claim)
    except _Unknown:
        return None


def whole_digest(claim: Claim) -> str | None:
    """A hash of all by which a claim is decided, described and drawn, to tell whether another process has the same; None as there.

    Left out are its trial and grids, which runs are known by.
    """
    try:
        fields = {f.name: getattr(claim, f.name) for f in dataclasses.fields(claim) if f.name not in ("trial", "quick", "paper")}
        return _hashed(list(fields.items()))
    except _Unknown:
        return None


def content(value: Any) -> str | None:
    """A hash of an object as it is in this process, with the code of its functions; None if something in it cannot be hashed."""
    try:
        return _hashed([value])
    except _Unknown:
        return None


def why_unknown(claim: Claim) -> str | None:
    """What the digest of a claim is not known for, in words; None if it is known."""
    try:
        _digest(claim)
    except _Unknown as unknown:
        return str(unknown)
    return None


def _digest(claim: Claim) -> str:
    return _hashed([claim.judge, dict(claim.controls), dict(claim.rivals)])


def _hashed(values: Sequence[Any]) -> str:
    seen: dict[int, str] = {}
    try:
        parts = [_fact(value, seen) for value in values]
    except RecursionError:
        raise _Unknown("an object that holds too many others, one within the other") from None
    except (AttributeError, TypeError, ValueError) as error:  # classes may answer to any name
        raise _Unknown(f"an object that cannot be read ({type(error).__name__}: {error})") from None
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


def _fact(value: Any, seen: dict[int, str]) -> str:
    """A value as text that is the same in every process."""
    match value:
        case Off():
            return _fact(value.rival, seen)
        case Control():
            return f"control({_fact(value.breach, seen)}, {value.diverges}, {value.every_seed})"
        case functools.partial():
            own = _attributes(value, seen)
            return f"partial({_fact(value.func, seen)}, {_fact(value.args, seen)}, {_fact(value.keywords, seen)}{own})"
        case types.FunctionType():
            return _function(value, seen)
        case enum.Enum():
            return f"enum({type(value).__qualname__}, {value.name}, {_fact(value.value, seen)})"
        case np.generic():
            return repr(value) if isinstance(value, float | complex | str | bytes) else _array(np.asarray(value), seen)
        case np.ndarray():
            return _array_of_kind(value, seen)
    if type(value) in CONTAINERS:
        return "..." if id(value) in seen else _items(value, seen)  # a container may contain itself
    if type(value) in (set, frozenset):
        return f"set({sorted(_fact(v, seen) for v in value)})"
    if type(value) in PLAIN:
        return repr(value)
    match value:
        case types.MethodType():
            return f"method({_fact(value.__func__, seen)}, {_fact(value.__self__, seen)})"
        case types.ModuleType():
            return "module"
        case type():
            return _class(value, seen)
    return _object(value, seen)


def _array_of_kind(array: np.ndarray[Any, Any], seen: dict[int, str]) -> str:
    """An array of NumPy's or of a class of its own: a mask, and what a subclass adds, count too."""
    words = _array(np.asarray(array), seen)
    if type(array) is np.ndarray:
        return words
    masked = isinstance(array, np.ma.MaskedArray)
    mask = (_array(np.ma.getmaskarray(array), seen), repr(getattr(array, "fill_value", None))) if masked else ()
    return f"{_class(type(array), seen)}({words}, {mask}{'' if masked else _attributes(array, seen)})"


def _attributes(value: Any, seen: dict[int, str]) -> str:
    """What an author has attached to a function or an array, apart from the function that it wraps."""
    own = {name: one for name, one in getattr(value, "__dict__", {}).items() if name != "__wrapped__"}
    return f", {_items(own, seen)}" if own else ""


def _array(array: np.ndarray[Any, Any], seen: dict[int, str]) -> str:
    """An array by its values, or by a hash of them."""
    if array.dtype.hasobject:
        return f"array({array.shape}, {_fact(array.tolist(), seen)})"
    if array.size <= SMALL and array.dtype.kind in "biufcSU":
        return f"array({array.dtype}, {array.tolist()!r})"
    return f"array({array.dtype}, {array.shape}, {hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()})"


def _object(value: Any, seen: dict[int, str]) -> str:
    """An object: a labelled array by its values, a function in a wrapper by that function, anything else by its state."""
    kind = type(value)
    library = kind.__module__.partition(".")[0]
    if library in ("jax", "jaxlib") and hasattr(value, "__array__"):
        return _array(np.asarray(value), seen)
    if library == "xarray" and hasattr(value, "dims"):
        variables = value.variables if hasattr(value, "variables") else {"": value, **getattr(value, "coords", {})}
        attrs = [dict(one.attrs) for one in (value, *variables.values()) if one.attrs]
        words = f"{ {str(name): (one.dims, _fact(one.values, seen)) for name, one in variables.items()} }"
        return f"{kind.__name__}({words}{', ' + _fact(attrs, seen) if attrs else ''})"
    if library in ("jax", "jaxlib", "functools") and callable(wrapped := getattr(value, "__wrapped__", None)):  # a cache, or jit
        return f"{kind.__name__}({_fact(wrapped, seen)})"
    if isinstance(value, np.ufunc):
        return _ufunc(value)
    owner = getattr(value, "__self__", None)
    if isinstance(value, types.BuiltinMethodType | types.MethodWrapperType) and not isinstance(owner, types.ModuleType | None):
        return f"{kind.__name__} {value.__qualname__} of {_fact(owner, seen)}"
    if callable(value) and hasattr(value, "__qualname__") and not _is_own(kind):  # of a library
        return f"{kind.__name__} {value.__qualname__}"
    return _state(value, seen)


def _ufunc(function: np.ufunc) -> str:
    """A universal function by its name in NumPy or SciPy; one that was made of a Python function has none."""
    special = sys.modules.get("scipy.special", np)
    if not any(getattr(module, function.__name__, None) is function for module in (np, special)):
        raise _Unknown("a function that numpy.frompyfunc made")
    return f"ufunc {function.__name__}"


def _state(value: Any, seen: dict[int, str]) -> str:
    """An object by its class, and by what pickle would store of it."""
    if id(value) in seen:
        return "..."
    try:
        made = copyreg.dispatch_table[type(value)](value) if type(value) in copyreg.dispatch_table else value.__reduce_ex__(2)
    except Exception:  # whatever the author of a class raises
        raise _Unknown(f"an object of the class {type(value).__qualname__}") from None
    if isinstance(made, str):  # a name in its module
        return f"{type(value).__name__} {made}"
    seen[id(value)] = "..."
    function, args, state, *items = (*made, None, None, None)[:5]
    if isinstance(state, dict):  # values that are calculated when they are first asked for may be there or not
        state = {k: v for k, v in state.items() if not isinstance(vars(type(value)).get(k), functools.cached_property)}
    parts = [function, args, state, *(None if one is None else list(one) for one in items)]
    words = f"{type(value).__name__}({', '.join(_fact(part, seen) for part in parts)})"
    del seen[id(value)]
    return words


def _class(cls: type, seen: dict[int, str]) -> str:
    """Hash of a class's bases, functions and values; for classes of the engine or a library, their name."""
    made = type(cls)  # its own metaclass, if it has one
    words = f"{_class(made, seen) if _is_own(made) else made.__name__} {cls.__qualname__}"
    if id(cls) in seen:
        return seen[id(cls)]
    if not _is_own(cls):
        file = getattr(sys.modules.get(cls.__module__), "__file__", None)
        return words + (_version(file) if file else "")
    seen[id(cls)] = words  # in case it mentions itself
    members = [f"{name}={_fact(value, seen)}" for name, value in _members(cls)]
    bases = [_fact(base, seen) for base in cls.__bases__]
    seen[id(cls)] = f"{words} {hashlib.sha256(repr((bases, sorted(members))).encode()).hexdigest()}"
    return seen[id(cls)]


def _is_own(cls: type) -> bool:
    """Whether a class is a theory's or a user's own."""
    file = getattr(sys.modules.get(cls.__module__), "__file__", None)
    if file is None:
        return cls.__module__ == "__main__" or cls.__module__.partition(".")[0] not in sys.stdlib_module_names
    return _followed(file)


def _members(cls: type) -> Iterator[tuple[str, Any]]:
    """Names and values of a class's own functions and values, without those that Python, ``dataclass`` or ``jd.setting`` adds."""
    named = issubclass(cls, tuple) and hasattr(cls, "_fields")
    added = ADDED if hasattr(cls, "swept_fields") else ()
    private = ("__", "_abc_", *(["_"] if named or issubclass(cls, enum.Enum) else []))
    for name, value in vars(cls).items():
        hidden, functions = name in added or name.startswith(private), _functions_of(value)
        for function in functions:
            file = function.__code__.co_filename
            if not hidden or (_followed(file) and file != "<string>"):
                yield name, function
        if not (hidden or functions or isinstance(value, types.MemberDescriptorType | types.GetSetDescriptorType)):
            yield name, value
    if named:
        yield "fields", (cls._fields, cls._field_defaults)  # type: ignore[attr-defined]
    if dataclasses.is_dataclass(cls):
        makers = {field.name: field.default_factory for field in dataclasses.fields(cls)}
        yield "fields", {name: None if maker is dataclasses.MISSING else maker for name, maker in makers.items()}


def _functions_of(value: Any) -> list[types.FunctionType]:
    """The functions behind a method or a property of a class; none if it is anything else."""
    found: list[Any] = [value]
    match value:
        case staticmethod() | classmethod():
            found = [value.__func__]
        case property():
            found = [value.fget, value.fset, value.fdel]
        case functools.cached_property():
            found = [value.func]
    return [one for one in found if isinstance(one, types.FunctionType)]


def _items(value: Mapping[Any, Any] | Sequence[Any], seen: dict[int, str]) -> str:
    """The content of a dict, list or tuple as text."""
    seen[id(value)] = "..."
    if isinstance(value, Mapping):
        words = "{" + ", ".join(f"{_fact(k, seen)}: {_fact(v, seen)}" for k, v in value.items()) + "}"
    else:
        words = "[" + ", ".join(_fact(v, seen) for v in value) + "]"
    del seen[id(value)]
    return words


def _function(function: types.FunctionType, seen: dict[int, str]) -> str:
    """Hash of a function's source and of all that it uses; for functions of the engine or a library, their name."""
    if id(function) in seen:
        return seen[id(function)]
    if isinstance(kinds := getattr(function, "registry", None), types.MappingProxyType):  # of functools.singledispatch
        return f"dispatch({_items(kinds, seen)})"
    if not _followed(function.__code__.co_filename):
        if function.__closure__ and not Path(function.__code__.co_filename).is_relative_to(ENGINE) and _is_importable(function):
            return f"{function.__qualname__}{_version(function.__code__.co_filename)}"  # decorated by its library
        closed = [_fact(value, seen) for _, value in _enclosed(function)]
        return f"{function.__qualname__}{_version(function.__code__.co_filename)}{closed}"
    seen[id(function)] = function.__qualname__  # in case it calls itself
    if reaching := mentioned(function.__code__) & REACHING - function.__globals__.keys():
        raise _Unknown(f"a function that uses {min(reaching)}()")
    used = [f"{name}={_fact(value, seen)}" for name, value in (*_enclosed(function), *_mentioned(function))]
    words = f"{_source(function)} {sorted(used)}{_attributes(function, seen)}"
    seen[id(function)] = hashlib.sha256(words.encode()).hexdigest()
    return seen[id(function)]


def _is_importable(function: types.FunctionType) -> bool:
    """Whether a function is what has its name in its module."""
    return vars(sys.modules.get(function.__module__, types)).get(function.__qualname__) is function


def _followed(file: str) -> bool:
    """Whether a file is a theory's or a user's own, so that its functions are hashed by their source."""
    path = Path(file)
    if path.is_relative_to(ENGINE):
        return "theories" in path.relative_to(ENGINE).parts
    return not installed(path) or any(path.is_relative_to(place) for place in offered())


@functools.cache
def offered() -> tuple[str, ...]:
    """Folders and files of installed packages that offer claims; their import is not needed."""
    places: list[str] = []
    for point in importlib.metadata.entry_points(group="jaxdyn.claims"):
        with contextlib.suppress(ImportError, ValueError):
            spec = importlib.util.find_spec(point.module.partition(".")[0])
            places += (spec.submodule_search_locations or [str(spec.origin)]) if spec is not None else []
    return tuple(places)


def _version(file: str) -> str:
    """The version of a library that jaxdyn does not need, in words; empty for others."""
    library = library_of(file)
    if not library or library in NEEDED:
        return ""
    try:
        return f" of {library} {version_of(library)}"
    except Unfollowed as unknown:
        raise _Unknown(str(unknown)) from None


def _enclosed(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """Names and values of a function's closure, and its defaults."""
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:  # not assigned yet
            yield name, None
    yield "defaults", function.__defaults__
    yield "keywords", function.__kwdefaults__


def _mentioned(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """Names and values that a function's code mentions, of its module and of modules of theories."""
    names = mentioned(function.__code__)
    for name in sorted(names & function.__globals__.keys()):
        value = function.__globals__[name]
        if isinstance(value, types.ModuleType):
            yield from _of_module(name, value, names, ())
        else:
            yield name, value


def _of_module(
    prefix: str, module: types.ModuleType, names: frozenset[str], within: tuple[types.ModuleType, ...]
) -> Iterator[tuple[str, Any]]:
    """Names and values of a module that are mentioned, and of modules in it; a folder without a file of its own is one, too."""
    file = getattr(module, "__file__", None)
    followed = _followed(file) if file else hasattr(module, "__path__")
    if module in within or not followed:
        return
    for name in sorted(names & vars(module).keys()):
        value = vars(module)[name]
        if isinstance(value, types.ModuleType):
            yield from _of_module(f"{prefix}.{name}", value, names, (*within, module))
        else:
            yield f"{prefix}.{name}", value


def mentioned(code: types.CodeType) -> frozenset[str]:
    """Names and attributes that a function's code mentions."""
    inner = [mentioned(constant) for constant in code.co_consts if isinstance(constant, types.CodeType)]
    return frozenset(code.co_names).union(*inner)


def _source(function: types.FunctionType) -> str:
    """The syntax of a function without its documentation; its instructions if its file does not hold it (any more)."""
    code, instructions = function.__code__, _instructions(function.__code__)
    known = [one for one in _functions(code.co_filename) if one.name == code.co_name and instructions in one.instructions]
    found = [one for one in known if one.line == code.co_firstlineno] or known[:1]  # it may have moved within the file
    return found[0].syntax if found else instructions


class _Written(NamedTuple):
    """What a file says under a name at a line: the syntax of the functions, and the instructions that they are compiled to."""

    name: str
    line: int
    syntax: str
    instructions: frozenset[str]


def _instructions(code: types.CodeType) -> str:
    """The instructions of a function, and the names and constants in them."""
    return repr((code.co_code, code.co_names, [_constant(one) for one in code.co_consts]))


def _constant(value: Any) -> str:
    """A constant of a code as text that is the same in every process, which the order of a set is not."""
    if isinstance(value, types.CodeType):
        return _instructions(value)
    return f"set({sorted(map(_constant, value))})" if isinstance(value, frozenset) else repr(value)


def _functions(file: str) -> tuple[_Written, ...]:
    """All functions and lambdas of a file as it is now."""
    try:
        found = os.stat(file)
        return _functions_as_of(file, found.st_mtime_ns, found.st_size)
    except OSError:
        return ()


@functools.cache
def _functions_as_of(file: str, changed: int, size: int) -> tuple[_Written, ...]:
    """All functions and lambdas of a file that was last changed at a time: in a session, a user's file is loaded anew."""
    try:
        content = Path(file).read_text(encoding="utf-8")
        tree, compiled = ast.parse(content), compile(content, file, "exec", dont_inherit=True)
    except (OSError, SyntaxError, ValueError):
        return ()
    syntax, instructions = (
        collections.defaultdict[tuple[str, int], list[str]](list),
        collections.defaultdict[tuple[str, int], set[str]](set),
    )
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            syntax[_called(node), _line(node)].append(ast.dump(_bare(node)))
    for code in _codes(compiled):
        instructions[code.co_name, code.co_firstlineno].add(_instructions(code))
    return tuple(
        _Written(name, line, " ".join(words), frozenset(instructions[name, line])) for (name, line), words in syntax.items()
    )


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """A code and all codes within it."""
    yield code
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            yield from _codes(inner)


def _line(node: Any) -> int:
    decorators = getattr(node, "decorator_list", [])
    return int(min(d.lineno for d in decorators) if decorators else node.lineno)


def _called(node: Any) -> str:
    return str(getattr(node, "name", "<lambda>"))


def _bare(node: Any) -> Any:
    """A function's arguments and body, without its documentation and annotations."""
    if isinstance(node, ast.Lambda):
        return node
    body = node.body[1:] if ast.get_docstring(node) is not None else node.body
    names = [ast.Name(one.arg) for one in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
    return ast.Module([ast.Expr(name) for name in names] + list(body), [])
