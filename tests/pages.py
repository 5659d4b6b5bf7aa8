"""Pages of Markdown whose code is run: the blocks of a page in order, in one namespace, as one script.

A block of `text` right behind a block of Python is what that prints, as in a doctest: `...` stands for anything. What
reports say of the machine (times, threads, whether something was compiled) is of no account, and fractions and
percentages may be a fifth more or less, as those of training are on another processor; integers may not. A block that
imports PyTorch, and what follows it, is left out where that is not installed.
"""

import doctest
import io
import re
from contextlib import redirect_stdout
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
BLOCK = re.compile(r"^```python\n(.*?)^```$(?:\n+^```text\n(.*?)^```$)?", re.DOTALL | re.MULTILINE)
OF_THE_MACHINE = re.compile(r"[\d,.]+ ms\b|^(threads|compilation) .*\n?", re.MULTILINE)
FRACTION = re.compile(r"\d[\d,]*\.\d+|\d+(?=%)")
LOOKS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


class Block(NamedTuple):
    """A block of Python.

    Attributes:
        line: of the page, where it begins.
        shown: what it prints; None: the page does not say.
    """

    line: int
    code: str
    shown: str | None


def blocks_of(page):
    """The blocks of Python of a page."""
    text = page.read_text(encoding="utf-8")
    return [Block(text.count("\n", 0, at.start(1)), at[1], at[2]) for at in BLOCK.finditer(text)]


def is_shown(shown, found):
    """Whether a page shows what was printed."""
    shown, found = (OF_THE_MACHINE.sub("", text) for text in (shown, found))
    expected, numbers = (FRACTION.findall(text) for text in (shown, found))
    if len(expected) == len(numbers):
        near = iter([b if is_near(a, b) else a for a, b in zip(expected, numbers, strict=True)])
        shown = FRACTION.sub(lambda _: next(near), shown)
    return doctest.OutputChecker().check_output(shown, found, LOOKS)


def is_near(a, b):
    """Up to a fifth of the larger, and what little is left of a loss in the end."""
    a, b = (float(number.replace(",", "")) for number in (a, b))
    return abs(a - b) <= 0.2 * max(a, b) + 0.05


def run(page, blocks=None):
    """Run the blocks of a page, or some of them, and check what they show.

    Returns:
        The names that they leave, and what each has printed.
    """
    names, printed = {"__name__": f"page_{page.stem}"}, []  # not the name of a library, as torch
    for line, code, shown in blocks_of(page) if blocks is None else blocks:
        if "import torch" in code and find_spec("torch") is None:
            break
        with redirect_stdout(io.StringIO()) as out:
            exec(compile("\n" * line + code, str(page), "exec"), names)
        found = out.getvalue()
        printed.append(found)
        if shown is not None:
            assert is_shown(shown, found), f"{page.name}, line {line}: expected\n{shown}\ngot\n{found}"
    return names, printed
