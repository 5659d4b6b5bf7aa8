"""Errors that a request may end with."""

from edbatch.errors import EdBatchError


class OverloadError(EdBatchError):
    """So many requests wait that one more is refused: try again later."""


class DeadlineError(EdBatchError):
    """A request was not answered in time; what it held is given back."""


class RequestError(EdBatchError):
    """A request's own fault. Programs raise it to tell who asks, over HTTP too, what is wrong with the sample."""


class BatcherError(EdBatchError):
    """No request's fault: the batcher is closed, values could not be computed, or a program returned what is none."""
