"""What `help` and `dir` show of a public class whose bases hold internals."""

from __future__ import annotations


class ShownByName(type):
    """A metaclass: of the class's attributes, `help`, `dir` and completion show those that its `_shown` names.

    Special methods are shown where the class itself has them.
    """

    _shown: frozenset[str]

    def __dir__(cls) -> list[str]:
        return [name for name in super().__dir__() if name in cls._shown or (name[:2] == "__" and name in vars(cls))]
