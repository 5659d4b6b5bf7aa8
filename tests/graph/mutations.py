"""What a function of x reads besides it, and changes of that.

A mutation is (what an error calls it, what comes before, an expression of x, changes one after the other). What comes
before may use `net`, an object of a class `Net` derived from `Base`, and `ps`, three parameters.
"""

import collections
import dataclasses
import functools
import types
import typing
from types import SimpleNamespace as NS

import numpy as np

import edbatch as eb

PRELUDE = """
class Base:
    shared = 3.0
class Net(Base):
    own = 2.0
    def __init__(self):
        self.model = eb.ParameterCollection(seed=0)
        self.r = 0.5
    def scaled(self, x): return x * self.r
net = Net()
ps = [net.model.add_parameters((2, 2), name=name) for name in "abc"]
net.W = ps[0]
"""

# fmt: off
MUTATIONS = {
    # Attributes and numbers.
    "attribute": ("self.r|net.r", "", "x * net.r", "net.r = 3.0", "net.r = 0.5"),
    "train and eval": ("training", "net.training = True", "x if net.training else -x", "net.training = False",
        "net.training = True"),
    "type of a number": ("n", "net.n = 1.0", "x * (2 if net.n is True else 3 if isinstance(net.n, float) else 1)",
        "net.n = True", "net.n = 1"),
    "sign of a zero": ("n", "net.n = 0.0", "x * float(np.copysign(1, net.n))", "net.n = -0.0", "net.n = 0.0"),
    "number of NumPy": ("n", "net.n = np.float32(2)", "x * float(net.n)", "net.n = np.float32(3)"),
    "number of layers": ("n", "net.n = 1", "functools.reduce(lambda y, _: y * 2, range(net.n), x)", "net.n = 3",
        "net.n = 1"),
    "text": ("act", "net.act = 'tanh'", "5 * x if net.act == 'tanh' else x", "net.act = 'relu'",
        "net.act = 'tanh'"),
    "attribute that goes": ("own", "net.own = 7.0", "x * net.own", "del net.own", "net.own = 9.0"),
    "nested attribute": ("sub.r", "net.sub = NS(sub=NS(r=1.5))", "x * net.sub.sub.r", "net.sub.sub.r = 4.0",
        "net.sub.sub.r = 1.5"),
    "another object": ("sub", "net.sub = Base(); net.sub.r = 1.5", "x * net.sub.r",
        "net.sub = Base(); net.sub.r = 9.0"),
    "slot": ("s.r", "class S: __slots__ = 'r', '__weakref__'\nnet.s = S(); net.s.r = 0.5", "x * net.s.r",
        "net.s.r = 5.0", "net.s.r = 0.5"),
    "by name": ("rate_b", "net.rate_b = 2.0", "x * getattr(net, '_'.join(['rate', 'b']))", "net.rate_b = 5.0"),
    "attribute by default": ("absent", "", "x * getattr(net, 'absent', 2.0)", "net.absent = 5.0", "del net.absent"),
    "whether there is one": ("absent", "", "x * 2 if hasattr(net, 'absent') else x", "net.absent = 5.0"),
    "vars": ("r", "", "x * vars(net)['r']", "net.r = 3.0", "net.r = 0.5"),
    "pattern": ("act", "c = NS(act='tanh')\ndef f(c):\n    match c:\n        case NS(act='tanh'): return 2.0\n"
        "        case _: return 3.0", "x * f(c)", "c.act = 'relu'"),
    # Containers.
    "list item": ("xs", "net.xs = [1.0, 2.0]", "x * sum(net.xs)", "net.xs[1] = 7.0", "net.xs[1] = 2.0"),
    "longer list": ("xs", "net.xs = [1.0]", "x * len(net.xs)", "net.xs.append(1.0)", "net.xs.pop()"),
    "order of a list": ("xs", "net.xs = [1.0, 2.0]", "x * net.xs[0]", "net.xs.reverse()"),
    "an equal list": ("xs", "net.xs = [1]", "x * (3 if net.xs[0] is True else 2)", "net.xs = [True]"),
    "another list of the same": ("ys", "net.xs = net.ys = [1.0]", "x * net.xs[0] * net.ys[0]", "net.ys = [2.0]",
        "net.xs[0] = 3.0"),
    "object in a list": ("[0].r", "net.xs = [NS(r=1.0), NS(r=2.0)]", "x * sum(o.r for o in net.xs)",
        "net.xs[0].r = 3.0"),
    "list of dictionaries": ("xs[0]['a'][1]", "net.xs = [{'a': [1.0, 2.0]}]", "x * net.xs[0]['a'][1]",
        "net.xs[0]['a'][1] = 8.0", "net.xs[0] = {'a': [0, 2.0]}"),
    "dictionary item": ("d['b']", "net.d = {'b': 2.0}", "x * net.d['b']", "net.d['b'] = 7.0", "net.d['b'] = 2.0"),
    "key of a dictionary": ("keys", "net.d = {'b': 2.0}", "x * len(net.d)", "net.d['c'] = 7.0", "del net.d['c']"),
    "order of a dictionary": ("keys", "net.d = {'a': 1.0, 'b': 2.0}", "x * next(iter(net.d.values()))",
        "net.d = {'b': 2.0, 'a': 1.0}"),
    "order of an ordered dictionary": ("order", "net.d = collections.OrderedDict(a=1.0, b=2.0)",
        "x * next(iter(net.d.values()))", "net.d.move_to_end('a')", "net.d.move_to_end('b')"),
    "dictionary by tuples": ("d", "net.d = {(1, 2): 2.0}", "x * net.d[1, 2]", "net.d[1, 2] = 7.0"),
    "tuple": ("t", "net.t = 1.0, 2.0", "x * net.t[1]", "net.t = 1.0, 5.0", "net.t = 1.0, 2.0"),
    "named tuple": ("p", "P = collections.namedtuple('P', 'a')\nnet.p = P(1.0)", "x * net.p.a", "net.p = P(3.0)"),
    "method of a named tuple": ("scale", "class P(typing.NamedTuple):\n    a: float\n    def scale(self): return self.a"
        "\np = P(2.0)", "x * p.scale()", "P.scale = lambda self: 7.0"),
    "set": ("net.s|self.s", "net.s = {1, 2}", "x * len(net.s)", "net.s.add(3)", "net.s.discard(3)"),
    "deque": ("dq", "dq = collections.deque([1.0])", "x * dq[0]", "dq[0] = 5.0"),
    "array entry": ("a", "net.a = np.array([1.0, 2.0])", "x * net.a", "net.a[0] = 9.0", "net.a[0] = 1.0"),
    "another array": ("a", "net.a = np.array([1.0, 2.0])", "x * net.a", "net.a = np.full(2, 4.0)"),
    "shape of an array": ("a", "net.a = np.ones((1, 4))", "x * len(net.a)", "net.a.resize((4, 1), refcheck=False)"),
    "view of an array": ("v", "a = np.ones((2, 2)); net.v = a[:, 1]", "x * net.v", "a[0, 1] = 5.0"),
    "dataclass field": ("s.r", "@dataclasses.dataclass\nclass S: r: float = 0.5\nnet.s = S()", "x * net.s.r",
        "net.s.r = 5.0", "net.s = S(0.5)"),
    "frozen dataclass": ("s", "@dataclasses.dataclass(frozen=True)\nclass S: r: float\nnet.s = S(0.5)", "x * net.s.r",
        "net.s = S(5.0)", "net.s = S(0.5)"),
    "slice": ("part", "net.part = slice(1, None)", "x * x[net.part]", "net.part = slice(0, 1)"),
    # Classes.
    "class attribute": ("own", "", "x * net.own", "Net.own = 8.0", "Net.own = 2.0"),
    "attribute of a base": ("shared", "", "x * net.shared", "Base.shared = 8.0", "Net.shared = 5.0"),
    "before the class's": ("own", "", "x * net.own", "net.own = 8.0", "del net.own"),
    "another class": ("class", "class Other(Net): own = 6.0", "x * net.own", "net.__class__ = Other"),
    "list of a class": ("xs", "Net.xs = [1.0]", "x * net.xs[0]", "Net.xs[0] = 4.0"),
    "attribute of a class by name": ("own", "", "x * Net.own", "Net.own = 8.0"),
    "method of the class": ("scaled", "", "net.scaled(x)", "Net.scaled = lambda self, x: x * 4"),
    "method of the object": ("scaled", "", "net.scaled(x)", "net.scaled = lambda x: x * 4", "del net.scaled"),
    "attribute in a method": ("r", "", "net.scaled(x)", "net.r = 7.0", "net.r = 0.5"),
    "static method": ("fixed", "Net.fixed = staticmethod(lambda: 1.5)", "x * net.fixed()",
        "Net.fixed = staticmethod(lambda: 4.0)"),
    "super": ("shared", "class Mine(Net):\n    shared = 9.0\n    def f(s): return super().shared\nnet.__class__ = Mine",
        "x * net.f()", "Base.shared = 5.0"),
    "property": ("half", "Net.doubled = property(lambda s: s.half * 2); net.half = 0.25", "x * net.doubled",
        "net.half = 2.0", "Net.doubled = property(lambda s: 7.0)"),
    "cached property": ("c", "class C(Net):\n    @functools.cached_property\n    def c(s): return s.r * 2\nnet = C()",
        "x * net.c", "net.c = 2.0"),
    "special method": ("__len__", "Net.__len__ = lambda self: 2", "x * len(net)", "Net.__len__ = lambda self: 3"),
    # Functions, globals and modules.
    "global": ("G", "G = 2.0", "x * G", "G = 5.0", "G = 2.0"),
    "global of a helper": ("G", "G = 2.0\ndef helper(x): return x * G", "helper(x)", "G = 5.0", "G = 2.0"),
    "list of a helper": ("L", "L = [1.0]\ndef helper(x): return x * len(L)", "helper(x)", "L.append(1.0)", "L.pop()"),
    "closure": ("value", "def make():\n    value = 2.0\n    def put(to):\n        nonlocal value\n        value = to\n"
        "    return lambda x: x * value, put\nf, put = make()", "f(x)", "put(4.0)", "put(2.0)"),
    "default argument": ("defaults", "def f(x, c=2.0): return x * c", "f(x)", "f.__defaults__ = (7.0,)"),
    "object by default": ("r", "c = NS(r=1.0)\ndef f(x, c=c): return x * c.r", "f(x)", "c.r = 5.0"),
    "default by keyword": ("defaults", "def f(x, *, c=2.0): return x * c", "f(x)", "f.__kwdefaults__ = {'c': 7.0}"),
    "another function": ("act", "net.act = eb.tanh", "net.act(x)", "net.act = eb.relu", "net.act = eb.tanh"),
    "code of a function": ("code", "def f(x): return x * 2\ndef g(x): return x * 3", "f(x)", "f.__code__ = g.__code__"),
    "attribute of a function": ("r", "def h(x): return x * h.r\nh.r = 1.0", "h(x)", "h.r = 3.0"),
    "callable object": ("c.r", "class C:\n    r = 0.5\n    def __call__(s, x): return x * s.r\nnet.c = C()",
        "net.c(x)", "net.c.r = 5.0"),
    "bound method": ("r", "sub = Net(); net.m = sub.scaled", "net.m(x)", "sub.r = 7.0", "net.m = net.scaled"),
    "partial": ("f", "net.f = functools.partial(eb.clip, low=0.1, high=0.3)", "net.f(x)",
        "net.f = functools.partial(eb.clip, low=0.2, high=0.4)"),
    "module": ("K", "m = types.ModuleType('m'); m.K = 0.5", "x * m.K", "m.K = 5.0", "m.K = 0.5"),
    "cell in a cell": ("r", "Net.inner = eb.cell(lambda net, x: x * net.r)", "net.inner(x)", "net.r = 5.0"),
    "object by keyword": ("c", "c = Base(); c.r = 1.0\nf = eb.cell(lambda x, *, c: x * c.r)", "f(x, c=c)", "c.r = 3.0"),
    # Parameters.
    "swapped parameter": ("W", "", "net.W @ x", "net.W = ps[1]", "net.W = ps[0]"),
    "list of parameters": ("L", "L = [ps[0]]", "functools.reduce(lambda x, p: p @ x, L, x)", "L.append(ps[1])",
        "L[0] = ps[2]"),
    "another model": ("W", "", "net.W @ x", "net.W = eb.ParameterCollection(seed=9).add_parameters((2, 2))"),
    "frozen": ("frozen", "", "x * (2.0 if net.W.frozen else 1.0)", "net.W.freeze()", "net.model.freeze(False)"),
    "parameters that are trained": ("", "", "x * eb.sum([eb.sum(p * p) for p in net.model if not p.frozen])",
        "ps[0].freeze()", "net.model.add_parameters((2, 2), init=2.0)", "ps[0].freeze(False)"),
    "number of parameters": ("listed", "", "x * len(net.model)", "net.model.add_parameters(2)"),
    "attribute of a parameter": ("scale", "net.W.scale = 1.0", "x * net.W.scale", "net.W.scale = 3.0"),
}
# fmt: on

MODULES = (collections, dataclasses, functools, types, typing)


class Program:
    """A program of the table, in names of its own.

    Attributes:
        read: what it computes of x; `method` computes the same of (net, x).
    """

    def __init__(self, setup: str, expression: str) -> None:
        self.names = {module.__name__: module for module in MODULES} | {"np": np, "eb": eb, "NS": NS}
        self.names["__name__"] = __name__
        for text in (PRELUDE, setup, f"def read(x): return {expression}\ndef method(net, x): return {expression}\n"):
            exec(text, self.names)
        self.read, self.method = self.names["read"], self.names["method"]

    @property
    def net(self):
        return self.names["net"]

    def change(self, text: str) -> None:
        exec(text, self.names)
