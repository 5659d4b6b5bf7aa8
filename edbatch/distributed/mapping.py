"""map: to come."""


def map() -> None:
    """To come."""
