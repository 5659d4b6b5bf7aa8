"""A kind of data and a model of `edbatch run` that EdBatch does not have; docs/extending.md leads here."""

from random import Random

import edbatch as eb
from edbatch.data.files import file_format
from edbatch.data.vocabulary import Vocabulary
from edbatch.models import GRU, Classifier
from edbatch.models.workloads import Numbered, Workload


def parse_review(text, place="review"):
    label, *words = text.split()
    if label not in ("0", "1") or not words:
        raise eb.EdBatchError(f"{place}: expected 0 or 1, and words, found {text!r}")
    return int(label), words


such_as = "one per line, such as 1 a masterpiece"
read_reviews, write_reviews = file_format(parse_review, "reviews", such_as)


def random_reviews(n, seed):
    random, found = Random(seed), []
    for _ in range(n):  # random() alone is promised to be the same in every version of Python
        label = int(2 * random.random())
        words = ["it", "is", *["very"] * int(4 * random.random()), ("dull", "superb")[label]]
        found.append((label, words))
    return found


class ReviewNetwork(Classifier):
    """A GRU that reads a review, and a softmax over its last state."""

    def __init__(self, model, words, labels, dim):
        super().__init__(model, dim, labels)
        self.embed = model.add_lookup_parameters((words, dim), name="embed")
        self.gru = GRU(model, dim, dim)

    def hidden(self, words):
        xs = [eb.lookup(self.embed, word) for word in words]
        return self.gru.initial_state().transduce(xs)[-1:]


def know_reviews(reviews):
    words = [word for _, review in reviews for word in review]
    return {"words": list(dict.fromkeys(words))}


def number_reviews(reviews, known):
    words = Vocabulary(known["words"])
    samples = [([words[word] for word in review],) for _, review in reviews]
    return Numbered(samples, (len(words), 2), ["bad", "good"])


REVIEWS = Workload(
    noun="review",
    place="answer",
    files=("reviews",),
    folder=(),
    reader=read_reviews,
    generate=random_reviews,
    know=know_reviews,
    numbered=number_reviews,
    network=ReviewNetwork,
    right=lambda review: [("bad", "good")[review[0]]],
)
