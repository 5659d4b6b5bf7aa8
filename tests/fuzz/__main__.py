"""Run the random programs of some seeds: `python -m tests.fuzz 5000:6000`; one that fails is made small and printed."""

import argparse
import sys

from tests.fuzz.generate import generate
from tests.fuzz.run import Counts, check, in_threads, on_edbatch
from tests.fuzz.shrink import shrunk

CELLS = 150  # different cells are compiled one by one, and that takes most of the time


def failures(seeds, cells=CELLS, threads=10, seconds=120.0, counts=None):
    """What goes wrong in the programs of these seeds: small programs, as text.

    Args:
        seeds: of programs.
        cells: that there are to choose from.
        threads: one program in so many runs in several threads at once.
        seconds: to make a failing program small.
        counts: what was compared is added to.
    """
    counts = counts or Counts()
    for seed in seeds:
        program, run = generate(seed, cells), in_threads if seed % threads == 0 else on_edbatch
        failure = check(program, counts, run)
        if failure is not None:
            small, failure = shrunk(program, failure, lambda program, run=run: check(program, run=run), seconds)
            yield f"program {seed}: {failure.message}\n\n{small.script()}"


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("seeds", help="FIRST:END, or one")
    parser.add_argument("--cells", type=int, default=CELLS, help="different cells to choose from (%(default)s)")
    parser.add_argument("--seconds", type=float, default=120.0, help="to make a failing program small (%(default)s)")
    given = parser.parse_args()
    first, _, end = given.seeds.partition(":")
    seeds, counts, number = range(int(first), int(end or int(first) + 1)), Counts(), 0
    for text in failures(seeds, given.cells, seconds=given.seconds, counts=counts):
        number += 1
        print(text, flush=True)
    print(
        f"{len(seeds)} programs ({counts.undecided} undecided), {counts.arrays} arrays, {counts.blind} of which say "
        f"nothing; {number} failures"
    )
    return number > 0


if __name__ == "__main__":
    sys.exit(main())
