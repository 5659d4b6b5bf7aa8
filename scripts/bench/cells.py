"""Cells: what one node a call, blocks that stay in the cache and fused kernels are worth.

    EDBATCH_DATA=... python -m scripts.bench.cells [--json] [--rounds 9]

TreeLSTM: total is construction to values; products are the same matrix products alone, same shapes, same process. The
paper's cells are measured by `edbatch bench memory` and `edbatch bench compiling`.
"""

from __future__ import annotations

import argparse
from typing import Any

from edbatch.experiments.mini_batches import MiniBatches
from scripts.bench.mini_batches import over_products, samples, source
from scripts.bench.report import Tables, command

VARIANTS = {"op by op": {"cells": False}, "cells": {}}


def ratios(trees: list[Any], hidden: int, size: int, rounds: int) -> dict[str, Any]:
    """Total over products of every variant, on a few mini-batches."""
    found = over_products(MiniBatches("tree-lstm", trees[: 4 * size], hidden, size), VARIANTS, rounds)
    whole = {name: found["cells"][name] for name in ("ms", "CPU ms")}
    over = {f"{name} / products": row["total / products"] for name, row in found.items()}
    return {"hidden": hidden, "batch": size, **whole, **over}


def tables(options: argparse.Namespace) -> Tables:
    """Everything."""
    trees = samples("tree-lstm", 1024)
    return {
        f"TreeLSTM on {source()}": [
            ratios(trees, hidden, size, options.rounds) for hidden in options.hidden for size in options.batch
        ],
    }


main = command(__doc__, tables, hidden=(64, 256, 512), batch=(1, 32, 64, 256))

if __name__ == "__main__":
    main()
