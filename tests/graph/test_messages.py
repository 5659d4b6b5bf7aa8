"""What ops, expressions and arrays refuse: each message, twice in a row, and the graph is whole afterwards."""

import operator

import numpy as np
import pytest

import edbatch as eb
from tests.refused import Error, check, rows_of

# fmt: off
SHAPES = [
    # of element-wise ops, products and comparisons
    ("x > m[:, :2]", Error, "greater([3], [2,2]): shapes do not broadcast"),
    ("eb.where(x, eb.ones(2), 0)", Error, "where([3], [2], []): shapes do not broadcast"),
    ("x + np.ones(2)", Error, "add([3], [2]): shapes do not broadcast"),
    ("eb.ones((2, 3)) @ eb.ones((5, 4, 3))", Error, "matmul(…inner sizes differ: 3 and 4"),
    ("eb.ones((5, 2, 3)) @ eb.ones(4)", Error, "matmul(…inner sizes differ: 3 and 4"),
    ("eb.ones((5, 2, 3)) @ eb.ones((4, 3, 2))", Error, "stacks of (5,) and (4,) do not broadcast"),
    ("s @ eb.ones((4, 3, 2))", Error, "expected vectors, matrices or stacks"),
    ("x @ int", Error, "matmul: expected an expression, a parameter, a number or an array, got type"),
    ("x == x", Error, "== of an expression…eb.equal"),
    ("x != x", Error, "eb.equal"),
    ("x == None", Error, "== of an expression"),
    ("1.0 in x", Error, "== of an expression"),
    ("x == np.ones(3)", Error, "== of an expression"),
    ("np.ones(3) == x", Error, "== of an expression"),
    ("W == [[1, 2], [3, 4]]", Error, "== of"),
    ("W != 3", Error, "== of"),
    ("bool(x > 0)", Error, "not known before it runs…eb.where"),
    ("W and 1", Error, "not known before it runs"),
    ("bool(xs)", Error, "truth of ExpressionArray"),
    # of reductions, lists and places
    ("eb.max([eb.ones(2), eb.ones(1)])", Error, "max([...]): expected expressions of one shape, got [2] at 0 and [1] "),
    ("eb.min([eb.ones(2), eb.ones(1)])", Error, "min([...]): expected expressions of one shape"),
    ("eb.sum([eb.ones(2), eb.ones(1)])", Error, "sum([...]): expected expressions of one shape"),
    ("eb.maximum([eb.ones(2), eb.ones(1)])", Error, "maximum([...]): expected expressions of one shape"),
    ("eb.minimum([eb.ones(2), eb.ones(1)])", Error, "minimum([...]): expected expressions of one shape"),
    ("eb.sum([eb.ones(2), wide])", Error,
        "sum([...]): expected expressions of one dtype, got float32 at 0 and float64"),
    ("eb.max([])", Error, "max([]): expected at least one expression"),
    ("eb.sum(iter([]))", Error, "at least one expression"),
    ("eb.sum([], like='x')", Error, "sum: like"),
    ("eb.sum(eb.ones(3), like='x')", Error, "sum: like: expected it with a list"),
    ("eb.sum(m, 1.0)", Error, "sum([2,3])"),
    ("eb.sum(m, (0, 1.0))", Error, "sum([2,3])"),
    ("eb.sum(m, x)", Error, "sum([2,3])"),
    ("eb.sum(m, 2)", Error, "sum([2,3])"),
    ("eb.sum(m, axis=False)", Error, "expected an integer"),
    ("eb.sum([x, x], axis=0)", Error, "of a list: expected no axis"),
    ("eb.mean([x, x], keepdims=True)", Error, "of a list: expected no axis"),
    ("eb.logsumexp([m, m], axis=(0, 1))", Error, "of a list: expected no axis"),
    ("eb.max([x, x], axis=5)", Error, "of a list: expected no axis"),
    ("eb.maximum(x)", Error, "a list"),
    ("eb.minimum(x[0])", Error, "a list"),
    ("eb.stack(m[0, 0])", Error, "a list"),
    ("eb.concatenate(x)", Error, "a list of at least one expression"),
    ("eb.concatenate(None)", Error, "a list of at least one expression"),
    ("eb.concatenate([])", Error, "a list of at least one expression"),
    ("eb.concatenate([s, s], axis=1)", Error, "no axis 1"),
    ("eb.concatenate([s, m])", Error, "except on axis"),
    ("eb.concatenate([x, [[1, 2], [3]]])", Error, "expected"),
    ("eb.stack([x, x], axis=True)", Error, "expected an integer"),
    ("x.transpose(0, 1)", Error, ".permute(0, 1) ….swapaxes(0, 1)"),
    ("eb.transpose(m, (True, False))", Error, "expected an integer"),
    ("x.norm(2)", Error, "norm(…expected axis=...; this is the Euclidean norm"),
    ("m.squeeze(0)", Error, "expected an axis of size 1"),
    ("eb.unsqueeze(x, 1.0)", Error, "expected an integer axis, got 1.0"),
    ("eb.swapaxes(m, 0, 1.0)", Error, "expected an integer axis, got 1.0"),
    ("eb.reshape(x, (2.5, 6))", Error, "expected"),
    ("eb.reshape(x, (2**62 + 1, 4))", Error, "reshape"),
    ("eb.reshape(x, (3, True))", Error, "expected a shape of integers"),
    ("eb.zeros(2.0)", Error, "expected a shape of integers, got 2.0"),
    ("eb.zeros(True)", Error, "expected a shape of integers"),
    ("eb.zeros({2: 3})", Error, "expected a shape of integers"),
    ("eb.zeros(np.zeros((0, 3), int))", Error, "expected a shape of integers"),
    ("eb.split(x, 2.0)", Error, "expected"),
    ("eb.split(x, True)", Error, "expected an integer"),
    ("eb.split(x, 2, axis='0')", Error, "expected"),
    ("x.chunk('ab')", Error, "expected"),
    ("x.chunk({1, 2})", Error, "expected"),
    # of what is empty
    ("eb.input([])", Error, "at least"), ("x + np.zeros(0)", Error, "at least"), ("eb.zeros(0)", Error, "at least"),
    ("np.zeros((0, 3)) @ x", Error, "at least"), ("eb.concatenate([x, np.zeros(0)])", Error, "at least"),
    ("x[1:1]", Error, "empty"), ("eb.split(x, [0, 3])", Error, "expected sizes of"), ("eb.split(x, 0)", Error, "got 0"),
    ("eb.reshape(x, (0, 3))", Error, "expected sizes"), ("model.add_parameters(0)", Error, "expected sizes"),
    ("model.add_lookup_parameters((0, 3))", Error, "expected sizes"),
]

NUMBERS = [
    # what enters a graph
    ("eb.input([1, 2**70])", Error, "integers beyond 64 bits"),
    ("eb.input(2**64)", Error, "integers beyond 64 bits"),
    ("eb.input(Kept())", Error, "input: expected an array of numbers …requires grad"),
    ("eb.input(torch.ones(3, requires_grad=True))", Error, "input: expected an array of numbers …detach"),
    ("eb.input(masked)", Error, "mask"), ("x * masked", Error, "mask"), ("eb.input([masked, masked])", Error, "mask"),
    ("eb.concatenate([x, masked])", Error, "mask"), ("x.backward(masked)", Error, "mask"),
    ("eb.input(1 + 2j)", Error, "number"), ("x * np.complex64(3)", Error, "number"), ("x.backward(1j)", Error,
        "number"),
    ("eb.input([1 + 2j, 3])", Error, "number"), ("np.array([1j, 3, 1]) + x", Error, "complex"),
    ("x ** 1j", Error, "number"), ("eb.scalar(np.complex128(3))", Error, "number"),
    ("x * 10**400", Error, "too large"),
    ("eb.attention(np, [x], [x])", Error, "attention: expected an expression"),
    *((f"eb.attention(type('Odd', (), {{'shape': {shape}}})(), [x], [x])", Error, "attention: expected an expression")
      for shape in ("('a',)", "(10**400,)", "(None,)")),
    ("torch.ones(3) + x", Error, "got Tensor; eb.input(...) takes it, as a constant"),
    ("x @ torch.ones(3)", Error, "got Tensor; eb.input(...) takes it, as a constant"),
    ("eb.concatenate([x, torch.ones(3)])", Error, "got Tensor; eb.input(...) takes it, as a constant"),
    ("eb.tanh(torch.ones(3))", Error, "got Tensor; eb.input(...) takes it, as a constant"),
    # numbers of a type are no expressions, which would be read silently
    ("eb.leaky_relu(x, x[0])", Error, "expected a number, got Expression"),
    ("eb.elu(x, x[0])", Error, "expected a number, got Expression"),
    ("eb.clip(x, -1, x[0])", Error, "expected a number, got Expression"),
    ("eb.clip(x, high=x[0])", Error, "expected a number, got Expression"),
    ("eb.scale_gradient(x, x[0])", Error, "expected a number, got Expression"),
    ("eb.hinge(x, 0, x[0])", Error, "expected a number, got Expression"),
    ("eb.huber(x, x, x[0])", Error, "expected a number, got Expression"),
    ("eb.layer_norm(x, x, x, x[0])", Error, "expected a number, got Expression"),
    ("eb.dropout(x, x[0])", Error, "expected a number, got Expression"),
    ("eb.cross_entropy(x, 1, x[0])", Error, "expected a number, got Expression"),
    ("eb.layer_norm(x, x, x, epsilon=-1)", Error, "expected a"),
    ("eb.layer_norm(x, x, x, epsilon=float('nan'))", Error, "expected a"),
    ("eb.attention(x, [x], [x], scale=float('nan'))", Error, "expected a"),
    ("eb.attention(x, [x], [x], scale=float('inf'))", Error, "expected a"),
    ("eb.huber(x, x, 0.0)", Error, "delta"),
    ("eb.dropout(x, 1.0)", Error, "rate"),
    ("eb.dropout(x, 0.5, -1)", Error, "dropout: seed: expected an integer"),
    ("eb.dropout(x, 0.5, 2**31)", Error, "dropout: seed: expected an integer"),
    ("eb.dropout(x, 0.5, '1')", Error, "dropout: seed: expected an integer"),
    ("eb.seed(-1)", Error, "seed: expected an integer"), ("eb.seed(2**64)", Error, "seed: expected an integer"),
    ("eb.seed(None)", Error, "seed: expected an integer"), ("eb.Graph(seed=1.5)", Error, "seed: expected an integer"),
    # as numbers of Python
    ("float(x)", Error, "expected one entry, there are"), ("int(W)", Error, "expected one entry, there are"),
    ("x.item()", Error, "expected one entry, there are"), ("'{:.2f}'.format(W)", Error,
        "expected one entry, there are"),
    ("round(x)", Error, "expected one entry"), ("float(xs[:, 0])", Error, "as a number: expected one expression"),
    ("xs.item()", Error, "as a number: expected one expression"),
    ("len(s)", Error, "expected at least one axis"), ("list(s)", Error, "expected at least one axis"),
    ("eb.forward(None)", Error, "expected"), ("eb.forward([1])", Error, "expected"),
    ("eb.forward(np.ones(2))", Error, "expected"), ("xs.backward()", Error,
        "backward of ExpressionArray(3 expr…eb.sum"),
    ("np.asarray(xs)", Error, "is not an array; expected its .value()"),
    # graphs and options
    ("eb.Graph(check_nan='no')", Error, "check_nan: expected True or False"),
    ("eb.Graph(check_nan=np.ones(2))", Error, "check_nan: expected True or False"),
    ("eb.options(training=2.0).__enter__()", Error, "training: expected True"),
    ("eb.options(training=np.ones(2)).__enter__()", Error, "training: expected True"),
    ("eb.options(precision='float16').__enter__()", Error, "expected one of float32, tf32, bf16"),
    ("eb.options(precision=[]).__enter__()", Error, "expected one of float32, tf32, bf16"),
    ("eb.options({'training': False}).__enter__()", Error, "options by name"),
    ("eb.options(speed=True).__enter__()", Error, "no option 'speed'; there are"),
    ("eb.learn(None)", Error, "learn: "), ("eb.learn([3])", Error, "learn: "), ("eb.learn([])", Error, "learn: "),
    # other graphs
    ("x * far", Error, "another graph"), ("eb.huber(x, far)", Error, "another graph"),
    ("eb.where(x, far, 0.5)", Error, "another graph"), ("eb.scatter(x, [0, 1, 2], far, 0)", Error, "another graph"),
    ("eb.dots(x, [far])", Error, "another graph"), ("eb.dots(far, [x])", Error, "another graph"),
    ("eb.softmax([x, far])", Error, "another graph"), ("eb.gather(x, far, 0)", Error, "another graph"),
    ("eb.weighted_sum([far[0]], [x])", Error, "another graph"), ("eb.attention(x, [far], [x])", Error, "another graph"),
    ("eb.attention(far, pair, pair)", Error, "another graph"),
    ("xs * far[:2]", Error, "operand 1 is an expression of another graph; expected all…eb.input(x.value())"),
    ("eb.array([xs, far[:2]])", Error, "part 1 is of another graph"),
    ("eb.forward([x, far])", Error, "value 1: an expression of another graph"),
]

INDICES = [
    ("m[[0], [1]]", Error, "at most one list, got 2"), ("m[[2]]", Error, "index 2 is out of range for 2 entries"),
    ("m[[0.5]]", Error, "a list of integers, or of 2 truth values"), ("m[[[0, 1]]]", Error, "a list of integers"),
    ("m[[0, [1]]]", Error, "a list of integers"), ("m[[True]]", Error, "a list of integers, or of 2 truth values"),
    ("m[0, 0, [0]]", Error, "too many indices for 2 axes"), ("m[None, 0, 0, 0]", Error, "too many indices for 2 axes"),
    ("m[..., None, ...]", Error, "too many indices"), ("m[True]", Error, "expected an integer, got bool"),
    ("m[1.0]", Error, "expected an integer, got float"), ("m[0, 1.0]", Error, "expected an integer, got float"),
    ("m['a']", Error, "expected an integer, got str"), ("x[10**5000]", Error, "out of range"),
    ("m[:, [0, 3]]", Error, "[2,3][:, [0, 3]]: index 3 is out of range for 3 entries"),
    ("m[1.0, None]", Error, "expected an integer"), ("m[True, None]", Error, "expected an integer"),
    ("eb.argmax(m, (0, 1))", Error, "expected an axis"), ("eb.argmax(m, 2)", Error, "no axis 2"),
    ("eb.one_hot(3, 3)", Error, "one_hot: index 3 is out of range for 3 entries"),
    ("eb.one_hot([1, 3], 3)", Error, "out of range"), ("eb.one_hot(1.5, 3)", Error, "integer"),
    ("eb.one_hot('a', 3)", Error, "integer"), ("eb.one_hot(True, 3)", Error, "integer"),
    ("eb.one_hot(1, 3.0)", Error, "integer"), ("eb.gather(m, [0, 1], 0)", Error, "axes of the values"),
    ("eb.gather(m, [[0], [1], [0]], 1)", Error, "longer"), ("eb.gather(m, [[0, 2, 0]], 0)", Error, "out of range"),
    ("eb.gather(m, [[0.5]], 0)", Error, "expected integers"), ("eb.gather(m, [[]], 0)", Error, "expected integers"),
    ("eb.gather(m, [[0]], 2)", Error, "no axis 2"), ("eb.scatter(m, [[0]], eb.zeros((1, 2)), 0)", Error,
        "as many values"),
    ("eb.scatter_add(m, [[0, 0]], eb.zeros(2), 0)", Error, "as many values"),
    ("eb.scatter(m, [[-3, 0, 0]], m[:1], 0)", Error, "out of range"), ("eb.cumsum(m, 2)", Error, "no axis 2"),
    ("eb.cumsum(m, None)", Error, "integer axis"),
    ("eb.gather(x, masked_index, 0)", Error, "expected an array without a mask"),
    ("eb.one_hot(masked_index, 4)", Error, "expected an array without a mask"),
    ("eb.gather(x, torch.tensor([1.0], requires_grad=True), 0)", Error,
        "expected integers or an expression as the index"),
    ("eb.scatter(x, torch.tensor([1], dtype=torch.bfloat16), s[None], 0)", Error, "expected integers or an expression"),
    ("eb.argmax(eb.input(large))", Error, "[1,16777218]…apart"), ("eb.top_k(eb.input(large), 2)", Error, "apart"),
    ("eb.gather(eb.input(large), eb.input([[0.0, 1.0]]), axis=1)", Error, "apart"),
    ("eb.top_k(m, 4)", Error, "k in [1, 3]"), ("eb.top_k(m, 0)", Error, "at least 1"), ("eb.top_k(s, 1)", Error,
        "no axes"),
    ("eb.top_k(x, 2.0)", Error, "k: expected an integer, got 2.0"), ("eb.top_k(x, True)", Error, "expected an integer"),
    ("eb.k_max_pool(m, (1, 2))", Error, "k: expected one integer"), ("eb.pick(x, 3)", Error, "out of range"),
    ("eb.lookup(E, [1, 2])", Error, "got list; several rows, as a matrix, are E[[1, 2]]"),
    ("E[3]", Error, "lookup…out of range"), ("E[1.0]", Error, "expected an integer"), ("E[[0, 3]]", Error, "lookup"),
    ("E[[]]", Error, "at least one"), ("E[()]", Error, "number of one row…E[[0, 1]]…eb.parameter(E)"),
    ("E[0:2, 1]", Error, "number of one row…E[[0, 1]]…eb.parameter(E)"),
    ("E[..., 0]", Error, "number of one row…eb.parameter(E)"), ("E[[0, 1], 1]", Error, "number of one row"),
    ("E[None, 0]", Error, "number of one row"),
]

LOSSES = [
    ("eb.cross_entropy(x, 1.0)", Error, "expected an integer, got float"),
    ("eb.cross_entropy(x, 1.0, label_smoothing=0.1)", Error, "expected an integer, got float"),
    ("eb.cross_entropy(x, 5, label_smoothing=0.1)", Error, "out of range for 3"),
    ("eb.cross_entropy(x, [0.5, 0.5])", Error, "one label or a distribution"),
    ("eb.cross_entropy(x, np.eye(3))", Error, "one label or a distribution"),
    ("eb.cross_entropy(x, 'cat')", Error, "expected an integer, got str"),
    ("eb.cross_entropy(x, 1, label_smoothing=1.5)", Error, "label_smoothing in [0, 1]"),
    ("eb.cross_entropy(x, 1, label_smoothing=float('nan'))", Error, "label_smoothing in [0, 1]"),
    ("eb.cross_entropy(x, 1, label_smoothing='much')", Error, "expected a number, got str"),
    ("eb.cross_entropy(x, [np.nan, 0, 1])", Error, "cross_entropy: label: expected"),
    ("eb.cross_entropy(x, np.array([-1, 1, 1]))", Error, "cross_entropy: label: expected"),
    ("eb.cross_entropy(x, (0.5, 0.6, -0.1))", Error, "cross_entropy: label: expected"),
    ("eb.cross_entropy(x, [[1, 2], [3]])", Error, "cross_entropy: label: expected"),
    ("eb.cross_entropy(x, ['a', 'b', 'c'])", Error, "cross_entropy: label: expected"),
    ("eb.binary_cross_entropy(s, 1.5)", Error, "binary_cross_entropy: target: expected probabilities, got"),
    ("eb.binary_cross_entropy(s, np.nan)", Error, "binary_cross_entropy: target: expected probabilities, got"),
    ("eb.binary_cross_entropy(x, np.array([0.0, 2.0, 1.0]))", Error, "target: expected probabilities, got"),
    ("eb.hinge(x, 4)", Error, "out of range"), ("eb.hinge(x, 1, '1')", Error, "number"),
]

LISTS = [
    ("eb.attention(x, [], [])", Error, "attention([]): expected at least one expression"),
    ("eb.weighted_sum([], [])", Error, "weighted_sum([]): expected at least one expression"),
    ("eb.dots(x, [])", Error, "dots([]): expected at least one expression"),
    ("eb.softmax([])", Error, "softmax([]): expected at least one expression"),
    ("eb.ExpressionList([])", Error, "ExpressionList([]): expected at least one expression"),
    ("eb.attention(x, [x, x[:2]], [x, x])", Error, "expected expressions of one shape, got [3] at 0 and [2] at 1"),
    ("eb.attention(x, pair, [x, x[:2]])", Error, "expected expressions of one shape, got [3] at 0 and [2]"),
    ("eb.softmax([x, x[:2]])", Error, "expected expressions of one shape, got [3] at 0 and [2] at 1"),
    ("eb.softmax([x, x], axis=0)", Error, "softmax of a list: expected no axis"),
    ("eb.attention(x, [x, x], [x])", Error, "attention: expected lists of one length, got 2 and 1"),
    ("eb.attention(x, pair, [x])", Error, "attention: expected lists of one length, got 2 and 1"),
    ("eb.weighted_sum([1.0], [x, x])", Error, "weighted_sum: expected lists of one length, got 1 and 2"),
    ("eb.weighted_sum([x], [x])", Error, "expected weights that are scalars"),
    ("eb.attention(x[:2], [x], [x])", Error, "expected a query and keys that are vectors of one size"),
    ("eb.attention(x, [x], [eb.ones(2)], heads=2)", Error, "expected sizes of keys and values that 2 heads share"),
    ("eb.attention(x, [x], [x], heads=0)", Error, "heads"), ("eb.attention(x, [x], [x], heads=0.5)", Error, "heads"),
    ("eb.attention(x, [x], [x], scale=s)", Error, "scale"),
    ("eb.attention(np.zeros(0), [x], [x])", Error, "attention: expected a query with entries"),
    *((f"{call}", Error, "got ExpressionList") for call in (
        "eb.tanh(pair)", "eb.add(pair, pair)", "x + pair", "eb.pick(pair, 1)", "eb.where(pair, x, x)",
        "eb.reshape(pair, (1, 3))", "eb.split(pair, 3)", "eb.cell(lambda x: x * 2)(pair)", "eb.elu(pair)",
    )),
]

WINDOWS = [
    ("eb.conv2d(image, W4, stride=0)", Error, "stride…at least 1"),
    ("eb.conv2d(image, W4, stride=1.5)", Error, "stride: expected an integer, or 2, got 1.5"),
    ("eb.conv1d(image[0], W4[0], stride=1.5)", Error, "stride: expected an integer, got 1.5"),
    ("eb.conv2d(image, W4, stride=(1, 1, 1))", Error, "stride: expected an integer, or 2"),
    ("eb.conv2d(image, W4, padding=-1)", Error, "padding…at least 0"),
    ("eb.conv2d(image, W4, padding='same', stride=(1, 2))", Error, "stride of 1 for padding"),
    ("eb.conv2d(image, W4, padding='full')", Error, "padding: expected an integer"),
    ("eb.conv2d(image[0], W4, padding='same')", Error, "expected [channels, height, width"),
    ("eb.conv2d(image, W4, dilation=3)", Error, "room for a window of 4 x 4"),
    ("eb.conv2d(image, W4, groups=2)", Error, "expected weights"), ("eb.conv2d(image, W4[0])", Error,
        "expected weights"),
    ("eb.conv2d(image, W4, groups=1.5)", Error, "groups"),
    ("eb.conv2d(image, W4, eb.zeros(2))", Error, "expected a bias of 4"),
    ("eb.conv1d(image, W4)", Error, "expected [channels, length]"),
    ("eb.max_pool2d(image, 4)", Error, "room for a window"), ("eb.max_pool2d(image, 2, padding=2)", Error,
        "half a window"),
    ("eb.max_pool2d(image, 0)", Error, "kernel_size…at least 1"), ("eb.max_pool1d(m, True)", Error,
        "expected an integer"),
    ("eb.avg_pool1d(image, 2)", Error, "expected [channels, length]"),
    ("eb.unfold(image[0], 2)", Error, "expected [channels, height, width]"),
    ("eb.unfold(image, (2, 2, 2))", Error, "expected an integer, or 2"), ("eb.unfold(image, 'ab')", Error,
        "kernel_size"),
    ("eb.pad(image, (1, 2, 3))", Error, "expected an integer, a pair"), ("eb.pad(image, -1)", Error, "at least 0"),
    ("eb.pad(image, ((1, 1), (1, 1)))", Error, "expected an integer, a pair"), ("eb.pad(x, 1.0)", Error, "integer"),
    ("eb.pad(image, 1, 'a')", Error, "constant_values"), ("eb.pad(s, 1)", Error, "at least one axis"),
]

ARRAYS = [
    ("xs[3]", Error, "entries 3 of 3 expressions: index 3 is out of range"),
    ("xs[[0, -4]]", Error, "index -4 is out of range for 3 entries"), ("xs[2**70]", Error,
        "out of range for 3 entries"),
    ("xs[1.5]", Error, "of 3 expressions: expected an integer, a slice, a list"),
    ("xs[[True, False]]", Error, "of 3 expressions: expected an integer, a slice, a list"),
    ("xs[None]", Error, "of 3 expressions: expected an integer, a slice, a list"),
    ("xs[[[0], [1, 2]]]", Error, "of 3 expressions: expected an integer, a slice, a list"),
    ("xs['a':2]", Error, "of 3 expressions: slice"), ("xs[:, 2]", Error, "index 2 is out of range for 2 entries"),
    ("xs + ys", Error, "operand 1 is an array of expressions: expected 3 entries, got 4"),
    ("eb.stack([xs, ys])", Error, "operand 1 is an array of expressions: expected 3 entries, got 4"),
    ("eb.pick(xs, np.zeros(4, int))", Error, "expected an integer for each of 3 entries, got 4"),
    ("eb.array([xs, eb.ones(3)])", Error, "array: expected parts of one shape, got [2] at 0 and [3] at 1"),
    ("xs + eb.ones(3)", Error, "add([2], [3]): shapes do not broadcast"),
    ("eb.array([])", Error, "array([]): expected at least one"),
    ("eb.sum(xs[:0])", Error, "sum of ExpressionArray(0 expr…expected at least one"),
    ("eb.pick(xs, np.array([0, 1, 5]))", Error, "the integer 5 of entry 2 is"),
    ("eb.lookup(E, np.array([5, 1, 10]))", Error, "the integer 5 of entry 0 is"),
    ("eb.cross_entropy(xs, np.array([0, 1, 5]))", Error, "the integer 5 of entry 2 is"),
    ("eb.cross_entropy(xs, np.array([0, -1, 1]))", Error,
        "the integer -1 of entry 1 is no label, expected one in [0, 2)"),
    ("eb.hinge(xs, np.array([0, -1, 1]))", Error, "the integer -1 of entry 1 is no label, expected one in [0, 2)"),
    ("eb.pick(xs, np.array([0.0, 1.0, 1.0]))", Error, "expected an integer"),
    ("eb.cross_entropy(xs, [0.0, 1.0, 1.0])", Error, "expected integers, np.array(labels), or eb.input"),
    ("eb.softmax(xs[:, 0])", Error, "softmax([]): a number has no axes; … list(xs)"),
    ("eb.cell(lambda x: eb.array([x, x]))(x)", Error, "it returns an array of expressions"),
]
# fmt: on


class Kept:
    """A tensor that gives no numbers away, as one of PyTorch that requires a gradient."""

    def __array__(self, *_, **__):
        raise RuntimeError("Can't call numpy() on Tensor that requires grad")


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("code", "error", "message"), rows_of(SHAPES + NUMBERS + INDICES + LOSSES + LISTS + WINDOWS + ARRAYS)
)
def test_what_does_not_fit_is_refused(code, error, message):
    model = eb.ParameterCollection()
    names = {
        "Kept": Kept, "model": model, "W": model.add_parameters((2, 2), name="W"),
        "E": model.add_lookup_parameters((3, 2), name="E"),
        "wide": eb.ParameterCollection(dtype="float64").add_parameters(2),
        "masked": np.ma.masked_array([1.0, 2.0, 3.0], [True, False, False]),
        "masked_index": np.ma.array([1, 2], mask=[False, True]),
    }  # fmt: skip
    if "torch" in code:
        names["torch"] = pytest.importorskip("torch")
    if "large" in code:
        names["large"] = np.broadcast_to(np.float32(0), (1, 2**24 + 2))
    with eb.Graph():
        names["far"] = eb.ones(3)
    with eb.Graph(policy="none"):
        x = names["x"] = eb.input([1.0, 2.0, 3.0])
        names |= {"s": eb.scalar(0.5), "m": eb.input([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])}
        names |= {"xs": eb.array(np.ones((3, 2))), "ys": eb.array(np.ones((4, 2))), "pair": eb.ExpressionList([x, x])}
        names |= {"image": eb.zeros((2, 3, 3)), "W4": eb.input(np.ones((4, 2, 2, 2)))}
        for _ in range(2):
            check(code, error, message, **names)
        assert (x * 2).value().tolist() == [2, 4, 6]
    assert not any(p.has_grad or p.frozen for p in model)


#: What is right, and then what is not, though a call before may have found what it would need.
AFTER = [
    ("eb.pad(m, 1)", "eb.pad(m, 1.0)"), ("eb.pad(m, ((1, 0), (0, 1)))", "eb.pad(m, ((1, 0), (0, 1.0)))"),
    ("eb.pad(m, ((1, 0), (0, 1)))", "eb.pad(m, ((1, 0), (0, 1), (1, 1)))"), ("eb.top_k(m, 2)", "eb.top_k(m, 2.0)"),
    ("eb.top_k(m, 2, 1)", "eb.top_k(m, 2, 1.0)"), ("eb.k_max_pool(m, 1, 1)", "eb.k_max_pool(m, 1, 2)"),
    ("eb.gather(m, k, 0)", "eb.gather(m, k, 0.0)"), ("eb.gather(m, k, 0)", "eb.gather(m, k.astype(float), 0)"),
    ("eb.gather(m, k, 0)", "eb.gather(m, k + 1, 0)"), ("eb.scatter(m, k, m, 0)", "eb.scatter(m, k - 3, m, 0)"),
    ("eb.scatter(m, k, m, 0)", "eb.scatter(m, k, x, 0)"), ("eb.one_hot(1, 3)", "eb.one_hot(1, 3.0)"),
    ("eb.one_hot(1, 3)", "eb.one_hot(True, 3)"), ("eb.one_hot([1, 2], 3)", "eb.one_hot([1, 3], 3)"),
    ("m[[0, 1]]", "m[[0, 3]]"), ("m[[0, 1]]", "m[[0.0, 1.0]]"), ("m[:, [0, 1]]", "m[:, [0, 4]]"),
    ("m[:, [0, 1]]", "m[[0, 1], [0, 1]]"), ("m[1, None]", "m[1.0, None]"), ("eb.sum(m, [0, 1])", "eb.sum(m, [0, 1.0])"),
    ("eb.sum(m, (0, 1))", "eb.sum(m, ((0,), (1,)))"), ("eb.sum(m, axis=0)", "eb.sum(m, axis=False)"),
    ("eb.split(m, [1, 2], 1)", "eb.split(m, [1.0, 2], 1)"), ("eb.stack([x, x], axis=1)", "eb.stack([x, x], axis=True)"),
    ("eb.hinge(x, 1)", "eb.hinge(x, 1, '1')"), ("eb.hinge(x, 1)", "eb.hinge(x, 4)"),
    ("eb.huber(x, x)", "eb.huber(x, x, 0.0)"), ("eb.weighted_sum(m[0], m.T)", "eb.weighted_sum(m[0], m)"),
    ("eb.dots(x, m)", "eb.dots(m[:, 0], m)"), ("eb.dropout(x, 0.5)", "eb.dropout(x, 1.0)"),
    ("eb.tanh(x)", "eb.tanh(eb.ExpressionList([x, x]))"), ("eb.unsqueeze(x, 1)", "eb.unsqueeze(x, 1.0)"),
]  # fmt: skip


@pytest.mark.parametrize(("right", "wrong"), AFTER)
def test_what_is_wrong_is_refused_after_what_is_right(right, wrong):
    names = {"eb": eb, "np": np, "k": np.array([[0, 1, 1], [1, 0, 0]])}
    with eb.Graph(policy="sufficient"):
        names |= {"x": eb.input([1.0, 2.0, 3.0]), "m": eb.input([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])}
        for _ in range(2):
            exec(f"{right}; {right}", names)
            check(wrong, Error, "", **names)
        assert (names["m"] * 2).value().shape == (2, 3)


# fmt: off
NUMPY = [
    "np.asarray(e)", "np.array([e, e])", "np.array([e], float)", "np.stack([e, e])", "np.concatenate([e, e])",
    "np.sum(e)", "np.mean(e)", "np.max(e)", "np.dot(e, e)", "np.reshape(e, (1, -1))", "np.linalg.norm(e)",
    "np.zeros_like(e)", "np.isnan(e)", "np.tanh(e)", "np.hypot(np.ones(2), e)", "np.add.at(np.ones(2), [0], e)",
    "np.add(np.ones(2), e, where=[True, False])", "np.allclose(e, 1)", "np.ones(2).__iadd__(e)", "np.full(2, e)",
    "np.zeros((2, 2)).__setitem__(0, e)",
]
#: What Python has and expressions do not, and how an error names it.
MISSING = [
    ("e // 2", "//"), ("2 // e", "//"), ("e % 2", "%"), ("2 % e", "%"), ("divmod(e, 2)", "divmod"),
    ("divmod(2, e)", "divmod"), ("e & 1", "&"), ("1 | e", "|"), ("e ^ e", "^"), ("~e", "~"), ("e << 1", "<<"),
    ("1 >> e", ">>"), ("e[0] = 1.0", "="), ("del e[0]", "del"), ("np.ones(2) // e", "np.floor_divide"),
    ("np.float64(2) % e", "np.remainder"), ("np.tanh(e)", "expected eb.tanh"), ("np.hypot(e, e)", "np.hypot"),
]
# fmt: on


@pytest.mark.parametrize("code", NUMPY)
def test_numpy_makes_no_array_of_it(code):
    W = eb.ParameterCollection().add_parameters((2, 2), name="W")
    with eb.Graph():
        for operand in (eb.input([1.0, 2.0]), W):
            check(code, Error, "value()", e=operand)


@pytest.mark.parametrize(("code", "sign"), MISSING)
def test_operators_that_are_missing(code, sign):
    """Both are an EdBatchError, and the TypeError that Python would raise."""
    W = eb.ParameterCollection().add_parameters((2, 2), name="W")
    with eb.Graph():
        for operand in (eb.scalar(2.5), eb.input([1.0, 2.0]), W):
            check(code, TypeError, sign, e=operand)
            with pytest.raises(eb.EdBatchError, match=r"value\(\)|eb\.stack") as seen:
                exec(code, {"e": operand, "np": np})
            assert "Python" not in str(seen.value)


def test_every_operator_of_python_is_there_or_says_what_to_write():
    """Those of the module `operator`, and what converts numbers."""
    names = {name for name in dir(operator) if name.startswith("__") and callable(getattr(operator, name))}
    names -= {"__call__", "__concat__", "__contains__", "__index__", "__not__", "__inv__"}
    names = {name for name in names if not (name.startswith("__i") and name != "__invert__")}  # `x += 1` is `x = x + 1`
    names -= {name for name in dir(operator) if hasattr(object, name) and name not in dir(int)}
    two = {"add", "sub", "mul", "truediv", "floordiv", "mod", "divmod", "pow", "and", "or", "xor", "lshift", "rshift"}
    names |= {f"__r{name}__" for name in (*two, "matmul")} | {"__divmod__", "__round__", "__trunc__", "__float__"}
    names -= {"__loader__", "__build_class__"}
    for kind in (eb.Expression, eb.Parameter):
        assert [name for name in sorted(names) if not hasattr(kind, name)] == []
