"""Random samples: the same for ever, like real ones in size, and learnable."""

from collections import Counter, defaultdict
from statistics import mean

from edbatch.data.dependencies import random_dependencies, read_conllu
from edbatch.data.files import SAMPLES
from edbatch.data.lattices import random_lattices, read_lattices, sizes
from edbatch.data.parallel import random_parallel, read_parallel
from edbatch.data.programs import random_programs, read_programs
from edbatch.data.tagged import random_tagged, read_tagged
from edbatch.data.trees import parse_tree, random_trees, read_trees


def test_sample_files_are_what_the_generators_give():
    assert read_trees(SAMPLES / "trees.txt") == random_trees(300, seed=0)
    assert read_tagged(SAMPLES / "tagged.txt") == random_tagged(50, seed=0)
    assert read_conllu(SAMPLES / "dependencies.conllu") == random_dependencies(50, seed=0)
    assert read_lattices(SAMPLES / "lattices.txt") == random_lattices(50, seed=0)
    assert read_parallel(SAMPLES / "source.txt", SAMPLES / "target.txt") == random_parallel(50, seed=0)
    assert read_programs(SAMPLES / "programs.jsonl") == random_programs(50, seed=0)


def test_labels_of_trees_follow_from_the_words():
    trees = random_trees(1000, seed=1)
    lengths = [sum(word is not None for word in tree.words) for tree in trees]
    assert (min(lengths), max(lengths)) == (3, 40)
    assert 18 < mean(lengths) < 21
    labels = Counter(tree.labels[-1] for tree in trees)
    assert set(labels) == {0, 1, 2, 3, 4}
    assert min(labels.values()) > 100
    of_text = defaultdict(set)
    for tree in trees:
        assert parse_tree(str(tree)) == tree == tree.binarized()
        texts = []
        for label, word, children in zip(tree.labels, tree.words, tree.children, strict=True):
            texts.append(word if word is not None else f"({' '.join(texts[child] for child in children)})")
            of_text[texts[-1]].add(label)
    assert all(len(labels) == 1 for labels in of_text.values())
    assert (of_text["(very clever)"], of_text["(not clever)"], of_text["(slightly brilliant)"]) == ({4}, {1}, {3})


def test_tags_follow_from_a_word_and_its_neighbours_but_not_from_the_word_alone():
    of_word, of_context, counts = defaultdict(set), defaultdict(set), Counter()
    for sentence in random_tagged(2000, seed=1):
        words = ["<", *sentence.words, ">"]
        counts.update(sentence.words)
        for before, word, after, tag in zip(words, words[1:], words[2:], sentence.tags, strict=False):
            of_word[word].add(tag)
            of_context[before, word, after].add(tag)
    assert all(len(tags) == 1 for tags in of_context.values())
    assert of_word["Paris"] == of_word["Santos"] == {"I-PER", "I-LOC", "I-ORG"}
    assert of_word["Anna"] == {"I-PER"}
    rare = [word for word, count in counts.items() if count < 50]
    assert len(rare) > 400
    assert set.union(*(of_word[word] for word in rare if word.endswith("ville"))) == {"I-LOC"}


def test_dependencies_are_projective_trees():
    for sentence in random_dependencies(200, seed=5):
        assert sentence.is_projective
        assert sentence.heads.count(0) == 1
        assert len(sentence.relations) == len(sentence.heads) == len(sentence)


def test_lattices_are_of_one_language_and_like_real_ones():
    lattices = random_lattices(500, seed=1)
    nodes = sum(len(lattice) - 1 for lattice in lattices)
    words = sum(len(arcs) - 1 for lattice in lattices for arcs in lattice.arcs[1:])
    assert 35 < nodes / len(lattices) < 50  # real ones: 43
    assert 0.35 < words / nodes < 0.6  # 0.53
    spelled, tags = {}, {}
    for lattice in lattices:
        text = [arcs[0].id for arcs in lattice.arcs[1:]]
        for node, (tag, arcs) in enumerate(zip(lattice.tags, lattice.arcs, strict=True)):
            assert [arc.source for arc in arcs[:1]] == ([node - 1] if node else [])
            for source, word in arcs[1:]:
                assert node - 4 <= source < node - 1
                assert spelled.setdefault(word, text[source:node]) == text[source:node]
            if len(arcs) > 1:
                assert tags.setdefault(min(arcs).id, tag) == tag  # the longest word decides
            else:
                assert tag == 0
    assert len(spelled) == len({tuple(text) for text in spelled.values()}) == sizes(lattices).words - 1
    assert set(tags.values()) == {0, 1, 2, 3}
