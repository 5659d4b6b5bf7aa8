"""What the interpreter computes itself; whole programs are tested through cells."""

from edbatch.kernels.interpreter import block_rows


def test_blocks_are_of_equal_size_and_not_small():
    assert block_rows(1000, 1, 4096, 128) == 1000
    assert block_rows(1000, 10, 4096, 128) == 334  # three parts of at most 409
    assert block_rows(1000, 100000, 4096, 128) == 125
    assert block_rows(3, 100000, 4096, 128) == 3
