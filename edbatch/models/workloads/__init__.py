"""Models with the data they read, by name: what `edbatch run` and the benchmarks run."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import islice
from operator import attrgetter
from typing import Any

import edbatch as eb
from edbatch import models
from edbatch.data.dependencies import random_dependencies, read_conllu
from edbatch.data.lattices import random_lattices, read_lattices, sizes
from edbatch.data.parallel import random_parallel, read_parallel
from edbatch.data.programs import random_programs, read_programs
from edbatch.data.random_points import random_labelled_points
from edbatch.data.sentences import random_pieces, random_sentences, read_pieces, read_sentences
from edbatch.data.tagged import random_tagged, read_tagged
from edbatch.data.trees import random_trees, read_trees
from edbatch.models.workloads import networks, numbering
from edbatch.models.workloads.numbering import RARE
from edbatch.models.workloads.workload import Known, Labelled, Numbered, Workload, distinct

__all__ = ["NINE", "RARE", "WORKLOADS", "Known", "Labelled", "Numbered", "Workload", "get_workload"]


def _pieces(length: int, **changed: Any) -> Workload:
    return replace(
        _TEXT,
        noun="piece",
        reader=partial(read_pieces, length=length),
        generate=lambda n, seed: random_pieces(n, length, seed),
        **changed,
    )


_TREES = Workload(
    noun="tree",
    place="node",
    files=("trees",),
    folder=("sst/train.txt",),
    reader=lambda *paths, **options: [tree.binarized() for tree in read_trees(*paths, **options)],
    generate=lambda n, seed: [tree.binarized() for tree in random_trees(n, seed)],
    know=numbering.knowing(numbering.words_of, labels=attrgetter("labels")),
    numbered=numbering.number_trees,
    network=models.TreeLSTM,
    root=True,
    right=attrgetter("labels"),
)
_TAGGED = Workload(
    noun="sentence",
    place="word",
    files=("tagged sentences",),
    folder=("wikiner/train.txt",),
    reader=read_tagged,
    generate=random_tagged,
    know=numbering.know_tagged,
    numbered=numbering.number_tagged,
    network=models.BiLSTMTagger,
    right=attrgetter("tags"),
)
_TEXT = Workload(
    noun="sentence",
    place="word",
    files=("sentences",),
    folder=("iwslt15/tst2012.en",),
    reader=read_sentences,
    generate=random_sentences,
    know=lambda sentences: {"words": distinct([["<s>", "</s>"], *sentences])},
    numbered=numbering.number_words,
    network=models.LanguageModel,
    right=lambda words: [*words, "</s>"],
)
_LATTICES = Workload(
    noun="lattice",
    place="character",
    files=("lattices",),
    folder=("lattice/train.txt",),
    reader=read_lattices,
    generate=random_lattices,
    know=lambda lattices: {"sizes": list(sizes(lattices))},
    numbered=numbering.number_lattices,
    network=models.LatticeLSTM,
    right=lambda lattice: lattice.tags[1:],
)
_PAIRS = Workload(
    noun="pair",
    place="target word",
    files=("source sentences", "target sentences"),
    folder=("iwslt15/tst2012.en", "iwslt15/tst2012.vi"),
    reader=read_parallel,
    generate=random_parallel,
    know=numbering.know_pairs,
    numbered=numbering.number_pairs,
    network=models.EncoderDecoder,
    right=lambda pair: [*pair.target, "</s>"],
)
WORKLOADS = {
    "tree-lstm": _TREES,
    "tree-gru": replace(_TREES, network=networks.TreeGRUOverWords),
    "mv-rnn": replace(_TREES, network=models.MVRNN),
    "tree-lstm-2type": replace(_TREES, network=models.TreeLSTM2Type),
    "tagger": _TAGGED,
    "tagger-characters": replace(
        _TAGGED,
        know=numbering.know_spelled,
        network=lambda model, words, tags, letters, dim: models.BiLSTMTagger(
            model, words, tags, dim, characters=letters
        ),
    ),
    "lattice-lstm": _LATTICES,
    "lattice-gru": replace(_LATTICES, network=models.LatticeGRU),
    "encoder-decoder": _PAIRS,
    "child-sum": replace(_TREES, reader=read_trees, generate=random_trees, network=networks.ChildSumOverWords),
    "tree-rnn": replace(_TREES, network=models.TreeRNN),
    "rntn": replace(_TREES, network=models.RNTN, hidden=32),
    "td-tree-lstm": replace(
        _TREES,
        know=numbering.knowing(numbering.words_of, labels=lambda tree: tree.labels[-1:]),
        numbered=numbering.number_nested,
        network=models.TreeGenerator,
        root=False,
        program=True,
        right=numbering.from_the_root,
    ),
    "language-model": _TEXT,
    "language-model-fixed": _pieces(64),  # Cavs's Fixed-LSTM
    "tree-fc": _pieces(
        256, place="root", numbered=numbering.number_leaves, network=networks.TreeFCOverWords, right=None
    ),
    "parser": Workload(
        noun="sentence",
        place="transition",
        files=("CoNLL-U sentences",),
        reader=read_conllu,
        generate=random_dependencies,
        know=numbering.knowing(attrgetter("words"), relations=attrgetter("relations")),
        numbered=numbering.number_parsed,
        network=models.TransitionParser,
        program=True,
        right=numbering.transitions,
    ),
    "attention-decoder": replace(_PAIRS, network=models.AttentionEncoderDecoder),
    "module-network": Workload(
        noun="question",
        place="answer",
        files=("programs",),
        folder=("clevr/train.jsonl",),
        reader=read_programs,
        generate=random_programs,
        know=lambda programs: {"modules": models.ModuleNetwork.modules_of(program.steps for program in programs)},
        numbered=numbering.number_programs,
        network=networks.PictureQuestions,
        hidden=16,
        right=lambda program: None if program.answer is None else [program.answer],
    ),
    "mixture-of-experts": Workload(
        noun="point",
        place="answer",
        generate=random_labelled_points,
        know=lambda points: {"coordinates": len(points[0].x), "labels": sorted({point.label for point in points})},
        numbered=numbering.number_points,
        network=networks.ExpertClassifier,
        program=True,
        right=lambda point: [point.label],
    ),
}
NINE = dict(islice(WORKLOADS.items(), 9))  # those of ED-Batch (Chen et al. 2023)


def get_workload(name: str) -> Workload:
    """The workload of this name; an EdBatchError where there is none."""
    if name not in WORKLOADS:
        raise eb.EdBatchError(f"no model is named {name!r}; expected one of {', '.join(WORKLOADS)}")
    return WORKLOADS[name]
