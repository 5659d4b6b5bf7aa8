"""Kernels made and called by hand, on the CPU and on the emulated GPU."""

import itertools
import math

import numpy as np

from edbatch.kernels.cpu.machine_code import address_of
from edbatch.kernels.cpu.pointers import call_kernel
from edbatch.kernels.cuda.backend import COMMON, text_of
from edbatch.kernels.cuda.geometry import spread
from edbatch.kernels.language import cuda
from edbatch.kernels.language.analysis import analysis_of
from edbatch.kernels.language.functions import FUNCTIONS
from edbatch.kernels.language.given import filled
from edbatch.kernels.language.ir import NEXT, Compute, Kernel, Load, Place, Store
from tests.emulated.arrays import device_address
from tests.emulated.driver import EmulatedDriver
from tests.kernels.language.random_kernels import given


def of_function(name, dtype="float32"):
    """The kernel of one function, of as many arrays as it has arguments."""
    count = len(FUNCTIONS[name].arguments)
    steps = [Load(at, (NEXT,)) for at in range(count)]
    compute = Compute(name, tuple(range(count)))
    return Kernel(1, 0, (Place(),) * (count + 1), (*steps, compute), (Store(count, count, (NEXT,)),), dtype=dtype)


def run(kernel, *arrays):
    """Of an element-wise kernel, what it writes to its last place, given flat arrays for the others."""
    out = np.full_like(arrays[0], 7)
    given = filled(kernel, [out.size], [(array.ctypes.data, 0, 0) for array in (*arrays, out)])
    call_kernel.python(address_of(kernel), 0, 1, given.ctypes.data, 0)
    return out


def on_cpu(kernel, call):
    """Run any kernel, in the memory of its call."""
    words = given(kernel, call)
    entries = int(np.prod(call.sizes[kernel.outer :]))
    scratch = np.full(analysis_of(kernel).scratch_rows * entries + 1, np.nan, kernel.dtype)
    call_kernel.python(address_of(kernel), 0, call.n, words.ctypes.data, scratch.ctypes.data)


def module_of(kernels):
    """CUDA C++ of kernels by name."""
    return text_of(COMMON) + "".join(cuda.source_of(kernel, name) for name, kernel in kernels.items())


def geometries(kernel, call):
    """Grids and blocks that compute all."""
    analysis = analysis_of(kernel)
    axes = analysis.outer if analysis.grouped else analysis.outer | analysis.inner
    items = call.n
    if kernel.list_axis in axes:
        items = int(call.offsets[-1] - call.offsets[0])
    each = math.prod(call.sizes[axis] for axis in axes if axis != kernel.list_axis)
    if not analysis.grouped:
        x, y, z, *block = spread(items, each)
        return [((x, y, z), block)]
    lanes = ((1, 4), (1, 64)) if analysis.ordered else ((1, 4), (32, 2), (64, 1))
    return [((max(1, min(3, -(-items * each // y))), 1, 1), (lanes, y)) for lanes, y in lanes]


def launch(handle, n, words, grid, block):
    """Run a kernel of the emulated GPU; `words`: what it is given."""
    EmulatedDriver().run(handle, grid, block, n, np.ctypeslib.as_ctypes(words))


def on_gpu(kernel, n, size, *arrays, geometry=None):
    """Run an element-wise kernel over one axis on the emulated GPU; rows of arrays (one: for all), or (array, list)."""
    (handle,) = EmulatedDriver().load(module_of({"kernel": kernel}), ["kernel"])
    places = []
    for array in arrays:
        array, listed = array if isinstance(array, tuple) else (array, None)
        distance = array.strides[0] if len(array) > 1 or listed is not None else 0
        places.append((device_address(array), distance, 0 if listed is None else device_address(listed)))
    x, y, z, *block = geometry or spread(n, size)
    launch(handle, n, filled(kernel, [size], places), (x, y, z), block)


def pairs(values):
    """Every value with every other: two flat arrays."""
    a, b = zip(*itertools.product(values, values), strict=True)
    return np.array(a, values.dtype), np.array(b, values.dtype)
