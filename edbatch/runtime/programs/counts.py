"""What the rounds of programs over values came to, for the report."""

from __future__ import annotations

from dataclasses import dataclass

from edbatch.runtime.report import Report

LEAST = 8  # rounds; what takes fewer needs no advice
FEW = 4.0  # programs a round


@dataclass
class Counts:
    """Of all calls of `edbatch.run` in a graph.

    Attributes:
        count: how many rounds.
        waited: how many programs, or parts of some, waited in them, in all.
        in_flight: the most programs that ran at a time.
        seconds: that they took, with what was computed in them.
        batches: that were run in them.
    """

    count: int = 0
    waited: int = 0
    in_flight: int = 0
    seconds: float = 0.0
    batches: int = 0

    def tell(self, report: Report) -> None:
        """Write them into a report, and advice where they are small."""
        report.rounds, report.waited, report.in_flight = self.count, self.waited, self.in_flight
        report.seconds_of_rounds = self.seconds
        if self.count < LEAST or self.waited >= FEW * self.count:
            return
        small = f"{self.count:,} rounds of {self.waited / self.count:.1f} programs"
        if self.in_flight < FEW:
            why = f"at most {self.in_flight} ran at a time. Give `run` a mini-batch of samples, and no low `limit`."
        else:
            why = (
                f"though {self.in_flight} ran at a time: a few went on when the others had ended. Begin the next "
                "samples when some end (`limit`), or put samples of like length together."
            )
        report.advice.append(f"Programs waited in {small}, {why}")
