"""Tables of what is refused: pieces of code, the error that each raises, and what it says."""

import re

import numpy as np
import pytest

import edbatch as eb

#: In a table: the error that nearly all of them are.
Error = eb.EdBatchError


def rows_of(table):
    """The rows of a table (code, error, message), as parameters of a test that are named by the code."""
    return [pytest.param(*row, id=" ".join(row[0].split())) for row in table]


def check(code, error, message, **names):
    """Run a piece of code with these names: it raises the error, with a message in which … stands for anything."""
    pattern = ".*".join(map(re.escape, message.split("…")))
    with pytest.raises(error) as raised:
        exec(code, {"eb": eb, "np": np, "__name__": __name__, **names})
    assert re.search(pattern, str(raised.value), re.DOTALL), raised.value
