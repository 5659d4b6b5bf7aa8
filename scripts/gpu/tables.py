"""What `scripts.gpu.check` found out, as Markdown."""

from __future__ import annotations

from typing import Any

from scripts.bench.report import show as show_table

COLUMNS = ("batch", "hidden", "precision", "by", "ms", "ms prepared", "ms in a row", "host ms", "device ms",
           "sentences/s", "batches", "launches", "waits", "allocations", "GFLOP", "MB", "% of matrix rate",
           "% of copy bandwidth", "memory, MB", "ratio", "ratio prepared", "ratio in a row", "profile")  # fmt: skip


def show(results: dict[str, Any]) -> None:
    """Print everything; what is missing had no time, or failed."""
    if results["correctness"]:
        show_table("Correctness: largest difference over the largest entry", results["correctness"])
    if "tests" in results:
        print(f"\nTests on the device: {results['tests']['tests']}")
        if not results["tests"]["right"]:
            print(results["tests"]["output"])
    if results["ceilings"]:
        show_table("Ceilings", [{"ceiling": name, "measured": value} for name, value in results["ceilings"].items()])
    if results["asked for"]:
        show_table(f"Asked for, of a data-centre GPU ({results['data']} data)", results["asked for"])
    good = [row for row in results["points"] if "error" not in row]
    for model, mode in dict.fromkeys((row["model"], row["mode"]) for row in good):
        rows = [row for row in good if (row["model"], row["mode"]) == (model, mode)]
        columns = [name for name in COLUMNS if any(name in row for row in rows)]
        show_table(f"{model}, {mode}, {results['data']} data",
                   [{name: row.get(name, "") for name in columns} for row in rows])  # fmt: skip
    names = ("model", "mode", "batch", "hidden", "precision", "by")
    failed = [
        {"part": " ".join(str(row[name]) for name in names), "error": row["error"]}
        for row in results["points"]
        if "error" in row
    ]
    if failed or results["failed"]:
        show_table("Failed", [*results["failed"], *failed])
    if results["not run"]:
        print("\nNot run, for want of time: " + "; ".join(results["not run"]))
    print()
    for name, value in results["machine"].items():
        print(f"- {name}: {value}")
