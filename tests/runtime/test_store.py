"""Stores are used again, in the order in which they were made."""

from itertools import permutations

import edbatch as eb
from edbatch.runtime.store import MOST, Stores
from edbatch.runtime.type_table import shared_table


def test_graphs_that_come_again_find_their_values_where_they_were():
    table = shared_table(eb.device("cpu"))
    stores = Stores(table.windows, table.pool)
    made = [stores.take() for _ in range(3)]
    for order in permutations(made):
        for store in order:
            stores.give_back(store)
        assert [stores.take() for _ in made] == made


def test_no_more_are_kept_than_are_needed():
    table = shared_table(eb.device("cpu"))
    stores = Stores(table.windows, table.pool)
    made = [stores.take() for _ in range(MOST + 2)]
    for store in made:
        stores.give_back(store)
    assert [stores.take() for _ in range(MOST)] == made[:MOST]
    assert stores.take() not in made
