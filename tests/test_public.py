"""What a user sees of the package: names, help, signatures, docstrings."""

import ast
import builtins
import doctest
import inspect
import pydoc
import re
import subprocess
import sys
from pathlib import Path

import pytest

import edbatch as eb

PUBLIC = {name: getattr(eb, name) for name in eb.__all__}
FUNCTIONS = {name: function for name, function in PUBLIC.items() if inspect.isroutine(function)}
CLASSES = {name: kind for name, kind in PUBLIC.items() if inspect.isclass(kind)}


def documented():
    """Every public function, class and method, by name."""
    for name, function in FUNCTIONS.items():
        yield pytest.param(function, function, id=name)
    for name, kind in CLASSES.items():
        yield pytest.param(kind, kind, id=name)
        for method, function in inspect.getmembers(kind, inspect.isfunction):
            if not method.startswith("_") and function.__module__.startswith("edbatch"):
                yield pytest.param(kind, function, id=f"{name}.{method}")


def test_dir_has_what_is_public_and_nothing_else():
    shown = {name for name in dir(eb) if not name.startswith("__")}
    assert shown == set(eb.__all__)
    assert not shown & {"Any", "TYPE_CHECKING", "files", "graph", "kernels", "errors"}
    readme = (Path(__file__).parent.parent / "README.md").read_text()
    used = set(re.findall(r"\beb\.([A-Za-z]\w*)", readme))
    assert {"Adam", "cell", "cross_entropy"} < used <= shown


SHOWN = {
    "Graph": "backward batches draw dtype expression_class gradient is_trace memory_bytes options policy release "
    "report run save timeline value values",
    "InputGraph": "children join kinds of_chains of_lists of_tuples offsets roots",
    "ParameterCollection": "add_lookup_parameters add_parameters count free_name freeze get items keys load save "
    "share sub summary values zero_grad",
    "Policy": "save schedule",
    "Report": "backward_batches backward_bound batches by_type device edges fallbacks gathered gathered_bytes "
    "in_flight lower_bound memory_bytes nodes policy rounds seconds_of_rounds threads types viewed viewed_bytes waited",
    "Run": "batch_size epochs epochs_by evaluate policy progress save_every seed settings steps_per_epoch",
    "SGD": "below check clip constants differences learning_rate load_state lr on_bad_gradient rule state update "
    "weight_decay zero_grad",
    "Vertex": "gather kind n_children pull push scatter",
    "Vertices": "numbers of pushed pushed_by scattered",
}


@pytest.mark.parametrize("name", SHOWN)
def test_classes_show_what_is_public_and_nothing_else(name):
    kind = getattr(eb, name)
    there = [shown for shown in dir(kind) if hasattr(kind, shown)]  # what PyTorch calls otherwise is not
    assert [shown for shown in there if not shown.startswith("_")] == sorted(SHOWN[name].split())


MODULES = [name for name, found in PUBLIC.items() if inspect.ismodule(found)]


@pytest.mark.parametrize(("name", "other"), list(zip(MODULES, MODULES[1:] + MODULES[:1], strict=True)))
def test_modules_can_be_imported_by_their_name(name, other):
    """In whatever way, and whether or not the name was used before."""
    code = f"""
import sys
import edbatch.{name}
from edbatch.{name} import __doc__ as text
from edbatch import {name} as again
assert again is edbatch.{name} is sys.modules["edbatch.{name}"] and text
import edbatch as eb
used = eb.{other}
import edbatch.{other}
from edbatch import {other} as again
assert again is edbatch.{other} is sys.modules["edbatch.{other}"] is used
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(("owner", "function"), list(documented()))
def test_examples_can_be_typed_in(owner, function):
    """They import what they use."""
    examples = doctest.DocTestParser().get_examples(inspect.getdoc(function) or "")
    tree = ast.parse("".join(example.source for example in examples if example.exc_msg is None))
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    known = {node.id for node in names if isinstance(node.ctx, ast.Store)} | set(dir(builtins))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            known |= {(one.asname or one.name).partition(".")[0] for one in node.names}
        known |= {node.arg} if isinstance(node, ast.arg) else set()
        defined = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        known |= {node.name} if defined else set()
    assert {node.id for node in names} <= known


def test_help():
    text = pydoc.render_doc(eb, renderer=pydoc.plaintext)
    for name in ("softmax(x: 'Any', axis", "class Expression", "class Adam", "class Graph"):
        assert name in text
    for kind in CLASSES.values():
        assert pydoc.render_doc(kind)


@pytest.mark.parametrize(("owner", "function"), list(documented()))
def test_docstring_names_the_parameters_there_are(owner, function):
    signature = inspect.signature(function)
    text = inspect.getdoc(function)
    assert text, "no docstring"
    section = re.search(r"^Args:\n((?:    .*\n?|\n)+)", text, re.MULTILINE)
    if section is None:
        return
    names = [
        name.strip().lstrip("*")
        for line in re.findall(r"^    (\*{0,2}\w+(?:, \*{0,2}\w+)*):", section[1], re.MULTILINE)
        for name in line.split(",")
    ]
    known = [name for name in signature.parameters if name != "self"]
    inherited = (
        []
        if not inspect.isclass(owner)
        else [n for base in owner.__mro__ for n in getattr(base, "__annotations__", ())]
    )
    assert names
    assert set(names) <= {*known, *inherited}, f"documented {names}, there are {known}"
    if set(names) <= set(known) and function is not eb.Policy:
        assert [name for name in known if name in names] == names, "documented in another order"


def test_options_say_what_there_is():
    from edbatch.graph.options import Options

    signature = inspect.signature(eb.options)
    assert {name: p.default for name, p in signature.parameters.items()} == vars(Options())
    for name in signature.parameters:
        assert f"    {name}: " in eb.options.__doc__
