"""A workload: a model, the data it reads, and how the two come together."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple, TypeAlias, TypeVar

import edbatch as eb

Known: TypeAlias = dict[str, Any]  # words, labels, sizes by name: what JSON can hold

_Item = TypeVar("_Item", bound=Hashable)


class Numbered(NamedTuple):
    """Samples as a model takes them."""

    samples: list[tuple[Any, ...]]  # the arguments of the model's `hidden` or `answer`, words as numbers
    sizes: tuple[Any, ...]  # of the model's tables, in the order of its arguments
    labels: list[Any]  # of the entries of its probabilities


class Labelled(NamedTuple):
    """A sample as a model takes it, and the number of the right label at each of its places."""

    inputs: tuple[Any, ...]
    right: list[int]


@dataclass(frozen=True)
class Workload:
    """A model and its data.

    A network has `hidden(*sample)`, the vectors from which `probabilities(vector)` gives those of the labels; or, where
    what a sample does depends on values, `answer(*sample)`, a program that returns the probabilities, and, if it can be
    trained, `guided(*sample, right)`, one that returns scores at every place, each after what is right before it.

    Example:
        >>> import edbatch as eb
        >>> from edbatch.models.workloads import WORKLOADS
        >>> workload = WORKLOADS["lattice-lstm"]
        >>> samples, sizes, labels = workload.number(workload.generate(3, seed=0))
        >>> network = workload.network(eb.ParameterCollection(seed=0), *sizes, dim=4)
        >>> with eb.Graph() as graph:
        ...     outputs = [p for sample in samples for p in workload.probabilities(network, sample)]
        >>> outputs[0].shape == (len(labels),)
        True
    """

    noun: str  # for a sample
    place: str  # what each of its probabilities belongs to
    generate: Callable[[int, int], list[Any]]  # random samples, from their number and a seed
    know: Callable[[list[Any]], Known]  # what is to be known of samples so that others can be numbered as they are
    numbered: Callable[[list[Any], Known], Numbered]
    network: Callable[..., Any]  # makes the model, from a collection, sizes and the size of its states
    files: tuple[str, ...] = ()  # what they hold, by position; none where samples are random only
    folder: tuple[str, ...] = ()  # where they are in the folder that EDBATCH_DATA names
    reader: Callable[..., list[Any]] | None = None  # of samples from files; None without files
    root: bool = False  # only the label of the last place is predicted of a sample
    program: bool = False  # a network has `answer`
    hidden: int = 128  # a size of states that suits it
    # From a sample as it was read the right label at each of its places, or None where it is not known. Without it, the
    # data never say, and the model cannot be trained on them.
    right: Callable[[Any], Sequence[Any] | None] | None = None

    def number(self, found: list[Any], known: Known | None = None) -> Numbered:
        """Samples as the model takes them, by what is known of others, or of these.

        Raises:
            EdBatchError: they have what is not known, and cannot be left out; words can.
        """
        return self.numbered(found, self.know(found) if known is None else known)

    def read(self, *paths: Any, skip_bad: bool = False, limit: int | None = None) -> list[Any]:
        """The samples of files, or the first `limit`; an EdBatchError where another number of files is expected."""
        if self.reader is None or len(paths) != len(self.files):
            what = ", ".join(self.files) or f"{self.noun}s are made up"
            raise eb.EdBatchError(f"expected files: {len(self.files)} ({what}), got {len(paths)}")
        return self.reader(*paths, skip_bad=skip_bad, limit=limit)

    def outputs(self, network: Any, samples: Sequence[tuple[Any, ...]]) -> list[list[eb.Expression]]:
        """Per sample the probabilities of all labels at every place; programs run, all together."""
        if self.program:
            return eb.run([network.answer(*sample) for sample in samples])
        probabilities = network.probabilities
        return [[probabilities(h) for h in network.hidden(*sample)] for sample in samples]

    def probabilities(self, network: Any, sample: tuple[Any, ...]) -> list[eb.Expression]:
        """The probabilities of all labels, at every place of one sample."""
        return self.outputs(network, [sample])[0]

    def labelled(self, found: list[Any], known: Known | None = None) -> tuple[list[Labelled], Numbered]:
        """Samples as they were read, numbered and with their labels; arguments as of `number`.

        Raises:
            EdBatchError: of a sample no labels are known, or one that the model does not have.
        """
        numbered = self.number(found, known)
        numbers = {label: at for at, label in enumerate(numbered.labels)}
        samples = []
        for at, (inputs, sample) in enumerate(zip(numbered.samples, found, strict=True), start=1):
            right = self.right(sample) if self.right else None
            if right is None:
                raise eb.EdBatchError(f"{self.noun} {at}: expected one with labels")
            if unknown := [label for label in right if label not in numbers]:
                raise eb.EdBatchError(f"{self.noun} {at}: {unknown[0]!r} is not a label of the model")
            samples.append(Labelled(inputs, [numbers[label] for label in right]))
        return samples, numbered

    def scores(self, network: Any, samples: Iterable[Labelled]) -> list[list[eb.Expression]]:
        """Per sample the scores of all labels at every place, each after what is right before it."""
        if self.program:
            return eb.run([network.guided(*inputs, right) for inputs, right in samples])
        return [[network.scores(h) for h in network.hidden(*inputs)] for inputs, _ in samples]

    def losses(self, network: Any, samples: Sequence[Labelled]) -> list[eb.Expression]:
        """The cross-entropy of what is right at every place of all samples."""
        return [
            eb.cross_entropy(scores, label)
            for of_sample, (_, right) in zip(self.scores(network, samples), samples, strict=True)
            for scores, label in zip(of_sample, right, strict=True)
        ]


def distinct(groups: Iterable[Iterable[_Item]]) -> list[_Item]:
    """The items of all groups, each once, in the order in which they first occur."""
    return list(dict.fromkeys(chain.from_iterable(groups)))
