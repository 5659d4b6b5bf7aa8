"""Windows over images and sequences, one after the other, in float64 NumPy."""

import itertools

import numpy as np


def windows(x, sizes, stride, dilation, padding=None, fill=0.0):
    """Pairs: where a window stands among all, and its entries [channels, *sizes]."""
    n = len(sizes)
    x = np.pad(x, [(0, 0), *((more, more) for more in padding or (0,) * n)], constant_values=fill)
    ends = [size - (k - 1) * gap for size, k, gap in zip(x.shape[1:], sizes, dilation, strict=True)]
    starts = [range(0, end, step) for end, step in zip(ends, stride, strict=True)]
    for places in itertools.product(*map(enumerate, starts)):
        corner = [start for _, start in places]
        key = [slice(at, at + (k - 1) * gap + 1, gap) for at, k, gap in zip(corner, sizes, dilation, strict=True)]
        yield tuple(at for at, _ in places), x[(slice(None), *key)]


def of_windows(function):
    """Of a function from the entries of a window to one number for each of some channels."""

    def result(x, sizes, stride, dilation, padding=None, fill=0.0):
        found = {at: function(entries) for at, entries in windows(x, sizes, stride, dilation, padding, fill)}
        shape = [1 + max(at[axis] for at in found) for axis in range(len(sizes))]
        return np.stack([found[at] for at in np.ndindex(*shape)], -1).reshape(-1, *shape)

    return result


def unfold(x, **moves):
    return np.stack([entries.ravel() for _, entries in windows(x, **moves)], 1)


def max_pool(x, **moves):
    return of_windows(lambda entries: entries.reshape(len(entries), -1).max(1))(x, **moves, fill=-np.inf)


def avg_pool(x, **moves):
    return of_windows(lambda entries: entries.reshape(len(entries), -1).mean(1))(x, **moves)


def correlate(x, rows, groups=1, **moves):
    parts = zip(np.split(x, groups), np.split(rows, groups), strict=True)
    found = [of_windows(lambda entries, of=of: of @ entries.ravel())(part, **moves) for part, of in parts]
    return np.concatenate(found)


def convolve(x, weight, *bias, padding, stride, dilation, groups):
    moves = {"sizes": weight.shape[2:], "stride": stride, "dilation": dilation, "padding": padding}
    found = correlate(x, weight.reshape(len(weight), -1), groups, **moves)
    return found + sum(one.reshape(-1, *[1] * len(stride)) for one in bias)
