"""Arrays of an emulated GPU: NumPy's, but as strict as CuPy's about what is on the host and what is not.

CuPy refuses host arrays in functions and operators, and converts nothing to the host by itself; where it would copy a
host's index list to the device unasked, and wait, this refuses too.
"""

import types

import numpy as np

from tests.emulated.libraries import core

HOST_SCALARS = (int, float, bool, np.generic)
#: Arguments that NumPy's functions have and CuPy's lack, in version 13 or 14.
LACKING = {"take": {"mode"}, "einsum": {"out"}, "repeat": set()}
#: Functions that CuPy lacks, or that wait for the device.
MISSING = {"errstate", "einsum_path", "diff_", "repeat", "frompyfunc", "vectorize"}


class DeviceArray(np.ndarray):
    """An array [.] of the device."""

    def __array_ufunc__(self, ufunc, method, *inputs, out=(), **arguments):
        if method == "reduceat" or (method == "reduce" and ufunc not in (np.add, np.multiply)):
            raise NotImplementedError(f"CuPy has no {ufunc.__name__}.{method}")
        for x in (*inputs, *out):
            check(x, ufunc.__name__)
        given = [plain(x) for x in inputs]
        if out:
            arguments["out"] = tuple(plain(x) for x in out)
        if "where" in arguments:
            arguments["where"] = plain(arguments["where"])
        found = getattr(ufunc, method)(*given, **arguments)
        if out:
            return out[0] if len(out) == 1 else out
        return on_device(found)

    def __array_function__(self, function, kinds, arguments, named):
        return call(function, arguments, named)

    def __getitem__(self, key):
        for part in key if isinstance(key, tuple) else (key,):
            check(part, "an index")
        return on_device(plain(self)[as_plain(key)])

    def __setitem__(self, key, value):
        for part in key if isinstance(key, tuple) else (key,):
            check(part, "an index")
        for x in (self, value):
            check(x, "an assignment")
        plain(self)[as_plain(key)] = plain(value)

    def _waits(self, *_):
        raise AssertionError("a value of the device is read where no download was asked for")

    __iter__ = __array__ = _waits

    def _as_of_numpy(name):
        return lambda self, *arguments, **named: on_device(getattr(plain(self), name)(*arguments, **named))

    all, any, max, min, copy = map(_as_of_numpy, ("all", "any", "max", "min", "copy"))

    def get(self):
        return np.array(plain(self))

    def fill(self, value):
        for x in (self, value):
            check(x, "fill")
        plain(self).fill(value)


def plain(x):
    """The same memory as NumPy sees it."""
    return x.view(np.ndarray) if isinstance(x, DeviceArray) else x


def as_plain(key):
    return tuple(map(plain, key)) if isinstance(key, tuple) else plain(key)


def on_device(x):
    """The same memory as the device's; a scalar becomes an array, as in CuPy."""
    if isinstance(x, tuple | list):
        return type(x)(map(on_device, x))
    if isinstance(x, np.generic):
        x = np.asarray(x)
    if not isinstance(x, np.ndarray):
        return x
    if x.base is None:
        device_address(x)
    return x.view(DeviceArray)


def device_address(array):
    """The address of an array of the host, that is memory of the device to kernels from now on."""
    core().emulated_memory(array.ctypes.data, array.nbytes, 0)
    return array.ctypes.data


def check(x, where):
    """Refuse arrays of the host."""
    if isinstance(x, np.ndarray) and not isinstance(x, DeviceArray):
        raise TypeError(f"{where}: an array of the host where CuPy expects one of the device")


def call(function, arguments, named):
    name = function.__name__
    lacking = LACKING.get(name, set()) & named.keys()
    if lacking:
        raise TypeError(f"CuPy's {name} has no {', '.join(lacking)}")

    def given(x):
        if isinstance(x, tuple | list):
            return type(x)(map(given, x))
        if name not in ("array", "asarray", "ascontiguousarray"):
            check(x, name)
        return plain(x)

    out = named.get("out")
    found = function(*map(given, arguments), **{key: given(value) for key, value in named.items()})
    return out if out is not None else on_device(found)


class DeviceFunctions:
    """NumPy's functions on arrays of the device, those that CuPy has."""

    def __getattr__(self, name):
        found = getattr(np, name)
        if name in MISSING:
            raise AttributeError(f"CuPy has no {name}, or it waits for the device")
        if name == "lib":
            return types.SimpleNamespace(stride_tricks=types.SimpleNamespace(as_strided=_as_strided))
        if isinstance(found, np.ufunc):
            return _Ufunc(found)
        if not callable(found) or isinstance(found, type):
            return found
        return lambda *arguments, **named: call(found, arguments, named)


def _as_strided(x, shape, strides):
    return on_device(np.lib.stride_tricks.as_strided(plain(x), shape, strides))


class _Ufunc:
    """A ufunc; host scalars are as good as arrays of the device."""

    def __init__(self, ufunc):
        self._ufunc = ufunc
        self.__name__ = ufunc.__name__

    def __call__(self, *inputs, **named):
        for x in (*inputs, *([named["out"]] if named.get("out") is not None else [])):
            check(x, self.__name__)
        out = named.get("out")
        named = {key: plain(value) for key, value in named.items()}
        with np.errstate(all="ignore"):  # a GPU warns of nothing
            found = self._ufunc(*map(plain, inputs), **named)
        return out if out is not None else on_device(found)

    def __eq__(self, other):
        return isinstance(other, _Ufunc) and other._ufunc is self._ufunc

    def __hash__(self):
        return hash(self._ufunc)

    def reduce(self, x, **named):
        if self._ufunc not in (np.add, np.multiply):
            raise NotImplementedError(f"CuPy has no {self.__name__}.reduce")
        return call(self._ufunc.reduce, (x,), named)
