"""Where the source of a module reads what is not in it: files, variables and modules that no call of ``reads`` declares."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace

__all__ = ["LOADERS", "MODULES", "READERS", "arguments", "find_readers", "names_in"]

READERS = {  # functions and attributes by which a module reads what is not in its source
    *("open", "read_text", "read_bytes", "getenv", "getenvb", "environ", "environb", "urlopen", "urlretrieve", "popen", "Popen"),
    *("loadtxt", "genfromtxt", "fromfile", "memmap", "open_memmap", "load_npz", "loadmat", "imread", "getline", "getlines"),
    *("open_dataset", "load_dataset", "open_dataarray", "load_dataarray", "open_mfdataset", "open_zarr", "open_datatree"),
    *("read_csv", "read_json", "read_parquet", "read_excel", "read_table", "read_pickle", "read_hdf", "read_feather", "read_fwf"),
    *("read_sql", "scan_csv", "scan_parquet", "from_pretrained", "tree_deserialise_leaves", "get_data", "FileInput", "ZipFile"),
    *("import_module", "__import__", "spec_from_file_location", "exec_module", "load_module", "load_source", "run_path"),
    *("run_module", "SourceFileLoader", "SourcelessFileLoader", "ExtensionFileLoader", "listdir", "scandir", "iterdir", "rglob"),
}
LOADERS = {  # readers only as attributes of these modules
    *("load", "safe_load", "full_load", "load_all", "load_file", "check_output", "run", "getoutput", "input", "glob", "iglob"),
    *("walk", "fwalk", "stat", "exists", "isfile", "isdir", "getmtime", "getsize", "read", "argv", "stdin", "File", "connect"),
}
MODULES = {
    *("np", "numpy", "jnp", "jax.numpy", "json", "pickle", "tomllib", "yaml", "torch", "joblib", "dill", "cloudpickle", "marshal"),
    *("subprocess", "os", "os.path", "sys", "glob", "fileinput", "h5py", "sqlite3", "safetensors", "safetensors.numpy"),
}
METHODS = {"glob", "walk", "exists", "is_file", "is_dir", "read"}  # readers unless they are methods of the module's own classes
VALUES = {"environ", "environb", "argv", "stdin"}  # read without a call
KEEPING = {  # calls by which what is declared stays declared
    *("str", "Path", "fspath", "resolve", "absolute", "as_posix", "StringIO", "BytesIO", "decode", "splitlines"),
    *("items", "values", "sorted", "list", "tuple"),
}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
DECLARING = {"reads", "reads_variable"}


@dataclass(frozen=True)
class _Names:
    """Where the names of a module come from."""

    imported: dict[str, str]  # name -> dotted path
    starred: frozenset[str]  # modules of which all names are imported
    defined: frozenset[str]  # functions, methods and classes of the module
    shadowed: frozenset[int]  # ids of the nodes that are arguments, whatever has that name elsewhere
    declared: frozenset[str] = frozenset()  # names that hold a declared file, or its content

    def path(self, node: ast.AST) -> str:
        """The dotted path of a name or an attribute, "?" for its root if that is another expression."""
        if isinstance(node, ast.Attribute):
            return f"{self.path(node.value)}.{node.attr}"
        return self.imported.get(node.id, node.id) if isinstance(node, ast.Name) else "?"

    def last(self, node: ast.AST) -> str:
        """The last part of that path."""
        return self.path(node).rpartition(".")[2]

    def foreign(self, node: ast.AST) -> bool:
        """Whether the root of a dotted name was imported."""
        while isinstance(node, ast.Attribute):
            node = node.value
        return isinstance(node, ast.Name) and node.id in self.imported


def _names_of(statements: list[ast.stmt]) -> _Names:
    """Imports at any depth, definitions, other names for readers (``rd = open``), and what is declared."""
    nodes = [node for statement in statements for node in ast.walk(statement)]
    imported: dict[str, str] = {}
    starred = set[str]()
    for node in nodes:
        if isinstance(node, ast.Import):
            imported |= {a.asname or a.name.split(".")[0]: a.name if a.asname else a.name.split(".")[0] for a in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported |= {a.asname or a.name: f"{node.module or ''}.{a.name}" for a in node.names if a.name != "*"}
            starred |= {node.module or "" for a in node.names if a.name == "*"}
    functions = [n for n in nodes if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)]
    shadowed = {id(name) for node in nodes if (own := arguments(node)) for name in names_in(node) if name.id in own}
    names = _Names(imported, frozenset(starred), frozenset(f.name for f in functions), frozenset(shadowed))
    for node in nodes:
        if (alias := _alias(node, names)) is not None:
            imported[alias[0]] = alias[1]
    return _with_declared(names, nodes)


def arguments(node: ast.AST) -> set[str]:
    """The names of a function's arguments."""
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        return set()
    return {n.arg for n in ast.walk(node.args) if isinstance(n, ast.arg)}


def _alias(node: ast.AST, names: _Names) -> tuple[str, str] | None:
    """Name and dotted path where a reader is given another name, else None."""
    if not (isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name)):
        return None
    return (node.targets[0].id, names.path(node.value)) if _is_reader(node.value, names) else None


def _with_declared(names: _Names, nodes: list[ast.AST]) -> _Names:
    """The same with the names that hold nothing but declared files and what is read from them."""
    values: dict[str, list[ast.AST | None]] = {}
    for target, value in (pair for node in nodes for pair in _bindings(node)):
        values.setdefault(target, []).append(value)
    while True:
        more = {n for n, held in values.items() if all(v is not None and _is_declared(v, names) for v in held)}
        if more <= names.declared:
            return names
        names = replace(names, declared=names.declared | more)


def _bindings(node: ast.AST) -> Iterator[tuple[str, ast.AST | None]]:
    """Names that a node of the source assigns, and the expressions; None for what is assigned in another way."""
    pairs: list[tuple[ast.AST, ast.AST]] = []
    if isinstance(node, ast.Assign):
        pairs = [(target, node.value) for target in node.targets]
    elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value is not None:
        pairs = [(node.target, node.value)]
    elif isinstance(node, ast.For | ast.comprehension):
        pairs = [(node.target, node.iter)]
    elif isinstance(node, ast.withitem) and node.optional_vars is not None:
        pairs = [(node.optional_vars, node.context_expr)]
    elif isinstance(node, ast.AugAssign):
        yield from ((name.id, None) for name in names_in(node.target))
    for target, value in pairs:
        parts = value.elts if isinstance(value, ast.Tuple) and isinstance(target, ast.Tuple) else []
        if isinstance(target, ast.Tuple) and len(parts) == len(target.elts):
            yield from ((t.id, v) for t, v in zip(target.elts, parts, strict=True) if isinstance(t, ast.Name))
        elif isinstance(target, ast.Name):
            yield target.id, value
        else:
            yield from ((name.id, None) for name in names_in(target) if isinstance(name.ctx, ast.Store))


def _is_declared(node: ast.AST, names: _Names) -> bool:
    """Whether an expression is a declared file itself, or what is read from one: not a path that is made from its path."""
    if isinstance(node, ast.Name):
        return node.id in names.declared and id(node) not in names.shadowed
    if isinstance(node, ast.Subscript | ast.Starred):
        return _is_declared(node.value, names)
    if isinstance(node, ast.List | ast.Tuple | ast.Set | ast.Dict):
        parts = node.values if isinstance(node, ast.Dict) else node.elts
        return bool(parts) and all(_is_declared(part, names) for part in parts)
    if isinstance(node, ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp):
        return _is_declared(node.value if isinstance(node, ast.DictComp) else node.elt, names)
    return isinstance(node, ast.Call) and (names.last(node.func) == "reads" or _reads_declared(node, names))


def _reads_declared(call: ast.Call, names: _Names) -> bool:
    """Whether a call reads what is declared, or hands it on as it is."""
    of = [call.func.value] if isinstance(call.func, ast.Attribute) else []
    if _is_reader(call.func, names, call):
        return any(_is_declared(part, names) for part in (*of, *call.args[:1], *(word.value for word in call.keywords)))
    alone = call.args if len(call.args) == 1 else []
    return names.last(call.func) in KEEPING and any(_is_declared(part, names) for part in (*of, *alone))


def find_readers(statements: list[ast.stmt]) -> Iterator[tuple[int, str]]:
    """Line and words of every place that reads a file or a variable which no top-level call of ``reads`` declares."""
    names = _names_of(statements)
    for statement in statements:
        nodes = list(ast.walk(statement))
        skipped = {id(n) for node in nodes if _writes(node, names) for n in ast.walk(node)}
        skipped |= {id(node.value) for node in nodes if isinstance(node, ast.Assign) and _alias(node, names)}
        skipped |= {id(node.func) for node in nodes if isinstance(node, ast.Call) and not isinstance(node.func, ast.Call)}
        inside = {id(n) for node in nodes if isinstance(node, FUNCTIONS) for n in ast.walk(node) if n is not node}
        for node in (n for n in nodes if isinstance(n, ast.expr)):
            if isinstance(node, ast.Call) and names.last(node.func) in DECLARING:
                if id(node) in inside:
                    yield node.lineno, f"{names.last(node.func)} inside a function, not at the top level"
            elif id(node) not in skipped and (what := _undeclared(node, names)):
                yield node.lineno, what


def _undeclared(node: ast.expr, names: _Names) -> str | None:
    """The words of an expression that reads what is not declared, else None."""
    if not isinstance(node, ast.Call):
        reads = isinstance(getattr(node, "ctx", None), ast.Load) and _is_reader(node, names)
        return _shown(node) if reads else None
    if names.last(node.func) == "getattr" and len(node.args) > 1 and isinstance(node.args[1], ast.Constant):
        return ast.unparse(node) if node.args[1].value in READERS else None
    return _shown(node.func) if _is_reader(node.func, names, node) and not _reads_declared(node, names) else None


def _shown(node: ast.AST) -> str:
    """A dotted name; of another expression its attribute."""
    text = ast.unparse(node)
    return node.attr if isinstance(node, ast.Attribute) and not text.replace(".", "_").isidentifier() else text


def _is_reader(node: ast.AST, names: _Names, call: ast.Call | None = None) -> bool:
    """Whether a name or an attribute reads something; without a call of it, only variables, and functions of imported modules."""
    if not isinstance(node, ast.Name | ast.Attribute):
        return False
    owner, _, last = names.path(node).rpartition(".")
    reader = last in READERS or (last in LOADERS and owner in MODULES)
    if isinstance(node, ast.Name):
        starred = last in LOADERS and not owner and not names.starred.isdisjoint(MODULES)
        known = call is not None or bool(owner) or last in ("open", "__import__", *VALUES)
        return known and (reader or starred) and node.id not in names.defined and id(node) not in names.shadowed
    if names.foreign(node) or last in VALUES:
        return reader
    method = last in METHODS and last not in names.defined
    return call is not None and (reader or (method and (last != "read" or bool(call.args))))


def _writes(node: ast.AST, names: _Names) -> bool:
    """Whether this only sets a variable of the environment."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Attribute):
        changing = node.value.func.attr in ("setdefault", "update", "pop")
        return changing and names.last(node.value.func.value) in ("environ", "environb")
    if not isinstance(node, ast.Subscript) or isinstance(node.ctx, ast.Load):
        return False
    return names.last(node.value) in ("environ", "environb")


def names_in(node: ast.AST) -> Iterator[ast.Name]:
    """All names in a piece of source."""
    return (n for n in ast.walk(node) if isinstance(n, ast.Name))
