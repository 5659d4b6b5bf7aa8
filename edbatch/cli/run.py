"""`edbatch run`: a model over a whole file, batched by several policies side by side."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any

from edbatch.cli.arguments import add_json, check_folder, integer
from edbatch.cli.output import counted, print_json, print_table
from edbatch.files import write_atomically

if TYPE_CHECKING:
    from edbatch.data.trees import Tree
    from edbatch.models.compare import Measured, MiniBatch
    from edbatch.models.tree_lstm import TreeLSTM
    from edbatch.policy import Policy

RULES = ("none", "depth", "agenda", "sufficient")  # the first is unbatched: the others are checked against it
LEARN_FROM = 3  # mini-batches
LEAST_RUNS = 20  # of mini-batches, per policy: a small file is run several times


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "run",
        help="run a model over a file and compare policies",
        description="Run a model, with random parameters, over every tree of a file; compare the batching policies "
        f"{', '.join(RULES)} and a learned one in values, batches, memory access and time.",
    )
    parser.add_argument("model", choices=["tree-lstm"], metavar="MODEL", help="tree-lstm")
    parser.add_argument("--trees", metavar="FILE", help="bracketed trees, one per line (default: a sample)")
    parser.add_argument("--limit", type=integer(1), metavar="N", help="take the first N trees only")
    parser.add_argument("--batch-size", type=integer(1), default=64, help="trees (default: %(default)s)")
    parser.add_argument(
        "--hidden", type=integer(1), default=128, help="size of embeddings and states (default: %(default)s)"
    )
    parser.add_argument("--seed", type=integer(0), default=0, help="of the parameters (default: %(default)s)")
    parser.add_argument(
        "--policy",
        help="the policy that predicts: a file or a heuristic by name "
        f"(default: learned from the first {LEARN_FROM} mini-batches)",
    )
    parser.add_argument("--out", metavar="FILE", help="write per tree the label at its root and its probability")
    add_json(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Read, learn, compare, write.

    Raises:
        EdBatchError: the trees or the policy cannot be read, or the predictions cannot be written.
    """
    import edbatch as eb
    from edbatch.data.random_trees import sample_trees_path
    from edbatch.data.trees import read_trees
    from edbatch.data.vocabulary import Vocabulary
    from edbatch.models.compare import Sample, compare
    from edbatch.models.tree_lstm import TreeLSTM

    if arguments.out is not None:
        check_folder(arguments.out)
    chosen = None if arguments.policy is None else eb.get_policy(arguments.policy)
    path = arguments.trees or sample_trees_path()
    trees = [tree.binarized() for tree in read_trees(path)[: arguments.limit]]
    vocabulary = Vocabulary(word for tree in trees for word in tree.words if word is not None)
    labels = sorted({label for tree in trees for label in tree.labels})
    samples = [
        Sample([None if word is None else vocabulary[word] for word in tree.words], tree.children) for tree in trees
    ]
    size = arguments.batch_size
    mini_batches = [samples[start : start + size] for start in range(0, len(samples), size)]
    model = eb.ParameterCollection(seed=arguments.seed)
    lstm = TreeLSTM(model, len(vocabulary), len(labels), arguments.hidden)

    policies = {rule: eb.get_policy(rule) for rule in RULES}
    learning = None
    if chosen is None:
        _learn(lstm, mini_batches[:LEARN_FROM])  # loads compiled code, which is not to be timed
        start = perf_counter()
        chosen = _learn(lstm, mini_batches[:LEARN_FROM])
        learning = {"mini_batches": len(mini_batches[:LEARN_FROM]), "seconds": perf_counter() - start}
        name = f"{chosen.name} (learned)"
    else:
        name = arguments.policy
    policies[name] = chosen
    rounds = -(-LEAST_RUNS // len(mini_batches))
    measured = compare(lstm, mini_batches, policies, rounds)

    if arguments.out is not None:
        _write_predictions(arguments.out, measured[name], labels)
    facts = {
        "model": arguments.model,
        "file": str(path),
        **_sizes(trees),
        "labels": len(labels),
        "hidden": arguments.hidden,
        "seed": arguments.seed,
        "batch_size": size,
        "mini_batches": len(mini_batches),
        "rounds": rounds,
        "policy": name,
        "learning": learning,
        "predictions": arguments.out,
    }
    if arguments.json:
        print_json(facts | {"policies": [_as_json(name, of, len(trees)) for name, of in measured.items()]})
    else:
        _print(facts, measured)


def _learn(lstm: TreeLSTM, mini_batches: Sequence[MiniBatch]) -> Policy:
    from edbatch.models.compare import record
    from edbatch.policy import learn

    return learn([record(lstm, mini_batch) for mini_batch in mini_batches])


def _write_predictions(path: str, measured: Measured, labels: list[int]) -> None:
    best = measured.probabilities.argmax(axis=1)
    lines = [f"{labels[at]} {row[at]:.6f}\n" for at, row in zip(best, measured.probabilities, strict=True)]
    write_atomically(path, "".join(lines))


def _sizes(trees: list[Tree]) -> dict[str, int]:
    words = sum(word is not None for tree in trees for word in tree.words)
    return {"trees": len(trees), "words": words, "nodes": sum(map(len, trees))}


def _as_json(name: str, measured: Measured, trees: int) -> dict[str, Any]:
    counts = ("batches", "lower_bound", "viewed", "gathered", "gathered_bytes", "fallbacks")
    return {
        "policy": name,
        "trees_per_second": trees / measured.total_seconds,
        **{count: getattr(measured, count) for count in counts},
        "seconds": measured.seconds,
        "largest_difference": measured.difference,
    }


def _print(facts: dict[str, Any], measured: dict[str, Measured]) -> None:
    rounds = "once" if facts["rounds"] == 1 else f"{facts['rounds']} times (the median counts)"
    sizes = ", ".join(counted(facts[f"{noun}s"], noun) for noun in ("tree", "word", "node", "label"))
    print(
        f"{facts['model']}, hidden size {facts['hidden']:,}, random parameters (seed {facts['seed']})\n"
        f"{facts['file']}: {sizes}\n"
        f"{counted(facts['mini_batches'], 'mini-batch')} of {counted(facts['batch_size'], 'tree')}, "
        f"each run {rounds} by every policy in turn, after a warm-up"
    )
    if learning := facts["learning"]:
        source = counted(learning["mini_batches"], "mini-batch")
        print(f"policy {facts['policy']} from {source} in {learning['seconds']:.2f} s")
    print()
    columns = list(measured.values())
    unbatched = columns[0].total_seconds
    per_mini_batch = 1e3 / facts["mini_batches"]
    rows: list[list[Any]] = [
        ["trees/s", *(round(facts["trees"] / of.total_seconds) for of in columns)],
        ["times unbatched", *(f"{unbatched / of.total_seconds:.2f}" for of in columns)],
        ["largest difference from unbatched", *(f"{of.difference:.1e}" for of in columns)],
        [],
        ["batches", *(of.batches for of in columns)],
        ["lower bound", *(of.lower_bound for of in columns)],
        ["operands used in place", *(of.viewed for of in columns)],
        ["operands gathered", *(of.gathered for of in columns)],
        ["gathered, MiB", *(f"{of.gathered_bytes / 2**20:,.1f}" for of in columns)],
    ]
    if any(of.fallbacks for of in columns):
        rows.append(["decisions in unseen states", *(of.fallbacks for of in columns)])
    rows.append([])
    rows += [
        [f"{stage}, ms", *(f"{per_mini_batch * of.seconds[stage]:.2f}" for of in columns)]
        for stage in columns[0].seconds
    ]
    rows.append(["sum per mini-batch, ms", *(f"{per_mini_batch * of.total_seconds:.2f}" for of in columns)])
    print_table(["", *measured], rows)
    if facts["predictions"]:
        print(f"wrote {facts['predictions']}: the predictions of {facts['policy']}")
