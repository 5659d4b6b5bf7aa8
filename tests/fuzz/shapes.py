"""Which shapes of operands an op takes, where NumPy would broadcast or index others."""


def has_axes(x, **_):
    return len(x) > 0


def is_vector(x, **_):
    return len(x) == 1


def same(a, b, **_):
    return a == b


def affine(a, x, b):
    return b == (*a[:-1], *x[1:])


def weighted_sum(*both):
    weights, values = both[: len(both) // 2], both[len(both) // 2 :]
    return set(weights) == {()} and len(set(values)) == 1


def attention(query, *both, heads, **_):
    keys, values = both[: len(both) // 2], both[len(both) // 2 :]
    return set(keys) == {query} and len(set(values)) == 1 and all(len(x) == 1 and x[0] % heads == 0 for x in both)


def gather(x, index, axis):
    """None but one axis of the index may be longer than that of the values."""
    if not len(x) == len(index) > 0:
        return False
    others = list(zip(index, x, strict=True))
    del others[axis]
    return all(few <= size for few, size in others)


def scatter(x, index, values, axis):
    return values == index and gather(x, index, axis)


#: Per op whether shapes fit, given attributes.
FITS = {
    **dict.fromkeys(["softmax", "log_softmax", "cumsum", "pad"], has_axes),
    **dict.fromkeys(["cross_entropy", "hinge"], is_vector),
    **dict.fromkeys(["squared_distance", "l1_distance", "binary_cross_entropy", "huber"], same),
    **dict.fromkeys(["argmax", "argmin"], lambda x, axis=None, **_: axis is None or has_axes(x)),
    **dict.fromkeys(["scatter", "scatter_add"], scatter),
    "dot": lambda a, b: a == b and is_vector(a),
    "layer_norm": lambda x, gain, bias, **_: has_axes(x) and gain == bias == x[-1:],
    "affine": affine, "weighted_sum": weighted_sum, "attention": attention, "gather": gather,
}  # fmt: skip
