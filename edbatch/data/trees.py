"""Labelled trees over words, in the bracketed form of the Penn Treebank."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass

from edbatch.data.lines import clipped, write_samples
from edbatch.data.stream import Stream, stream_samples
from edbatch.errors import EdBatchError

_TOKEN = re.compile(r"[()]|[^()\s]+", re.ASCII)  # a no-break space is part of a word
_LABEL = re.compile(r"[0-9]{1,18}")


@dataclass(frozen=True, slots=True)
class Tree:
    """A tree whose nodes stand in post-order: children before their parent, the root last.

    Attributes:
        labels: per node its label, 0, 1, 2...
        words: per node the word of a leaf, None inside the tree.
        children: per node the positions of its children; () for a leaf.

    Example:
        >>> tree = parse_tree("(3 (2 so) (4 good))")
        >>> tree
        Tree(labels=[2, 4, 3], words=['so', 'good', None], children=[(), (), (0, 1)])
        >>> str(tree), len(tree)
        ('(3 (2 so) (4 good))', 3)
    """

    labels: list[int]
    words: list[str | None]
    children: list[tuple[int, ...]]

    def __len__(self) -> int:
        return len(self.labels)

    def __str__(self) -> str:
        parts: list[str] = []
        todo: list[int | str] = [len(self) - 1]
        while todo:
            item = todo.pop()
            if isinstance(item, str):
                parts.append(item)
            elif (word := self.words[item]) is not None:
                parts.append(f" ({self.labels[item]} {word})")
            else:
                parts.append(f" ({self.labels[item]}")
                todo += [")", *reversed(self.children[item])]
        return "".join(parts).lstrip()

    def binarized(self) -> Tree:
        """The same tree with two children at every inner node.

        A chain of only children becomes one node with the label of the uppermost; three or more children are
        joined from the left, under nodes of their parent's label.

        Example:
            >>> str(parse_tree("(1 (2 a) (2 b) (3 (4 c)))").binarized())
            '(1 (1 (2 a) (2 b)) (3 c))'
        """
        parent = {child: node for node, children in enumerate(self.children) for child in children}
        binary = Tree([], [], [])
        joined: dict[int, int] = {}  # inner node -> what its children so far have become
        for node, (label, word) in enumerate(zip(self.labels, self.words, strict=True)):
            if word is not None:
                new = binary._add(label, word, ())
            else:
                new = joined.pop(node)
                binary.labels[new] = label
            if node in parent:
                above = parent[node]
                if above in joined:
                    new = binary._add(self.labels[above], None, (joined[above], new))
                joined[above] = new
        return binary

    def _add(self, label: int, word: str | None, children: tuple[int, ...]) -> int:
        self.labels.append(label)
        self.words.append(word)
        self.children.append(children)
        return len(self.labels) - 1


def parse_tree(text: str, place: str = "tree") -> Tree:
    """Read one tree: `(label word)` is a leaf, `(label child child ...)` an inner node. No recursion.

    Args:
        text: the whole tree, on one line or several.
        place: where the text comes from, for error messages.

    Raises:
        EdBatchError: the text is no tree; the message names place and column, and what was expected there.

    Example:
        >>> parse_tree("(3 (2 so) good)", "reviews.txt:7")
        Traceback (most recent call last):
        edbatch.errors.EdBatchError: reviews.txt:7: column 11: expected '(' or ')', found 'good'
    """
    tree = Tree([], [], [])
    opened: list[_Node] = []  # the nodes around the place
    for match in _TOKEN.finditer(text):
        token, top = match[0], opened[-1] if opened else None
        if token == "(" and (top.may_have_children if top else not tree.labels):
            opened.append(_Node())
        elif top is None:
            raise _error(place, match, "'('" if not tree.labels else "nothing after the tree")
        elif token == ")" and (top.word is not None or top.children):
            opened.pop()
            assert top.label is not None
            node = tree._add(top.label, top.word, tuple(top.children))
            if opened:
                opened[-1].children.append(node)
        elif top.label is None and _LABEL.fullmatch(token):
            top.label = int(token)
        elif top.may_have_word and token not in ("(", ")"):
            top.word = token
        else:
            raise _error(place, match, top.expects())
    if opened or not tree.labels:
        missing = f"{opened[-1].expects()} ({len(opened)} '(' not closed)" if opened else "'('"
        raise EdBatchError(f"{place}: column {len(text.rstrip()) + 1}: expected {missing}, found the end")
    return tree


class _Node:
    """A node that is not closed yet."""

    def __init__(self) -> None:
        self.label: int | None = None
        self.word: str | None = None
        self.children: list[int] = []

    @property
    def may_have_children(self) -> bool:
        return self.label is not None and self.word is None

    @property
    def may_have_word(self) -> bool:
        return self.may_have_children and not self.children

    def expects(self) -> str:
        if self.label is None:
            return "a label (0, 1, 2, ...) after '('"
        if self.word is not None:
            return f"')' after the word {self.word!r}"
        return "'(' or ')'" if self.children else f"a word or a child after the label {self.label}"


def _error(place: str, match: re.Match[str], expected: str) -> EdBatchError:
    return EdBatchError(f"{place}: column {match.start() + 1}: expected {expected}, found {clipped(match[0])!r}")


def stream_trees(path: str | os.PathLike[str], skip_bad: bool = False, binary: bool = False) -> Stream[Tree]:
    """The trees of a file, one at a time; file and errors as of `read_trees`.

    Args:
        skip_bad: skip lines that are no trees, and count them (`.skipped`).
        binary: give every tree as `Tree.binarized` does.
    """

    def parse(text: str, place: str) -> Tree:
        tree = parse_tree(text, place)
        return tree.binarized() if binary else tree

    return stream_samples(path, parse, "trees", "(3 (2 so) (4 good))", skip_bad)


def read_trees(path: str | os.PathLike[str], skip_bad: bool = False) -> list[Tree]:
    """Read a file with one tree per line; blank lines are skipped, and with `skip_bad` those that are no trees.

    Raises:
        EdBatchError: the file cannot be read or holds no tree, or a line is no tree; the message names file,
            line and column, and what was expected there.
    """
    return stream_trees(path, skip_bad).take()


def write_trees(path: str | os.PathLike[str], trees: Iterable[Tree]) -> None:
    """Write trees, one per line, so that `read_trees` gives them back.

    Raises:
        EdBatchError: the file cannot be written.

    Example:
        >>> import pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "trees.txt"
        >>> trees = [parse_tree("(4 good)"), parse_tree("(3 (2 so) (4 good))")]
        >>> write_trees(path, trees)
        >>> read_trees(path) == trees
        True
    """
    write_samples(path, trees)
