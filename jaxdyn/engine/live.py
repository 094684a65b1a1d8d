"""What a function finds in memory: the values of the names that it uses, in people's own modules and notebooks.

A source does not tell what its names hold: a notebook's cell is run again, a script sets ``helper.FACTOR = 3``, a table was read
when the module was imported. Compiled programs and stored runs of other values are not this function's. Values are taken apart as
they are for pickling; what cannot be taken apart cannot be compared either, and is reported (:func:`unknown`).
"""

from __future__ import annotations

import copyreg
import dis
import enum
import functools
import hashlib
import sys
import threading
import types
import weakref
from collections.abc import Callable, Iterator, MutableMapping, MutableSequence, MutableSet
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn.engine.failure import installed

__all__ = ["code_facts", "fixed_values", "forget_results", "mentioned", "unknown", "values"]

PACKAGE = Path(__file__).parents[1]
DEPTH, MOST = 50, 300_000  # of values within values: levels, and how many in all
MUTATORS = {"append", "add", "extend", "insert", "update", "setdefault", "pop", "popitem", "remove", "discard", "clear"}
DYNAMIC = {"globals", "eval", "exec"}  # built-in functions by which code uses names that it does not mention
GLOBAL, LOCAL = "global", "local"  # where a name is looked up
PLAIN = frozenset({bool, int, float, complex, str, bytes, type(None), type(...), type(NotImplemented)})
WRAPPERS = (staticmethod, classmethod, types.MethodType)
STATELESS = (  # no content that a number could depend on, or a mere cache
    *(weakref.ReferenceType, weakref.WeakKeyDictionary, weakref.WeakValueDictionary, weakref.WeakSet),
    *(type(threading.Lock()), type(threading.RLock()), threading.local, jax.core.Tracer),
)
CACHED = type(functools.cache(abs))
JITTED: Any = type(jax.jit(abs))
DESCRIPTORS = (types.MemberDescriptorType, types.GetSetDescriptorType, types.WrapperDescriptorType, types.MethodDescriptorType)
Fact = Callable[[Any], Any]


def values(function: Callable[..., Any]) -> str:
    """Hash of the values of all names that a function uses, directly or through other functions of people's own; "" without any."""
    return _Walk(True).over(function).digest


def fixed_values(function: Callable[..., Any]) -> str:
    """The same of values that do not change alone: lists, dicts and the like may be memories that other code changes."""
    return _Walk(False).over(function).digest


def unknown(function: Callable[..., Any]) -> tuple[list[str], list[types.FunctionType]]:
    """What cannot be compared or followed behind a function.

    Returns:
        One sentence for each name whose value cannot be compared; people's own functions that came from no file.
    """
    walk = _Walk(True).over(function)
    sentences = [f"{name} {why}" for name, reasons in walk.unknown.items() for why in dict.fromkeys(reasons)]
    return sentences, [one for one in walk.functions.values() if not _has_file(one)]


def forget_results(function: Callable[..., Any]) -> None:
    """Empty what own functions behind a function remember by ``functools.cache``: results of values that may have changed since."""
    for cached in _Walk(True).over(function).cached:
        cached.cache_clear()


@dataclass
class _Walk:
    """Facts about values, the same in every process; ``whole``: also about those that can be changed in place."""

    whole: bool
    functions: dict[int, types.FunctionType] = field(default_factory=dict)  # people's own
    cached: list[Any] = field(default_factory=list)  # people's own as well, with a memory of their results
    own: bool = False  # whether anything of people's own was met
    unknown: dict[str, list[str]] = field(default_factory=dict)  # name -> why its value cannot be compared
    digest: str = ""
    _name: str = ""  # whose value is looked at
    _facts: dict[int, str | None] = field(default_factory=dict)  # by id of a value
    _alive: list[Any] = field(default_factory=list)  # so that no id is used again

    def over(self, function: Any) -> _Walk:
        """Look at a function, and at the names that it and the functions behind it use."""
        self._name = getattr(function, "__qualname__", "function")
        facts, memories, met = {self._name: self.fact(function)}, set[str](), 0
        while met < len(self.functions):
            one = list(self.functions.values())[met]
            met += 1
            memories |= _memories(one)
            for name in sorted(_global_names(one.__code__) & DYNAMIC):
                self.unknown.setdefault(_title(one), []).append(f"uses {name}, so that the names behind it are not known")
            for name, value in _used(one):
                if name not in facts:
                    self._name = name
                    facts[name] = self.fact(value)
        known = sorted((name, fact) for name, fact in facts.items() if fact is not None and name not in memories)
        self.unknown = {name: why for name, why in self.unknown.items() if name not in memories}
        self.digest = _hash(known) if self.own else ""
        return self

    def fact(self, value: Any, depth: int = 0) -> str | None:
        """A value as text or hash; None without content that can be compared."""
        if type(value) in PLAIN:
            return f"{type(value).__name__} {value!r}"
        if id(value) in self._facts:
            return self._facts[id(value)]
        if depth == DEPTH or len(self._facts) > MOST:
            self._doubt(f"holds too much to be compared (a {type(value).__name__})")
            return None
        self._facts[id(value)] = "again"  # within itself
        self._alive.append(value)
        known = _known(value)
        parts = ("known", known) if known else self._parts(value, lambda part: self.fact(part, depth + 1))
        self._facts[id(value)] = None if parts is None else _hash(parts)
        return self._facts[id(value)]

    def _parts(self, value: Any, fact: Fact) -> Any:
        """What a value consists of, by kind."""
        if isinstance(value, np.ndarray | np.generic | jax.Array) and not isinstance(value, jax.core.Tracer):
            return _array(value, fact)
        if isinstance(value, STATELESS):
            return type(value).__name__
        if isinstance(value, types.FunctionType):
            return self._function(value, fact)
        if isinstance(value, type):
            return self._class(value, fact)
        if isinstance(value, types.CodeType):
            return code_facts(value)
        if (inner := _inner(value)) is not None:
            return (type(value).__name__, *map(fact, inner))
        if not self.whole and _changeable(value):
            return None
        if type(value) in (list, tuple):
            simple = all(type(v) in PLAIN for v in value)
            return type(value).__name__, repr(value) if simple else [fact(v) for v in value]
        if type(value) in (set, frozenset):
            return type(value).__name__, sorted(map(str, map(fact, value)))
        if isinstance(value, dict | types.MappingProxyType) and type(value) in (dict, types.MappingProxyType):
            return type(value).__name__, [(fact(k), fact(v)) for k, v in value.items()]
        return self._taken_apart(value, fact)

    def _taken_apart(self, value: Any, fact: Fact) -> Any:
        """Any other object, by what it would be made from again if it were pickled."""
        try:
            made = copyreg.dispatch_table.get(type(value), lambda v: v.__reduce_ex__(4))(value)
            if isinstance(made, str) and "(vectorized)" not in made:  # a name; functions of functools.cache have more to them
                self.cached += [value] if isinstance(value, CACHED) and _own(value.__module__) else []
                return "global", type(value).__qualname__, made, fact(getattr(value, "__wrapped__", None))
            make, args, state, items, pairs = (*made, *(None,) * (5 - len(made)))[:5]
            items, pairs = [list(part) if part is not None else None for part in (items, pairs)]
        except Exception:  # whatever a foreign class does when it is taken apart
            self._doubt(f"holds what cannot be compared (a {type(value).__name__})")
            return None
        if isinstance(state, dict) and any(base.__module__ == "flax.linen.module" for base in type(value).__mro__):
            state = {name: part for name, part in state.items() if name != "_id"}  # another for each instance
        return tuple(map(fact, (make, args, state, items, pairs)))

    def _function(self, function: types.FunctionType, fact: Fact) -> Any:
        """Code, closure and defaults; of the package's and installed ones that were made on the fly no code."""
        changed = {path[1] for path in _changed(function.__code__) if path[0] == LOCAL}
        inner = {name: value for name, value in _enclosed(function) if not (name in changed and _is_container(value))}
        label: Any = function.__code__.co_qualname
        if _own_function(function):
            self.own = True
            self.functions[id(function)] = function
            label = _code_hash(function.__code__)
            inner |= {f".{name}": value for name, value in vars(function).items()}
        if hasattr(function, "registry") and hasattr(function, "dispatch"):  # functools.singledispatch, whose closure is a cache
            inner = dict(function.registry)
        return "function", label, [(fact(name), fact(value)) for name, value in inner.items()]

    def _class(self, cls: type, fact: Fact) -> Any:
        """A class of people's own: its bases, methods and attributes."""
        if not _own(cls.__module__):  # made on the fly
            return "class", cls.__module__, cls.__qualname__
        self.own = True
        if isinstance(cls, enum.EnumType):
            attributes: dict[str, Any] = {name: cls.__members__[name].value for name in cls.__members__}
            methods = {n: v for n, v in vars(cls).items() if isinstance(v, (types.FunctionType, property, *WRAPPERS))}
            attributes |= {n: v for n, v in methods.items() if n not in ("__new__", "__reduce_ex__", "_generate_next_value_")}
        else:
            attributes = {n: v for n, v in vars(cls).items() if _is_content(n, v)}
        return "class", cls.__qualname__, [fact(b) for b in cls.__bases__], [(n, fact(v)) for n, v in attributes.items()]

    def _doubt(self, why: str) -> None:
        self.unknown.setdefault(self._name, []).append(why)


def _hash(parts: Any) -> str:
    return hashlib.sha256(repr(parts).encode(errors="replace")).hexdigest()


def _array(value: Any, fact: Fact) -> Any:
    if isinstance(value, jax.Array) and jnp.issubdtype(value.dtype, jax.dtypes.prng_key):
        return "key", str(jax.random.key_impl(value)), fact(jax.random.key_data(value))
    if isinstance(value, np.ma.MaskedArray):
        return "masked", fact(value.data), fact(np.asarray(value.mask))
    array = np.asarray(value)
    content = fact(array.tolist()) if array.dtype.hasobject else hashlib.sha256(array.tobytes()).hexdigest()
    return "array", array.dtype.str, array.shape, content


INNER: dict[Any, Callable[[Any], tuple[Any, ...]]] = {  # what wrappers and the like stand for, by kind
    types.ModuleType: lambda v: (_label(v.__name__),),
    types.MethodType: lambda v: (v.__func__, v.__self__),
    (staticmethod, classmethod): lambda v: (v.__func__,),
    property: lambda v: (v.fget, v.fset, v.fdel),
    functools.cached_property: lambda v: (v.func,),  # it cannot be pickled in Python 3.11
    functools.partial: lambda v: (v.func, v.args, v.keywords),
    (types.BuiltinMethodType, types.MethodWrapperType): lambda v: (v.__name__, v.__self__),
    DESCRIPTORS: lambda v: (v.__name__,),
    enum.Enum: lambda v: (type(v), v.name, v.value),
    jax.Device: lambda v: (str(v),),
    JITTED: lambda v: (v.__wrapped__,),
}


def _inner(value: Any) -> tuple[Any, ...] | None:
    """What a wrapper of functions, a method, a module or a member of an enumeration stands for; None for other values."""
    if type(value).__name__ in ("nb_func", "nb_method", "nb_bound_method"):  # compiled into jaxlib
        return value.__module__, value.__name__
    return next((inner(value) for kind, inner in INNER.items() if isinstance(value, kind)), None)


def _changeable(value: Any) -> bool:
    """Whether a value may be a memory: equal values of its kind need not stay equal, so Python gives them no hash by content."""
    by_content: Any = type(value).__hash__
    return isinstance(value, types.MappingProxyType) or by_content is None or by_content is object.__hash__


def _is_content(name: str, value: Any) -> bool:
    """Whether an attribute of a class decides what it does."""
    if isinstance(value, (types.FunctionType, property, *WRAPPERS)):
        return True
    return not (name.startswith(("__", "_abc_")) or isinstance(value, DESCRIPTORS))


def _known(value: Any) -> str | None:
    """The dotted name of what an installed package or Python has at its top level; None for all else."""
    place = value if callable(value) and type(getattr(value, "__qualname__", None)) is str else type(value)
    module = getattr(place, "__module__", None)
    if type(module) is not str or module not in sys.modules or _own(module):
        return None
    if place is not value:  # an object that the module of its class has made, such as jax.enable_x64
        return next((f"{module}.{name}" for name, one in list(vars(sys.modules[module]).items()) if one is value), None)
    found: Any = sys.modules[module]
    for part in value.__qualname__.split("."):
        found = getattr(found, part, None)
    return f"{module}.{value.__qualname__}" if found is value else None


def _own_function(function: types.FunctionType) -> bool:
    """Whether people wrote it: its file tells, since decorators copy the name of the module."""
    return _own_file(function.__code__.co_filename) if _has_file(function) else _own(function.__module__)


def _own(name: str | None) -> bool:
    """Whether a module is neither of the package nor installed nor Python's own."""
    top = str(name).partition(".")[0]
    if name is None or top == PACKAGE.name or top in sys.stdlib_module_names:
        return False
    file = getattr(sys.modules.get(name), "__file__", None)
    return file is None or _own_file(file)


@functools.cache
def _own_file(file: str) -> bool:
    return not (installed(Path(file)) or Path(file).is_relative_to(PACKAGE))


def _has_file(function: types.FunctionType) -> bool:
    return _is_file(function.__code__.co_filename)


@functools.cache
def _is_file(name: str) -> bool:
    return Path(name).is_file()


def _label(module: str) -> str:
    """A module's name, the same in a worker: there a script is no ``__main__``, and the name of a loaded file tells its content."""
    file = getattr(sys.modules.get(module), "__file__", None)
    return Path(file).stem if file and module.startswith(("__main__", "__mp_main__", "jaxdyn_user_")) else module


def _title(function: types.FunctionType) -> str:
    return f"{_label(function.__module__)}:{function.__qualname__}"


def _used(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """Names and values of what a function's code mentions: of its module, and of own modules that it mentions."""
    code, home = function.__code__, function.__globals__
    todo = [(_label(function.__module__), name, home[name]) for name in sorted(_global_names(code)) if name in home]
    met = set[str]()
    while todo:
        owner, name, value = todo.pop()
        yield f"{owner}:{name}", value
        if isinstance(value, types.ModuleType) and value.__name__ not in met and _own(value.__name__):
            met.add(value.__name__)
            there = vars(value)
            todo += [(_label(value.__name__), n, there[n]) for n in sorted(mentioned(code)) if n in there]


def _enclosed(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """Names and values of a function's closure and of its defaults."""
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        if cell != types.CellType():
            yield name, cell.cell_contents
    defaults = function.__defaults__ or ()
    arguments = function.__code__.co_varnames[: function.__code__.co_argcount]
    yield from zip(arguments[len(arguments) - len(defaults) :], defaults, strict=True)
    yield from (function.__kwdefaults__ or {}).items()


def _memories(function: types.FunctionType) -> set[str]:
    """Containers of modules that a function changes itself: what they hold is its own doing; and names that it assigns."""
    home = function.__globals__
    names = {f"{_label(function.__module__)}:{name}" for name in _assigned(function.__code__)}
    for scope, first, *rest in _changed(function.__code__):
        if scope == LOCAL:
            continue
        owner, name, value = function.__module__, first, home.get(first)
        while isinstance(value, types.ModuleType) and rest:
            owner, name = value.__name__, rest.pop(0)
            value = getattr(value, name, None)
        if _is_container(value):
            names.add(f"{_label(owner)}:{name}")
    return names


def _is_container(value: Any) -> bool:
    return isinstance(value, MutableSequence | MutableMapping | MutableSet)


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """A function's code and that of all functions inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


@functools.cache
def mentioned(code: types.CodeType) -> frozenset[str]:
    """The names and attributes in a function's code."""
    return frozenset(name for part in _codes(code) for name in part.co_names)


@functools.cache
def _global_names(code: types.CodeType) -> frozenset[str]:
    """The names that code looks up in its module or among the built-in ones."""
    wanted = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")
    return frozenset(str(i.argval) for part in _codes(code) for i in dis.get_instructions(part) if i.opname in wanted)


@functools.cache
def _assigned(code: types.CodeType) -> frozenset[str]:
    return frozenset(str(i.argval) for part in _codes(code) for i in dis.get_instructions(part) if i.opname == "STORE_GLOBAL")


@functools.cache
def _changed(code: types.CodeType) -> frozenset[tuple[str, ...]]:
    """What code changes in place: ``(GLOBAL or LOCAL, name, attribute...)``, found by following the stack of the interpreter.

    A container that is reached in other ways counts as unchanged, and if it does change, the runs are made anew.
    """
    changed = set[tuple[str, ...]]()
    for part in _codes(code):
        stack: list[tuple[str, ...]] = []  # of each value where it came from; () for anything else
        for one in dis.get_instructions(part):
            target = _target(one, stack)
            if target:
                changed.add(target)
            _step(one, stack)
    return frozenset(changed)


def _target(one: dis.Instruction, stack: list[tuple[str, ...]]) -> tuple[str, ...]:
    """What an instruction changes in place, or takes a method from that does."""
    if one.opname in ("LOAD_METHOD", "LOAD_ATTR"):
        place = 1 if one.argval in MUTATORS else 0
    else:
        place = {"STORE_SUBSCR": 2, "DELETE_SUBSCR": 2, "STORE_SLICE": 3}.get(one.opname, 0)
    return stack[-place] if 0 < place <= len(stack) else ()


def _step(one: dis.Instruction, stack: list[tuple[str, ...]]) -> None:
    """Follow one instruction: names are pushed, attributes and items stay with what they are of."""
    effect = dis.stack_effect(one.opcode, one.arg, jump=False)
    count = one.arg or 0
    if one.opname in ("COPY", "SWAP"):
        stack[:0] = [()] * max(0, count - len(stack))
        if one.opname == "COPY":
            stack.append(stack[-count])
        else:
            stack[-count], stack[-1] = stack[-1], stack[-count]
    elif one.opname.startswith(("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "LOAD_FAST")):
        scope = GLOBAL if one.opname.startswith(("LOAD_GLOBAL", "LOAD_NAME")) else LOCAL
        names = one.argval if isinstance(one.argval, tuple) else (one.argval,)
        stack.extend([()] * (effect - len(names)) + [(scope, str(name)) for name in names])
    elif one.opname in ("LOAD_ATTR", "LOAD_METHOD"):
        source = stack.pop() if stack else ()
        stack.extend([(*source, str(one.argval)) if source else (), *[()] * effect])
    else:
        item = one.opname == "BINARY_SUBSCR" or one.argrepr == "[]"
        source = stack[-2] if item and len(stack) > 1 else ()
        del stack[len(stack) + min(effect, 0) :]
        stack.extend([()] * effect)
        if stack and effect <= 0 and not one.opname.startswith(("STORE", "POP", "DELETE")):
            stack[-1] = source


def code_facts(code: types.CodeType) -> tuple[Any, ...]:
    """What a compiled function does, where there is no source: its instructions, names and constants."""
    constants = tuple(code_facts(c) if isinstance(c, types.CodeType) else _constant(c) for c in code.co_consts)
    return repr(code.co_code), code.co_names, constants


@functools.cache
def _code_hash(code: types.CodeType) -> str:
    return _hash(code_facts(code))


def _constant(value: Any) -> str:
    """A constant as text; sets are in another order in every process."""
    if isinstance(value, frozenset):
        return f"set {sorted(map(_constant, value))}"
    return f"({', '.join(map(_constant, value))})" if isinstance(value, tuple) else repr(value)
