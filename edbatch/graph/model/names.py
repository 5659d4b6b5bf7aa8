"""The parameters of a model by their full names: what it is asked for, and what a trace compares."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from edbatch.graph.model.parameters import Parameter


class Names(dict[str, "Parameter"]):
    """Parameters by name, to which others are only ever added; it can be referred to weakly, as no plain dictionary.

    Example:
        >>> names = Names()
        >>> names.listed("")
        ()
    """

    def __init__(self) -> None:
        self._listed: dict[str, tuple[int, tuple[str, ...]]] = {}

    def listed(self, prefix: str) -> tuple[str, ...]:
        """The names that begin with `prefix`; the same tuple as long as none is added, so that it compares fast."""
        found = self._listed.get(prefix)
        if found is None or found[0] != len(self):
            names = tuple(name for name in self if name.startswith(prefix))
            found = self._listed[prefix] = len(self), names
        return found[1]
