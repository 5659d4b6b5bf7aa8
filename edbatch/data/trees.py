"""Labelled trees over words, in the bracketed form of the Penn Treebank; in files one per line."""

from __future__ import annotations

import re
from dataclasses import dataclass

from edbatch.data.stream import by_line, clipped, file_format
from edbatch.errors import EdBatchError

__all__ = ["Tree", "parse_tree", "read_trees", "stream_trees", "write_trees"]

# A bracket and a label, with the word of a leaf or without, or a closing bracket; a no-break space is no blank.
_PART = re.compile(r"\s*(?:\(\s*([0-9]{1,18})(?![^()\s])(?:\s+([^()\s]+)\s*\))?|(\)))", re.ASCII)
_TOKEN = re.compile(r"\(\s*[^()\s]*|\)|[^()\s]+", re.ASCII)


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


def parse_tree(text: str, place: str = "tree", binary: bool = False) -> Tree:
    """Read one tree: `(label word)` is a leaf, `(label child child ...)` an inner node. No recursion.

    With `binary` it is given as `Tree.binarized` does.

    Where the text is no tree, an EdBatchError names `place`, the column, and what was expected there.

    Example:
        >>> parse_tree("(3 (2 so) good)", "reviews.txt:7")
        Traceback (most recent call last):
        edbatch.errors.EdBatchError: reviews.txt:7: column 11: expected '(label' or ')', found 'good'
    """
    tree = Tree([], [], [])
    opened: list[tuple[int, list[int]]] = []  # of the nodes around the place label and children
    at, end = 0, len(text.rstrip())
    while at < end and (match := _PART.match(text, at)) and (opened or not tree.labels):
        label, word, closes = match.groups()
        if closes and not (opened and opened[-1][1]):
            break
        at = match.end()
        if label and not word:
            opened.append((int(label), []))
            continue
        inner, children = opened.pop() if closes else (int(label), [])
        node = tree._add(inner, word, tuple(children))
        if opened:
            opened[-1][1].append(node)
    if at < end or opened or not tree.labels:
        found = _TOKEN.search(text, at)
        expected = "nothing after the tree" if tree.labels else "'(' and a label (0, 1, 2, ...)"
        if opened:
            label, children = opened[-1]
            expected = "'(label' or ')'" if children else f"a word and ')', or '(label', after the label {label}"
        place = f"{place}: column {1 + (found.start() if found else end)}"
        raise EdBatchError(f"{place}: expected {expected}, found {repr(clipped(found[0])) if found else 'the end'}")
    return tree.binarized() if binary else tree


stream_trees, read_trees, write_trees = file_format(
    by_line(parse_tree), "trees", "one per line, such as (3 (2 so) (4 good))"
)
