"""List the experiments, or run one: `python -m scripts.bench NAME [--help] [--json] [--png FILE] ...`."""

from __future__ import annotations

import ast
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from tabulate import tabulate


def experiments() -> dict[str, str]:
    """By name, the first line of what a module of this folder with a `main` says of itself."""
    found = {}
    for path in sorted(Path(__file__).parent.glob("[a-z]*.py")):
        source = path.read_text(encoding="utf-8")
        if "\nmain = command(" in source:
            found[path.stem] = (ast.get_docstring(ast.parse(source)) or "").partition("\n")[0]
    return found


def main(arguments: Sequence[str]) -> None:
    """Run what is named."""
    known = experiments()
    name, *others = arguments or [""]
    if name in known:
        import_module(f"scripts.bench.{name}").main(others)
    elif name:
        sys.exit(f"{name}: expected one of {', '.join(known)}")
    else:
        print(tabulate(known.items(), tablefmt="plain"))


if __name__ == "__main__":
    main(sys.argv[1:])
