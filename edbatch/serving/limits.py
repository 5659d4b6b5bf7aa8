"""Limits on what clients may take of a server."""

from typing import NamedTuple


class Limits(NamedTuple):
    """Limits of the HTTP service; `edbatch serve` has an option for each."""

    size: int  # bytes of a body
    depth: int  # of lists and objects of a sample, one in the other
    header_seconds: int  # in which the header of a connection's next request has to come
    body_seconds: float  # in which a body has to come, and an answer has to be taken, whatever the deadline
    connections: int  # that are open at a time
    stall_seconds: float  # in one round, after which `/health` says so
