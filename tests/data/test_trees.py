"""Trees: parsing, printing, binarizing, files."""

from hypothesis import given
from hypothesis import strategies as st

from edbatch.data.trees import Tree, parse_tree

WORDS = st.text(st.characters(exclude_characters="() \t\n\r\f\v", exclude_categories=["Cs"]), min_size=1)
NODES = st.recursive(
    st.tuples(st.integers(0, 9), WORDS),
    lambda node: st.tuples(st.integers(0, 9), st.lists(node, min_size=1, max_size=4)),
)


def text_of(node):
    label, below = node
    return f"({label} {below if isinstance(below, str) else ' '.join(map(text_of, below))})"


def reference(node):
    """The binarized form of a nested (label, word or children), by recursion."""
    label, below = node
    if isinstance(below, str):
        return node
    children = [reference(child) for child in below]
    if len(children) == 1:
        return (label, children[0][1])
    left, *rest = children
    for right in rest:
        left = (label, [left, right])
    return left


def deep_text(depth):
    return "(1 (2 a) " * depth + "(3 b)" + ")" * depth


@given(NODES)
def test_text_gives_the_same_tree_back(node):
    tree = parse_tree(text_of(node))
    assert str(tree) == text_of(node)
    assert parse_tree(str(tree)) == tree


@given(NODES)
def test_binarized_is_what_recursion_gives(node):
    binary = parse_tree(text_of(node)).binarized()
    assert str(binary) == text_of(reference(node))
    assert binary == parse_tree(str(binary))  # still in post-order
    assert binary.binarized() == binary


def test_deep_trees_need_no_recursion():
    depth = 20_000
    tree = parse_tree(deep_text(depth))
    assert len(tree) == 2 * depth + 1
    assert str(tree) == deep_text(depth)
    assert tree.binarized() == tree
    chain = parse_tree("(1 " * depth + "(2 a)" + ")" * depth)
    assert chain.binarized() == Tree([1], ["a"], [()])


def test_words_keep_no_break_spaces_and_escapes():
    assert parse_tree("(2 8\u00a01\\/2)").words == ["8\u00a01\\/2"]
