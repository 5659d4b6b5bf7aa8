"""Samples as the networks that are compared take them; what belongs to the places, their labels, is last."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from edbatch.models.lattice import Arcs


class TreeSample(NamedTuple):
    """A binary tree in post-order, as `edbatch.models.TreeLSTM.loss` takes it."""

    words: Sequence[int | None]
    children: Sequence[tuple[int, ...]]
    labels: Sequence[int]


class TaggedSample(NamedTuple):
    """A sentence, as `edbatch.models.BiLSTMTagger.loss` takes it: a word is its number, or those of its characters."""

    words: Sequence[int | Sequence[int]]
    tags: Sequence[int]


class LatticeSample(NamedTuple):
    """A lattice, as `edbatch.models.LatticeLSTM.loss` takes it."""

    arcs: Arcs
    tags: Sequence[int]


class PairSample(NamedTuple):
    """A sentence and its translation, as `edbatch.models.EncoderDecoder.hidden` takes them, and what is predicted."""

    source: Sequence[int]
    target: Sequence[int]
    said: Sequence[int]
