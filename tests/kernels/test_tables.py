"""Blocks; where rows lie is tested by the loops of either device."""

from edbatch.kernels.tables import block_rows


def test_blocks_are_of_equal_size():
    assert block_rows(1000, 4096) == 1000
    assert block_rows(1000, 409) == 334  # three
    assert block_rows(1000, 128) == 125
    assert block_rows(3, 128) == 3
