"""Ops of windows, from their mathematical definitions: what each entry of the result is of, by number."""

import numpy as np

from tests.windows import windows


def numbers(shape, sizes, stride, dilation, padding):
    """[entries of a window in all channels, windows]: which entry of x it is; -1: one around it."""
    whole = np.arange(np.prod(shape)).reshape(shape)
    found = windows(whole, sizes, stride, dilation, padding, fill=-1)
    return np.stack([entries.ravel() for _, entries in found], 1)


def counts(shape, sizes, stride, dilation, padding):
    rest = zip(shape[1:], sizes, stride, dilation, padding, strict=True)
    return [(size + 2 * more - (k - 1) * gap - 1) // step + 1 for size, k, step, gap, more in rest]


def seen(x, at, fill):
    """The entries of these numbers."""
    return np.where(at < 0, fill, x.ravel()[at])


def given_back(x, at, g):
    """The sum of what each entry gets."""
    out = np.zeros(x.size)
    np.add.at(out, at[at >= 0], g[at >= 0])
    return out.reshape(x.shape)


def moves_of(n, kernel_size, stride=None, padding=0, dilation=1):
    def each(given):
        return (given,) * n if isinstance(given, int) else tuple(given)

    stride = kernel_size if stride is None else stride
    return {"sizes": each(kernel_size), "stride": each(stride), "dilation": each(dilation), "padding": each(padding)}


def of_channels(x, at):
    """Numbers [channels, entries of a window, windows]."""
    return at.reshape(len(x), -1, at.shape[-1])


def max_pool(n):
    def value(x, **given):
        moves = moves_of(n, **given)
        found = seen(x, of_channels(x, numbers(x.shape, **moves)), -np.inf).max(1)
        return found.reshape(-1, *counts(x.shape, **moves))

    def pull(g, y, x, **given):
        at = of_channels(x, numbers(x.shape, **moves_of(n, **given)))
        first = seen(x, at, -np.inf).argmax(1)[:, None]
        return (given_back(x, np.take_along_axis(at, first, 1)[:, 0], g.reshape(len(x), -1)),)

    return value, pull


def avg_pool(n):
    def value(x, **given):
        moves = moves_of(n, **given)
        found = seen(x, of_channels(x, numbers(x.shape, **moves)), 0.0).mean(1)
        return found.reshape(-1, *counts(x.shape, **moves))

    def pull(g, y, x, **given):
        at = of_channels(x, numbers(x.shape, **moves_of(n, **given)))
        return (given_back(x, at, np.repeat(g.reshape(len(x), 1, -1), at.shape[1], 1) / at.shape[1]),)

    return value, pull


def unfold():
    def value(x, **given):
        return seen(x, numbers(x.shape, **moves_of(2, **{"stride": 1, **given})), 0.0)

    def pull(g, y, x, **given):
        return (given_back(x, numbers(x.shape, **moves_of(2, **{"stride": 1, **given})), g),)

    return value, pull


def convolution(n):
    def moves(weight, given):
        return moves_of(n, weight.shape[2:], **{"stride": 1, **given})

    def value(x, weight, **given):
        found = moves(weight, given)
        columns = seen(x, numbers(x.shape, **found), 0.0)
        return (weight.reshape(len(weight), -1) @ columns).reshape(-1, *counts(x.shape, **found))

    def pull(g, y, x, weight, **given):
        at = numbers(x.shape, **moves(weight, given))
        rows, of_rows = weight.reshape(len(weight), -1), g.reshape(len(weight), -1)
        return given_back(x, at, rows.T @ of_rows), (of_rows @ seen(x, at, 0.0).T).reshape(weight.shape)

    return value, pull
