"""Arrays wherever they are."""


def on_host(array):
    """The same numbers as a NumPy array; arrays of a GPU have a method for that."""
    return array.get() if hasattr(array, "get") else array
