"""The implicit graph of a test is closed after it: the next begins without one."""

import pytest

import edbatch.dynet as dy


@pytest.fixture(autouse=True)
def no_graph_is_left():
    yield
    dy.close_cg()
