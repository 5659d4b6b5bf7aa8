"""Made-up trees: like real ones in size, learnable, and the same for ever."""

from collections import Counter, defaultdict
from statistics import mean

from edbatch.data.random_trees import random_trees
from edbatch.data.sample_files import sample_path
from edbatch.data.trees import parse_tree, read_trees

TREES = random_trees(1000, seed=1)


def test_the_shipped_file_is_what_the_generator_gives():
    assert read_trees(sample_path("trees.txt")) == random_trees(300, seed=0)


def test_equal_seeds_give_equal_trees():
    assert random_trees(20, seed=1) == TREES[:20]
    assert random_trees(20, seed=2) != TREES[:20]


def test_trees_are_binary_and_in_post_order():
    for tree in TREES:
        assert parse_tree(str(tree)) == tree == tree.binarized()


def test_lengths_are_like_real_ones():
    lengths = [sum(word is not None for word in tree.words) for tree in TREES]
    assert min(lengths) == 3
    assert max(lengths) == 40
    assert 18 < mean(lengths) < 21


def test_every_label_is_frequent_at_the_root():
    labels = Counter(tree.labels[-1] for tree in TREES)
    assert set(labels) == {0, 1, 2, 3, 4}
    assert min(labels.values()) > 100


def test_labels_follow_from_the_words():
    of_word, of_phrase = defaultdict(set), defaultdict(set)
    for tree in TREES:
        texts = []
        for label, word, children in zip(tree.labels, tree.words, tree.children, strict=True):
            texts.append(word if word is not None else f"({' '.join(texts[child] for child in children)})")
            (of_phrase if word is None else of_word)[texts[-1]].add(label)
    assert all(len(labels) == 1 for labels in (of_word | of_phrase).values())
    assert of_phrase["(very clever)"] == {4}
    assert of_phrase["(not clever)"] == {1}
    assert of_phrase["(slightly brilliant)"] == {3}
