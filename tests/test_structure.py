"""The architecture as the folders show it: who imports whom, and how large a function may be."""

import ast
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "edbatch"
# Of its neighbours, what a folder imports.
MAY_IMPORT = {
    "base": set(),
    "compiling": {"base"},
    "graph": {"base"},
    "policy": {"base", "compiling"},
    "memory": {"base", "compiling"},
    "kernels": {"base", "compiling", "memory"},  # what a plan's columns are, and where rows lie
    "runtime": {"base", "compiling", "graph", "policy", "memory", "kernels"},
    "vertices": {"base", "compiling", "graph"},
    "data": {"base"},
}
MOST_PARAMETERS, MOST_LINES = 8, 80
SMALL = (
    "base",
    "compiling",
    "graph",
    "policy",
    "memory",
    "models",
    "data",
    "cli",
    "training",
    "vertices",
    "dynet",
    "distributed",
)  # folders all of whose functions are


@cache
def parsed():
    """Per module its tree."""
    found = {}
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        found[".".join(part for part in parts if part != "__init__")] = ast.parse(path.read_text(encoding="utf-8"))
    return found


def imported(tree, inside=False):
    """The modules of the package that a module imports when it is imported; `inside`: also when it runs."""
    found, waiting = set(), [tree]
    while waiting:
        for node in ast.iter_child_nodes(waiting.pop()):
            if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
                continue
            if isinstance(node, ast.ImportFrom) and node.module:
                named = [f"{node.module}.{one.name}" for one in node.names]
                found.update(name if name in parsed() else node.module for name in named)
            elif isinstance(node, ast.Import):
                found.update(one.name for one in node.names)
            if inside or not isinstance(node, ast.FunctionDef):
                waiting.append(node)
    return found & parsed().keys()


@pytest.mark.parametrize("folder", MAY_IMPORT)
def test_folders_import_what_lies_below(folder):
    neighbours = {path.name for path in PACKAGE.iterdir() if path.is_dir()} - {folder}
    for name, tree in parsed().items():
        if name.split(".")[1:2] == [folder]:
            above = {other.split(".")[1] for other in imported(tree, inside=True) if "." in other} & neighbours
            assert above <= MAY_IMPORT[folder], name


def test_no_files_import_one_another():
    below = {name: imported(tree) - {name} for name, tree in parsed().items()}
    while leaves := [name for name, others in below.items() if not others & below.keys()]:
        for name in leaves:
            del below[name]
    assert not below


@pytest.mark.parametrize("folder", SMALL)
def test_functions_are_small(folder):
    for name, tree in parsed().items():
        if name.split(".")[1:2] != [folder]:
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                given = [one.arg for one in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
                place = f"{name}.{node.name}"
                assert len(given) - (given[:1] in (["self"], ["cls"])) <= MOST_PARAMETERS, place
                documented = node.body[0].end_lineno - node.lineno if ast.get_docstring(node) else 0
                assert node.end_lineno - node.lineno - documented < MOST_LINES, place


@pytest.mark.parametrize("name", [name for name in parsed() if "numba" in ast.unparse(parsed()[name])])
def test_numba_is_imported_as_a_whole_first(name):
    """A thread that begins with a part of it, as another imports the whole, finds it half made, and leaves it so."""
    inside = {id(node) for of in ast.walk(parsed()[name]) if isinstance(of, ast.FunctionDef) for node in ast.walk(of)}
    of = [
        node
        for node in ast.walk(parsed()[name])
        if isinstance(node, ast.Import | ast.ImportFrom) and id(node) not in inside
    ]
    modules = [(node.lineno, node.module if isinstance(node, ast.ImportFrom) else node.names[0].name) for node in of]
    from_numba = [module for _, module in sorted(modules, key=lambda one: one[0]) if f"{module}.".startswith("numba.")]
    assert from_numba[:1] in ([], ["numba"])
