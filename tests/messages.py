"""All error messages of the package, as a table: python -m tests.messages [folder]."""

import ast
import sys
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "edbatch"


def text_of(node):
    """A message as its reader sees it, with its values in braces."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(map(text_of, node.values))
    return "{" + ast.unparse(node.value if isinstance(node, ast.FormattedValue) else node) + "}"


def messages(folder=""):
    """Places, kinds of error and messages of all `raise` statements with a message, and of all warnings."""
    for path in sorted((PACKAGE / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            call = node.exc if isinstance(node, ast.Raise) else node
            warns = isinstance(call, ast.Call) and ast.unparse(call.func) in ("warnings.warn", "warn")
            if isinstance(call, ast.Call) and call.args and (isinstance(node, ast.Raise) or warns):
                yield f"{path.relative_to(PACKAGE)}:{node.lineno}", ast.unparse(call.func), text_of(call.args[0])


if __name__ == "__main__":
    for row in messages(*sys.argv[1:]):
        print("| " + " | ".join(row).replace("\n", "\\n") + " |")
