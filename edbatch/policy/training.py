"""How a policy was learned and what it reached; kept in the policy and in its file."""

import msgspec


class Training(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The record of one call of `learn`.

    Example:
        >>> Training(graphs=2, episodes=150, seconds=0.1, seed=0, batches=[28, 24], bounds=[28, 24],
        ...          heuristic="sufficient", heuristic_batches=[28, 24]).optimal
        True
    """

    graphs: int
    episodes: int
    seconds: float
    seed: int
    batches: list[int]  # per graph, by the learned policy
    bounds: list[int]  # per graph, the lower bound
    heuristic: str  # the best run-time heuristic...
    heuristic_batches: list[int]  # ...and its batches per graph

    @property
    def optimal(self) -> bool:
        """Whether every graph reached its lower bound."""
        return self.batches == self.bounds
