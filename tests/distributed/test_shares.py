"""Mini-batches are divided by nodes; sizes are counted once, and depend on the sample alone."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edbatch import EdBatchError
from edbatch.distributed.shares import Sizes, divided
from edbatch.graph import draws
from tests.distributed.nets import SAMPLES, Net

pytestmark = pytest.mark.cpu


@given(st.lists(st.integers(0, 1000), max_size=50), st.integers(1, 9))
def test_parts_are_all_samples_and_about_the_same(sizes, n):
    parts = divided(sizes, n)
    assert sorted(place for part in parts for place in part) == list(range(len(sizes)))
    assert all(part == sorted(part) for part in parts)
    loads = [sum(sizes[place] for place in part) for part in parts]
    least = max([sum(sizes) / n, *sizes])
    if len(sizes) <= n:
        assert all(len(part) <= 1 for part in parts) or 0 in sizes
    assert max(loads) <= 4 / 3 * max(least, sum(sorted(sizes, reverse=True)[n - 1 : n + 1])) + 1e-9


def of(sizes, number, sample):
    return sizes.of(number, lambda: sample)


def test_nodes_are_counted():
    net = Net(dropout=0.5)
    before = draws.state()
    sizes = Sizes(net.losses, None, "float32", "sufficient")
    found = [of(sizes, *pair) for pair in enumerate(SAMPLES)]
    assert np.corrcoef(found, [len(words) for words, _ in SAMPLES])[0, 1] > 0.95
    net.losses = None
    assert [of(sizes, *pair) for pair in enumerate(SAMPLES)] == found
    assert before == draws.state()


def test_what_reads_values_is_sized_by_the_sample_alone():
    net = Net()
    sizes = Sizes(net.programs, None, "float32", "sufficient")
    first = [of(sizes, *pair) for pair in enumerate(SAMPLES)]
    net.embed.set_value(net.embed.value() + 1)
    again = Sizes(net.programs, None, "float32", "sufficient")
    assert [of(again, *pair) for pair in enumerate(SAMPLES)] == first


def test_counted_by_the_caller():
    assert of(Sizes(len, lambda sample: len(sample[0]), "float32", None), 3, ([1, 2], 0)) == 2
    for bad in (lambda sample: -1, lambda sample: "2", lambda sample: True):
        with pytest.raises(EdBatchError, match="nodes: expected a number of nodes of sample 3, got"):
            of(Sizes(len, bad, "float32", None), 3, ([1, 2], 0))
    with pytest.raises(EdBatchError, match="train: nodes of sample 3: ZeroDivisionError: "):
        of(Sizes(len, lambda sample: 1 / 0, "float32", None), 3, ([1, 2], 0))
