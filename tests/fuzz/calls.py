"""How each public op is called: from a scope to the text of a call with operands that are there."""

import re

NUMBERS = (2.0, 0.5, -1.0, 1.0, 3.0, 0.25, -0.5, 1, 2, 0.75, -2, 0.0, -0.0)


def unary(name, **domain):
    return lambda s: f"eb.{name}({s.value(**domain)})"


def binary(name, **domain):
    def call(s):
        a = s.operand(**domain)
        b = s.operand(like=s.shape_of(a), **domain)
        return f"eb.{name}({a}, {b})"

    return call


def same_shapes(name, **domain):
    def call(s, more=""):
        a = s.value(**domain)
        return f"eb.{name}({a}, {s.value(shape=s.shape_of(a), **domain)}{more})"

    return call


def axis_of(s, x):
    ndim = len(s.shape_of(x))
    return s.random.randrange(-ndim, ndim) if ndim else 0


def over_axes(name, lists=False, **domain):
    def call(s):
        if lists and s.random.random() < 0.5:
            return f"eb.{name}({s.listed()})"
        x = s.value(**domain)
        ndim = len(s.shape_of(x))
        axes = [f"axis={axis_of(s, x)}"] * 2 * (ndim > 0) + ["axis=(0, 1)"] * (ndim > 1) + [""]
        given = [s.random.choice(axes), s.random.choice(["", "", "keepdims=True"])]
        return f"eb.{name}({', '.join([x, *filter(None, given)])})"

    return call


def two_or_list(name):
    return lambda s: f"eb.{name}({s.listed()})" if s.random.random() < 0.5 else binary(name)(s)


def softmax(s):
    """Along an axis, or one of a list."""
    if s.random.random() < 0.7:
        return along("softmax")(s)
    count = s.random.randrange(1, 5)
    return f"eb.softmax({s.listed(count=count)})[{s.random.randrange(count)}]"


def dots(s):
    query = s.value(ndim=(1,))
    count = s.random.randrange(1, 5)
    return f"eb.dots({query}, {s.listed(s.shape_of(query), count)})[{s.random.randrange(count)}]"


def weighted_sum(s):
    count = s.random.randrange(1, 5)
    return f"eb.weighted_sum({s.listed((), count)}, {s.listed(count=count)})"


def attention(s):
    query, value = s.value(ndim=(1,)), s.value(ndim=(1,))
    count, sizes = s.random.randrange(1, 6), (s.size_of(query), s.size_of(value))
    heads = s.random.choice([n for n in (1, 2, 3) if not any(size % n for size in sizes)])
    more = [s.chance(f"heads={heads}") if heads == 1 else f"heads={heads}"]
    more.append(s.random.choice(["", "scale=False", "scale=0.25", "scale=True"]))
    lists = [s.listed(s.shape_of(query), count), s.listed(s.shape_of(value), count)]
    return f"eb.attention({', '.join([query, *lists, *filter(None, more)])})"


def along(name, required=False):
    def call(s):
        x = s.value(ndim=(1, 2))
        return f"eb.{name}({x})" if not required and s.random.random() < 0.3 else f"eb.{name}({x}, {axis_of(s, x)})"

    return call


def matmul(s):
    a = s.operand(ndim=(1, 2), matrix=True)
    inner = s.shape_of(a)[-1]
    b = s.operand(first=inner, ndim=(1, 2))
    if s.random.random() < 0.1:
        a = s.array((s.dim, inner))
    return s.random.choice(["{} @ {}", "{} @ {}", "eb.matmul({}, {})"]).format(a, b)


def affine(s):
    W = s.operand(ndim=(2,), matrix=True)
    m, k = s.shape_of(W)
    x = s.operand(first=k, ndim=(1, 2))
    return f"eb.affine({W}, {x}, {s.operand(shape=(m, *s.shape_of(x)[1:]))})"


def layer_norm(s):
    x = s.value(ndim=(1, 2), last=s.dim)
    return f"eb.layer_norm({x}, {s.operand(shape=(s.dim,))}, {s.operand(shape=(s.dim,))}{s.chance(', 0.125')})"


def labelled(name, more=""):
    def call(s):
        x = s.value(ndim=(1,))
        return f"eb.{name}({x}, {s.integer(len_of=x)}{s.chance(more)})"

    return call


def pick(s):
    x = s.value(ndim=(1, 2))
    return f"eb.pick({x}, {s.integer(len_of=x)})"


def lookup(s):
    table = s.random.choice(s.tables)
    return s.random.choice(["eb.lookup({}, {})", "{}[{}]"]).format(table, s.integer(len_of=table))


def index(s):
    x = s.value(ndim=(1, 2)) if s.random.random() < 0.9 else s.parameter()
    parts = [part(s, size) for size in s.shape_of(x)] or ["..."]
    if s.random.random() < 0.4:
        parts = parts[:1]
    if s.random.random() < 0.1:
        parts = ["...", *parts[:1]]
    return f"{x}[{', '.join(parts)}]"


def part(s, size):
    low = s.random.randrange(size)
    high = s.random.randrange(low + 1, size + 1)
    choices = [f"{low}:{high}", f"{low}:{high}", f"{low}:", f":{high}", ":", "::-1", "::2", f"{low}", f"{low - size}"]
    return s.random.choice(choices)


def split(s):
    x = s.value(ndim=(1, 2))
    axis = s.random.randrange(len(s.shape_of(x)))
    size = s.shape_of(x)[axis]
    even = [n for n in range(1, size + 1) if size % n == 0]
    cut = s.random.randrange(size)
    parts = s.random.choice([s.random.choice(even), [cut, size - cut] if cut else [size]])
    return f"eb.split({x}, {parts}, {axis})[{s.random.choice([0, -1])}]"


def reshape(s):
    x = s.value()
    size = s.size_of(x)
    shapes = [(size,), (1, size), (size, 1), (-1,), *((n, size // n) for n in (2, 3) if size % n == 0)]
    if size == 1:
        shapes.append(())
    return f"eb.reshape({x}, {s.random.choice(shapes)})"


def transpose(s):
    x = s.value(ndim=(2,))
    return s.random.choice(
        ["eb.transpose({})", "{}.T", "eb.transpose({}, (1, 0))", "eb.transpose({}, (-1, 0))"]
    ).format(x)


def concatenate(s):
    x = s.value(ndim=(1, 2))
    axis = s.random.randrange(len(s.shape_of(x)))
    if s.random.random() < 0.5:
        fits = [x] + [s.operand(shape=s.shape_of(x)) for _ in range(s.random.randrange(4))]
    else:
        fits = [x] + [s.value(along=(s.shape_of(x), axis)) for _ in range(s.random.randrange(4))]
    s.random.shuffle(fits)
    return f"eb.concatenate([{', '.join(fits)}]{', ' * (axis > 0)}{axis or ''})"


def stack(s):
    x = s.value(ndim=(0, 1))
    fits = [x] + [s.value(shape=s.shape_of(x)) for _ in range(s.random.randrange(3))]
    return f"eb.stack([{', '.join(fits)}], {s.random.randrange(-1, len(s.shape_of(x)) + 1)})"


def dropout(s):
    return f"eb.dropout({s.value()}, {s.random.choice([0.25, 0.5, 0.0])}, {s.integer(limit=1000)})"


def power(s):
    if s.random.random() < 0.3:
        a = s.operand(low=0.2)
        return f"eb.power({a}, {s.operand(like=s.shape_of(a))})"
    return f"eb.power({s.value(low=0.2)}, {s.random.choice([0.5, -1.0, 1.5, -2, 2])})"


def raised(s):
    """`**`, with numbers on either side."""
    a = s.operand(low=0.2)
    base, exponent = s.random.choice([2, 0.5, 3.0]), s.random.choice([2, 3, 1, 0, 2.0, 3.0])
    forms = [f"{a} ** {s.operand(like=s.shape_of(a))}", f"{base} ** {s.value()}", f"{s.value()} ** {exponent}"]
    return s.random.choice(forms)


def clip(s):
    low, high = sorted(s.random.sample([-1, -0.5, 0, 0.5, 1.0], 2))
    return f"eb.clip({s.value()}, {low}, {high})"


def operator(s):
    """`+ - * /`, with numbers and arrays on either side, negation and absolute value."""
    x = s.operand()
    if s.random.random() < 0.2:
        return s.random.choice([f"-{x}", f"abs({x})"])
    symbol = s.random.choice("++-**/")
    other = s.random.choice([s.operand(like=s.shape_of(x), low=0.2), s.constant(symbol), s.constant(symbol)])
    if s.random.random() < 0.5:
        x, other = other, s.value(low=0.3) if symbol == "/" else x
    if re.fullmatch(r"-?0(\.0)?", other) and symbol == "/":
        other = "2.0"
    return f"{x} {symbol} {other}"


def shaped(s):
    """Functions and methods that only change the shape."""
    x = s.value(ndim=s.random.choice([None, (2,)]))
    ndim = len(s.shape_of(x))
    choices = [f"eb.unsqueeze({x}, {s.random.randrange(-1, ndim + 1)})", f"eb.squeeze({x})", f"{x}.flatten()"]
    choices += [f"{x}.view(1, -1)", f"{x}.reshape({s.size_of(x)}, 1)"]
    if ndim > 1:
        choices = [f"{x}.permute(1, 0)", f"{x}.t()", f"{x}.transpose((1, 0))", f"{x}.chunk(1)[0]", f"{x}.view(-1)"]
        choices += [f"{x}.swapaxes(0, -1)", f"{x}.flatten()"]
    return s.random.choice(choices)


def soft_label(s):
    x = s.value(ndim=(1,))
    label = s.random.choice([s.operand(shape=s.shape_of(x)), s.integer(len_of=x)])
    return f"eb.cross_entropy({x}, {label}{s.chance(', label_smoothing=0.25')})"


def huber(s):
    return same_shapes("huber")(s, s.random.choice(["", ", 0.5", ", delta=0.5"]))


def compared(s):
    """`> >= < <=`, with numbers and arrays on either side."""
    x = s.operand()
    other = s.random.choice([s.operand(like=s.shape_of(x)), s.constant("+"), s.array(s.shape_of(x))])
    x, other = s.random.choice([(x, other), (other, x)])
    return f"{x} {s.random.choice(['>', '>=', '<', '<='])} {other}"


def where(s):
    a = s.operand()
    b, x = (s.operand(like=s.shape_of(a)) for _ in range(2))
    condition = s.random.choice([x, f"{x} > {s.random.choice(NUMBERS)}", f"eb.less_equal({x}, {a})"])
    return f"eb.where({condition}, {a}, {s.random.choice([b, b, '0.0'])})"


def entry_of(s, size):
    """An index of so many entries, as an expression that is somewhere inside one of them."""
    return s.random.randrange(size) + s.random.choice([0, 0, 0.5])


def by_index(name):
    """Of a vector, with one index for each of some values."""

    def call(s):
        x, values = s.value(ndim=(1,)), s.value(ndim=(1,))
        size, count = s.size_of(x), s.size_of(values)
        integers = [s.random.randrange(-size, size) for _ in range(count)]
        floats = f"eb.input({[entry_of(s, size) for _ in range(count)]})"
        index = s.random.choice([str(integers), f"np.array({integers})", floats])
        given = f", {values}" if name != "gather" else ""
        return f"eb.{name}({x}, {index}{given}, axis={s.random.choice([0, -1])})"

    return call


def gather(s):
    """Of a matrix, by what was found in it."""
    if s.random.random() < 0.7:
        return by_index("gather")(s)
    x = s.value(ndim=(2,))
    axis = axis_of(s, x)
    return f"eb.gather({x}, eb.argmax({x}, {axis}, keepdims=True), {axis})"


def number_of(name):
    def call(s):
        x = s.value()
        return f"eb.{name}({x}{s.chance(f', {axis_of(s, x)}') if s.shape_of(x) else ''})"

    return call


def one_hot(s):
    size = s.random.randrange(1, 5)
    integers = [s.random.randrange(-size, size) for _ in range(2)]
    x = s.value()
    index = s.random.choice([str(integers), str(integers[0]), f"eb.argmax({x})"])
    return f"eb.one_hot({index}, {size})"


def largest(name, result=""):
    def call(s):
        x = s.value(ndim=(1, 2))
        axis = axis_of(s, x)
        k = s.random.randrange(1, s.shape_of(x)[axis] + 1)
        return f"eb.{name}({x}, {k}, {axis}){result and f'[{s.random.randrange(2)}]'}"

    return call


def given(s, **choices):
    """Some of several arguments by name."""
    return "".join(f", {name}={s.random.choice(values)}" for name, values in choices.items() if s.random.random() < 0.5)


def pad(s):
    x = s.value(ndim=(1, 2))
    widths = [1, (0, 2), (2, 1)] + [((1, 0), (0, 2)), ((2, 2), (1, 1))] * (len(s.shape_of(x)) == 2)
    return f"eb.pad({x}, {s.random.choice(widths)}{s.chance(', constant_values=0.5')})"


def image(s, n):
    """A value as so many channels of sequences or images, each at least 2 in size."""
    x = s.value(ndim=(1, 2))
    size = s.size_of(x)
    if size < 4 or size % 2:
        raise LookupError("no image")
    shapes = [(1, size), (2, size // 2)] if n == 1 else [(1, 2, size // 2), *[(2, 2, size // 4)] * (size % 8 == 0)]
    shape = s.random.choice(shapes)
    return f"{x}.reshape({', '.join(map(str, shape))})", shape[0]


def pooled(name, n, dilated=False):
    def call(s):
        x, _ = image(s, n)
        more = {"stride": [1, 2, 3], "padding": [1]} | ({"dilation": [1]} if dilated else {})
        return f"eb.{name}({x}, 2{given(s, **more)})"

    return call


def unfold(s):
    x, _ = image(s, 2)
    return f"eb.unfold({x}, {s.random.choice([1, 2, (1, 2)])}{given(s, padding=[1, (0, 1)], stride=[2, (1, 2)])})"


def convolved(name, n):
    def call(s):
        x, channels = image(s, n)
        kernel = (2,) * n
        weight = s.array((s.random.randrange(1, 3), channels, *kernel))
        out = s.value(ndim=(1,))
        size = channels * 2**n
        if s.size_of(out) % size == 0:
            weight = f"{out}.reshape({s.size_of(out) // size}, {channels}, {', '.join(map(str, kernel))})"
        else:
            weight = f"eb.input({weight})"
        more = given(s, stride=[1, 2], padding=[1], dilation=[1] if n == 2 else [1, 2])
        return f"eb.{name}({x}, {weight}{more})"

    return call


CALLS = {
    "abs": unary("abs"), "neg": unary("neg"), "square": unary("square"), "sqrt": unary("sqrt", low=0.2),
    "exp": unary("exp", high=2), "log": unary("log", low=0.2), "tanh": unary("tanh"), "sigmoid": unary("sigmoid"),
    "relu": unary("relu"), "gelu": unary("gelu"), "silu": unary("silu"), "softplus": unary("softplus"),
    "softsign": unary("softsign"), "log_sigmoid": unary("log_sigmoid"), "erf": unary("erf"), "sin": unary("sin"),
    "erfc": unary("erfc"),
    "cos": unary("cos"), "add": binary("add"), "subtract": binary("subtract"), "multiply": binary("multiply"),
    "divide": lambda s: f"eb.divide({s.value()}, {s.operand(low=0.3)})", "power": power, "raised": raised, "clip": clip,
    "leaky_relu": lambda s: f"eb.leaky_relu({s.value()}{s.chance(', 0.25')})",
    "elu": lambda s: f"eb.elu({s.value()}{s.chance(', alpha=0.5')})",
    "scale_gradient": lambda s: f"eb.scale_gradient({s.value()}, {s.random.choice([-0.5, 2, 0.0, 1.0])})",
    "stop_gradient": unary("stop_gradient"), "maximum": two_or_list("maximum"), "minimum": two_or_list("minimum"),
    "sum": over_axes("sum", True), "mean": over_axes("mean", True), "logsumexp": over_axes("logsumexp", True),
    "std": over_axes("std"), "max": over_axes("max", True), "min": over_axes("min", True), "norm": over_axes("norm"),
    "softmax": softmax, "log_softmax": along("log_softmax"), "layer_norm": layer_norm, "dropout": dropout,
    "greater": binary("greater"), "greater_equal": binary("greater_equal"), "less": binary("less"),
    "less_equal": binary("less_equal"), "equal": binary("equal"), "not_equal": binary("not_equal"),
    "compared": compared, "where": where,
    "argmax": number_of("argmax"), "argmin": number_of("argmin"), "one_hot": one_hot, "gather": gather,
    "scatter": by_index("scatter"), "scatter_add": by_index("scatter_add"), "top_k": largest("top_k", "[]"),
    "k_max_pool": largest("k_max_pool"),
    "pad": pad, "unfold": unfold, "conv1d": convolved("conv1d", 1), "conv2d": convolved("conv2d", 2),
    "max_pool1d": pooled("max_pool1d", 1, True), "max_pool2d": pooled("max_pool2d", 2, True),
    "avg_pool1d": pooled("avg_pool1d", 1), "avg_pool2d": pooled("avg_pool2d", 2),
    "cumsum": lambda s: f"eb.cumsum({(x := s.value(ndim=(1, 2)))}, {axis_of(s, x)})",
    "matmul": matmul, "affine": affine, "dot": same_shapes("dot", ndim=(1,)),
    "dots": dots, "weighted_sum": weighted_sum, "attention": attention,
    "cross_entropy": lambda s: soft_label(s) if s.random.random() < 0.3 else labelled("cross_entropy")(s),
    "squeeze": lambda s: f"eb.squeeze({s.value()})", "unsqueeze": lambda s: f"eb.unsqueeze({s.value()}, 0)",
    "swapaxes": lambda s: f"eb.swapaxes({s.value(ndim=(2,))}, 0, -1)", "shaped": shaped,
    "hinge": labelled("hinge", ", 0.5"), "pick": pick,
    "binary_cross_entropy": same_shapes("binary_cross_entropy", low=0.05, high=0.95), "huber": huber,
    "squared_distance": same_shapes("squared_distance"), "l1_distance": same_shapes("l1_distance"),
    "lookup": lookup, "concatenate": concatenate, "stack": stack, "split": split, "reshape": reshape,
    "transpose": transpose, "flip": along("flip"), "index": index, "operator": operator,
    "parameter": lambda s: f"eb.parameter({s.parameter()})", "scalar": lambda s: f"eb.scalar({s.constant()})",
    "zeros": lambda s: f"eb.zeros({s.shape()})", "ones": lambda s: f"eb.ones({s.shape()})",
    "input": lambda s: f"eb.input({s.array(s.shape())})",
}  # fmt: skip
