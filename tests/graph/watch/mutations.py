"""Programs that read what decides their numbers in every way that Python has, and what then changes.

A program is (what comes before, an expression of x, changes of what it reads one after the other); what comes before
may use `net`, an object of a class `Base` with the attribute FACTOR, and `NS`, `types.SimpleNamespace`.
"""

import abc
import collections
import contextlib
import contextvars
import dataclasses
import datetime
import decimal
import enum
import functools
import gc
import glob
import inspect
import io
import locale
import logging
import operator
import os
import pathlib
import random
import secrets
import shutil
import sys
import tempfile
import threading
import time
import tracemalloc
import types
import typing
import uuid
import weakref
from types import SimpleNamespace as NS

import numpy as np

import edbatch as eb

MODULES = (
    abc, collections, contextlib, contextvars, dataclasses, datetime, decimal, enum, functools, gc, glob, inspect, io,
    locale, logging, operator, os, pathlib, random, secrets, shutil, sys, tempfile, threading, time, tracemalloc, types,
    typing, uuid, weakref,
)  # fmt: skip

PRELUDE = """
class Base:
    FACTOR = 3.0

    def __init__(self, **attributes):
        vars(self).update(attributes)

net = Base()
"""

LAYER = """
class Layer(Base):
    rate = 2.0
    def factor(self): return 1.5
    @staticmethod
    def fixed(): return 1.5
    @classmethod
    def made(cls): return cls.rate
    @property
    def doubled(self): return 2 * self.rate
class Mine(Layer): pass
net = Mine()
"""

IN_VAIN = """
def later(o):
    try:
        return read_of(o)
    except {}:
        return 1.0
def read_of(o):
    return o.later
"""

# fmt: off
#: Attributes, containers and numbers.
OBJECTS = {
    "attribute": ("net.r = 0.5", "x * net.r", "net.r = 3.0", "net.r = 0.5"),
    "flag": ("net.training = True", "x if net.training else -x", "net.training = False", "net.training = True"),
    "flag of the class": ("Base.training = True", "x if net.training else -x", "net.training = False",
                          "del net.training", "Base.training = False"),
    "type of a number": ("net.n = 1.0", "x * (2 if net.n is True else 3 if isinstance(net.n, float) else 1)",
                         "net.n = True", "net.n = 1"),
    "sign of a zero": ("net.n = 0.0", "x * float(np.copysign(1, net.n))", "net.n = -0.0", "net.n = 0.0"),
    "integer": ("net.n = 1", "functools.reduce(lambda y, _: y * 2, range(net.n), x)", "net.n = 3", "net.n = 1"),
    "nested": ("net.sub = NS(sub=NS(r=1.5))", "x * net.sub.sub.r", "net.sub.sub.r = 4.0", "net.sub.sub.r = 1.5"),
    "another object": ("net.sub = NS(r=1.5)", "x * net.sub.r", "net.sub = NS(r=9.0)", "net.sub = NS(r=1.5)"),
    "item of a list": ("net.xs = [1.0, 2.0]", "x * sum(net.xs)", "net.xs[1] = 7.0", "net.xs[1] = 2.0"),
    "longer list": ("net.xs = [1.0]", "x * len(net.xs)", "net.xs.append(1.0)", "net.xs.pop()"),
    "objects in a list": ("net.xs = [NS(r=1.0), NS(r=2.0)]", "x * sum(o.r for o in net.xs)", "net.xs[0].r = 3.0",
                          "net.xs[1].r = 5.0"),
    "next of a list": ("xs = [NS(r=1.0)]", "x * next(iter(xs)).r", "xs[0].r = 3.0"),
    "enumerated": ("xs = [NS(r=1.0), NS(r=2.0)]", "sum([x * o.r + i for i, o in enumerate(xs)])", "xs[0].r = 3.0"),
    "mapped": ("xs = [NS(r=1.0)]", "x * sum(map(lambda o: o.r, xs))", "xs[0].r = 3.0"),
    "filtered": ("net.xs = [NS(r=2.0), NS(r=3.0)]", "eb.sum([x * o.r for o in net.xs if o.r > 0])",
        "net.xs[1].r = -5.0",
                 "net.xs[1].r = 7.0"),
    "named attribute of each": ("net.xs = [NS(r=1.0)]", "x * sum([getattr(o, 'r') for o in net.xs])",
        "net.xs[0].r = 3.0"),
    "set of what is returned": ("xs = [NS(r=1.0)]\ndef listed(): return list(xs)", "x * sum({o.r for o in listed()})",
                                "xs[0].r = 3.0"),
    "loop over what is returned": (
        "xs = [NS(r=1.0)]\ndef nested(): return {'all': [(o,) for o in xs]}\n"
        "def total():\n    t = 0.0\n    for (o,) in nested()['all']:\n        t += o.r\n    return t",
        "x * total()", "xs[0].r = 3.0"),
    "list of a class": ("Base.shared = [1.0]", "x * net.shared[0]", "Base.shared[0] = 4.0", "Base.shared[0] = 1.0"),
    "subclass of list": ("class L(list): pass\nheld = L([1.0]); held.r = 2.0", "x * held[0] * held.r", "held[0] = 5.0",
                         "held.r = 7.0"),
    "dictionary": ("net.d = {'b': 2.0}", "x * net.d['b']", "net.d['b'] = 7.0", "net.d['b'] = 2.0"),
    "nested containers": ("net.d = {'deep': [{'c': 3.0}]}", "x * net.d['deep'][0]['c']",
        "net.d['deep'][0].update(c=8.0)",
                          "net.d['deep'][0].update(c=3.0)"),
    "lists in lists": ("d = [[1.0, [2.0]], (3.0, [4.0])]", "x * d[1][1][0] * d[0][1][0]", "d[1][1][0] = 7.0"),
    "get of a dictionary": ("d = {'a': NS(r=1.0)}", "x * d.get('a').r", "d['a'].r = 3.0", "d['a'] = NS(r=7.0)"),
    "UserDict": ("d = collections.UserDict(a=1.0)", "x * d['a']", "d['a'] = 4.0"),
    "ChainMap": ("d = collections.ChainMap({'a': 1.0}, {'b': 2.0})", "x * d['b']", "d['b'] = 4.0"),
    "WeakValueDictionary": ("k = Base(r=1.0)\nd = weakref.WeakValueDictionary(a=k)", "x * d['a'].r", "k.r = 3.0"),
    "__getitem__ of one's own": ("class M(Base):\n    def __getitem__(s, k): return s.d[k]\nm = M(d={'a': 1.0})",
                                 "x * m['a']", "m.d['a'] = 4.0"),
    "tuple": ("net.t = 1.0, 2.0", "x * net.t[1]", "net.t = 1.0, 5.0", "net.t = 1.0, 2.0"),
    "named tuple": ("P = collections.namedtuple('P', 'o')\np = P(NS(r=1.0))", "x * p.o.r", "p.o.r = 3.0"),
    "methods of named tuples": (
        "class Pair(typing.NamedTuple):\n    a: float\n    def scale(self): return self.a\n"
        "class Mine(Pair): pass\nplain, mine = Pair(2.0), Mine(3.0)", "x * plain.scale() * mine.scale() * mine.a",
        "Mine.scale = lambda self: 7.0", "Pair.scale = lambda self: 4.0"),
    "dataclass": ("@dataclasses.dataclass\nclass S:\n    r: float = 0.5\nnet.s = S()", "x * net.s.r", "net.s.r = 5.0",
                  "net.s.r = 0.5"),
    "frozen dataclass": ("@dataclasses.dataclass(frozen=True)\nclass F:\n    r: float\nnet.s = F(0.5)", "x * net.s.r",
                         "net.s = F(5.0)", "net.s = F(0.5)"),
    "enum": ("M = enum.Enum('M', 'TRAIN TEST')\nnet.m = M.TRAIN", "x if net.m is M.TRAIN else -x", "net.m = M.TEST",
             "net.m = M.TRAIN"),
    "value of an enum": ("M = enum.Enum('M', 'TRAIN TEST')\nnet.m = M.TRAIN", "x * net.m.value", "net.m = M.TEST"),
    "slots": ("class S:\n    __slots__ = 'r', '__weakref__'\nnet.s = S(); net.s.r = 0.5", "x * net.s.r",
        "net.s.r = 5.0",
              "net.s.r = 0.5"),
    "array in place": ("net.a = np.array([1.0, 2.0])", "x * net.a", "net.a[0] = 9.0", "net.a[0] = 1.0"),
    "another array": ("net.a = np.array([1.0, 2.0])", "x * net.a", "net.a = np.full(2, 4.0)"),
    "view of an array": ("a = np.ones((2, 2)); o = NS(v=a[:, 1])", "x * o.v", "a[0, 1] = 5.0"),
    "array of objects": ("a = np.array([NS(r=1.0)], object)", "x * a[0].r", "a[0].r = 3.0"),
    "deque": ("a = collections.deque([1.0])", "x * a[0]", "a[0] = 5.0"),
    "bytearray": ("a = bytearray(b'\\x01')", "x * a[0]", "a[0] = 5"),
    "slice": ("net.part = slice(1, None)", "x * x[net.part]", "net.part = slice(0, 1)", "net.part = slice(1, None)"),
    "slices in a tuple": ("net.parts = np.s_[..., 1:]", "x * x[net.parts]", "net.parts = np.s_[..., :1]"),
    "subclass of float": ("class F(float): offset = 1.0\nf = F(2.0); f.s = 3.0", "x * f * f.s + f.offset", "f.s = 4.0",
                          "f.offset = 5.0"),
    "weak reference": ("sub = Base(r=1.5); net.weak = weakref.ref(sub)", "x * net.weak().r", "sub.r = 4.0",
        "sub.r = 1.5"),
    "object that is returned": ("c = [NS(r=1.0)]\ndef get(): return c[0]", "x * get().r", "c[0].r = 3.0",
        "c[0] = NS(r=7.0)"),
    "two changes in turn": ("net.a = net.b = 1.0", "x * net.a * net.b", "net.a = 2.0", "net.b = 3.0", "net.a = 1.0"),
}

#: How attributes are found: by name, by descriptors, by functions of Python.
ATTRIBUTES = {
    "getattr": ("net.rate_b = 2.0", "x * getattr(net, '_'.join(['rate', 'b']))", "net.rate_b = 5.0"),
    "getattr by another name": ("o = NS(r=1.0); ga = getattr", "x * ga(o, 'r')", "o.r = 3.0"),
    "getattr with a default": ("", "x * getattr(net, 'absent', 2.0)", "net.absent = 5.0", "del net.absent"),
    "hasattr": ("", "x * 2 if hasattr(net, 'absent') else x", "net.absent = 5.0", "del net.absent"),
    "vars": ("net.r = 0.5", "x * vars(net)['r']", "net.r = 3.0", "net.r = 0.5"),
    "__dict__": ("o = NS(r=1.0)", "x * o.__dict__['r']", "o.r = 3.0"),
    "attrgetter": ("o = NS(r=1.0)", "x * operator.attrgetter('r')(o)", "o.r = 3.0"),
    "object.__getattribute__": ("o = Base(r=1.0)", "x * object.__getattribute__(o, 'r')", "o.r = 3.0"),
    "__getattribute__ of one's own": (
        "class H(Base):\n    def __getattribute__(s, n): return object.__getattribute__(s, 'd' if n == 'r' else n)\n"
        "o = H(d=1.0)", "x * o.r", "o.d = 3.0"),
    "__getattr__": (
        "class D:\n    def __getattr__(s, n): return vars(s)['items'][n]\nd = D(); vars(d)['items'] = {'r': 0.5}",
                    "x * d.r", "vars(d)['items']['r'] = 5.0"),
    "__setattr__ and __getattr__": (
        "class M(Base):\n    def __setattr__(s, n, v): s._p[n] = v\n"
        "    def __getattr__(s, n): return object.__getattribute__(s, '_p')[n]\nm = M(_p={}); m.r = 1.0", "x * m.r",
            "m.r = 3.0"),
    "before __getattr__": ("class M:\n    def __getattr__(s, n): return 2.0\nm = M()", "x * m.later", "m.later = 5.0"),
    "descriptor": (
        "class D:\n    def __get__(s, o, t=None): return o.__dict__['_r']\n"
        "    def __set__(s, o, v): o.__dict__['_r'] = v\nBase.r = D(); net.r = 1.0", "x * net.r", "net.r = 3.0"),
    "property": ("Base.doubled = property(lambda s: s.half * 2); net.half = 0.25", "x * net.doubled", "net.half = 2.0",
                 "net.half = 0.25"),
    "abstract property": (
        "class A(abc.ABC):\n    @property\n    @abc.abstractmethod\n    def r(self): ...\n"
        "class B(A):\n    @property\n    def r(self): return self._r\nnet = B(); net._r = 1.0", "x * net.r",
            "net._r = 3.0"),
    "cached property": (
        "class C(Base):\n    @functools.cached_property\n    def c(s): return s.half * 2\nnet = C(half=0.25)",
                        "x * net.c", "net.c = 2.0", "net.c = 0.5"),
    "attribute of a function": ("def h(x): return x * h.r\nh.r = 1.0", "h(x)", "h.r = 3.0"),
    "attribute of a cell": ("@eb.cell\ndef h(x): return x * h.r\nh.r = 1.0", "h(x)", "h.r = 3.0"),
    "attribute of a parameter": ("W = eb.ParameterCollection().add_parameters(2); W.s = 1.0", "x * W.s", "W.s = 3.0"),
    "attribute of a collection": ("m = eb.ParameterCollection(); m.add_parameters(2, name='W', init=1.0); m.s = 1.0",
                                  "x * m.s * m['W']", "m.s = 3.0"),
    "subclass of a collection": (
        "class M(eb.ParameterCollection):\n    def __init__(s):\n        super().__init__()\n"
        "        s.W, s.r = s.add_parameters(2, init=1.0), 1.0\nm = M()", "x * m.W * m.r", "m.r = 3.0"),
    "attribute of an optimizer": ("m = eb.ParameterCollection(); m.add_parameters(2); t = eb.SGD(m, lr=0.1)",
        "x * t.lr",
                                  "t.lr = 0.3"),
    "slot in vain": ("class S:\n    __slots__ = 'later', '__weakref__'\ns = S()", "x * getattr(s, 'later', 2.0)",
        "s.later = 5.0"),
    "attribute in vain": (LAYER + IN_VAIN.format("AttributeError"), "x * later(net)", "Layer.later = 3.0",
        "net.later = 5.0"),
    "attribute in vain, of any error": (IN_VAIN.format("BaseException"), "x * later(net)", "net.later = 5.0"),
    "format": ("c = NS(r=2.0)", "x * float('{0.r}'.format(c))", "c.r = 4.0"),
    "format_map": ("c = NS(r=2.0)", "x * float('{c.r} '.format_map({'c': c}))", "c.r = 4.0"),
    "pattern of attributes": (
        "c = NS(act='tanh')\ndef f(c):\n    match c:\n        case NS(act='tanh'):\n            return 2.0\n"
        "        case _:\n            return 3.0", "x * f(c)", "c.act = 'relu'"),
    "pattern of positions": (
        "class C(Base): __match_args__ = 'act', 'r'\nc = C(act='tanh', r=2.0)\ndef f(c):\n    match c:\n"
        "        case C('tanh', r):\n            return r\n        case _:\n            return 3.0", "x * f(c)",
            "c.r = 5.0",
        "c.act = 'relu'"),
}

#: Classes: what a nearer one gets later, or another base holds.
CLASSES = {
    "class attribute": ("", "x * net.FACTOR", "Base.FACTOR = 8.0", "Base.FACTOR = 3.0"),
    "before the class's": ("", "x * net.FACTOR", "net.FACTOR = 8.0", "del net.FACTOR"),
    "another class": ("", "x * net.FACTOR", "net.__class__ = type('Other', (Base,), {'FACTOR': 6.0})",
        "net.__class__ = Base"),
    "nearer class": (LAYER, "x * net.rate", "Mine.rate = 5.0", "Layer.rate = 7.0; del Mine.rate"),
    "method": (LAYER, "x * net.factor()", "Mine.factor = lambda self: 4.0", "net.factor = lambda: 5.0"),
    "attribute in a method": ("Base.scale = lambda s, x: x * s.r; net.r = 2.0", "net.scale(x)", "net.r = 7.0",
        "net.r = 2.0"),
    "static method": (LAYER, "x * net.fixed()", "Mine.fixed = staticmethod(lambda: 4.0)"),
    "class method": (LAYER, "x * net.made()", "Mine.rate = 4.0"),
    "property of a nearer class": (LAYER, "x * net.doubled", "Mine.doubled = property(lambda self: 9.0)"),
    "property over what the object holds": (LAYER + "net.scale = 2.0", "x * net.scale",
        "Mine.scale = property(lambda s: 9.0)",
                                            "Mine.scale = property(lambda self: 3.0)"),
    "of its type": (LAYER + "net.rate = 3.0", "x * type(net).rate", "Mine.rate = 5.0",
        "Layer.rate = 7.0; del Mine.rate"),
    "of a class by name": (LAYER, "x * Mine.rate", "Mine.rate = 5.0", "Mine.rate = 1.0"),
    "metaclass": ("class Meta(type): rate = 2.0\nclass Sub(Meta): pass\nclass Mine(metaclass=Sub): pass",
        "x * Mine.rate",
                  "Meta.rate = 5.0", "Sub.rate = 6.0", "Mine.rate = 7.0"),
    "property of a metaclass": (
        "class M(type):\n    @property\n    def r(cls): return cls._r\nclass B(metaclass=M): _r = 1.0",
                                "x * B.r", "B._r = 3.0"),
    "super": (
        "class First: rate = 2.0\nclass Second(First): pass\n"
        "class Third(Second):\n    rate = 4.0\n    def f(self): return super().rate\nnet = Third()", "x * net.f()",
        "First.rate = 5.0", "Second.rate = 6.0"),
    "bases": ("class A: rate = 2.0\nclass B: rate = 4.0\nclass C(A): pass\nnet = C()", "x * net.rate",
        "C.__bases__ = (B,)"),
    "another class in the order": (
        "class Top: rate = 2.0\nclass Left(Top): pass\nclass Right(Top): pass\nclass C(Left, Right): pass\nnet = C()",
        "x * net.rate", "Right.rate = 5.0", "Left.rate = 6.0"),
    "default of getattr": (LAYER, "x * getattr(net, 'later', 2.0)", "Layer.later = 3.0", "Mine.later = 4.0",
        "net.later = 5.0"),
    "hasattr of a class": (LAYER, "x * (3.0 if hasattr(net, 'later') else 1.0)", "Layer.later = 3.0"),
    "default of a class": (LAYER, "x * getattr(type(net), 'later', 2.0)", "Layer.later = 3.0", "Mine.later = 4.0"),
    "registered class": ("class Kind(abc.ABC): pass\nclass Mine: pass\ngiven = Mine()",
                         "x * (2.0 if isinstance(given, Kind) else 3.0)", "Kind.register(Mine)"),
    "truth of what had none": (LAYER, "x * (2.0 if net else 3.0)", "Mine.__bool__ = lambda self: False"),
    **{name: (
        f"class Layer:\n    def {name}(self, *_): return {first}\nclass Mine(Layer): pass\no = Mine()", f"x * ({read})",
        f"Mine.{name} = lambda self, *_: {second}") for name, read, first, second in (
        ("__len__", "len(o)", 2, 3), ("__bool__", "2.0 if o else 3.0", True, False), ("__getitem__", "o[0]", 2.0, 3.0),
        ("__contains__", "2.0 if 1 in o else 3.0", True, False), ("__float__", "float(o)", 2.0, 3.0), ("__call__",
            "o()", 2.0, 3.0),
        ("__eq__", "2.0 if o == 1 else 3.0", True, False), ("__neg__", "-o", 2.0, 3.0))},
}

#: Functions, closures, globals and modules.
FUNCTIONS = {
    "global": ("G = 2.0", "x * G", "G = 5.0", "G = 2.0"),
    "global of a helper": ("G = 2.0\ndef helper(x): return x * G", "helper(x)", "G = 5.0", "G = 2.0"),
    "list of a helper": ("L = [1.0]\ndef helper(x): return x * len(L)", "helper(x)", "L.append(1.0)", "L.pop()"),
    "attribute of a global": ("C = NS(inner=NS(depth=2))", "x * C.inner.depth", "C.inner.depth = 5",
        "C.inner.depth = 2"),
    "globals()": ("G = 1.0", "x * globals()['G']", "G = 3.0"), "eval": ("G = 1.0", "x * eval('G')", "G = 3.0"),
    "closure": (
        "def make():\n    r = 2.0\n    def put(to):\n        nonlocal r\n        r = to\n"
        "    return lambda x: x * r, put\nf, put = make()", "f(x)", "put(4.0)", "put(2.0)"),
    "default argument": ("c = NS(r=1.0)\ndef f(x, c=c): return x * c.r", "f(x)", "c.r = 5.0",
        "f.__defaults__ = (NS(r=7.0),)"),
    "default by keyword": ("c = NS(r=1.0)\ndef f(x, *, c=c): return x * c.r", "f(x)", "c.r = 5.0",
                           "f.__kwdefaults__ = {'c': NS(r=7.0)}"),
    "another function": ("net.act = eb.tanh", "net.act(x)", "net.act = eb.relu", "net.act = eb.tanh"),
    "other code": ("def f(x): return x * 2\ndef g(x): return x * 3", "f(x)", "f.__code__ = g.__code__"),
    "callable object": ("class C:\n    r = 0.5\n    def __call__(s, x): return x * s.r\nnet.c = C()", "net.c(x)",
        "net.c.r = 5.0",
                        "net.c.r = 0.5"),
    "bound method": ("Base.f = lambda s, x: x * s.r; sub = Base(r=2.0); net.m = sub.f", "net.m(x)", "sub.r = 7.0",
        "sub.r = 2.0"),
    "partial": ("net.f = functools.partial(eb.clip, low=0.1, high=0.3)", "net.f(x)",
                "net.f = functools.partial(eb.clip, low=0.2, high=0.4)"),
    "partialmethod": (
        "class C:\n    r = 1.0\n    def f(s, x, k): return x * k * s.r\n"
        "    g = functools.partialmethod(f, k=2.0)\nnet = C()", "net.g(x)", "net.r = 3.0"),
    "__wrapped__": ("def f(x): return x\nf.__wrapped__ = lambda x: x * 2", "f.__wrapped__(x)",
        "f.__wrapped__ = lambda x: x * 3"),
    "singledispatch": ("o = NS(r=1.0)\n@functools.singledispatch\ndef f(a): return o.r", "x * f(1)", "o.r = 3.0"),
    "object of a cache": ("o = NS(r=1.0)\n@functools.cache\ndef get(): return o", "x * get().r", "o.r = 3.0"),
    **{f"cache of {size} that forgets": (
        f"o = NS(r=1.0, s=2.0)\n@functools.lru_cache({size})\ndef r(k): return o.r * k\n"
        f"Base.s = functools.lru_cache({size})(lambda self, k: o.s * k)\nr(2)", "x * r(2) * net.s(3)",
        "o.r = 3.0; r.cache_clear()", "o.s = 5.0; Base.s.cache_clear(); r(7)") for size in (128, None)},
    "cache that is filled again": ("o = NS(r=1.0)\n@functools.lru_cache\ndef r(): return o.r\nr()", "x * r()",
                                   "o.r += 1; r.cache_clear(); r()", "o.r += 1; r.cache_clear(); r()"),
    "context manager": ("o = NS(r=1.0)\n@contextlib.contextmanager\ndef cm():\n    yield o.r\n"
                        "def f(x):\n    with cm() as r:\n        return x * r", "f(x)", "o.r = 3.0"),
    "context variable": ("V = contextvars.ContextVar('V', default=1.0)", "x * V.get()", "V.set(5.0)", "V.set(1.0)"),
    "module": ("m = types.ModuleType('m'); m.r = 0.5", "x * m.r", "m.r = 5.0", "m.r = 0.5"),
    "import from inside": ("m = sys.modules['of_a_test'] = types.ModuleType('of_a_test'); m.r = 1.0\n"
                           "def f(x):\n    from of_a_test import r\n    return x * r", "f(x)", "m.r = 3.0"),
    "import inside": ("m = sys.modules['of_a_test'] = types.ModuleType('of_a_test'); m.r = 1.0\n"
                      "def f(x):\n    import of_a_test\n    return x * of_a_test.r", "f(x)", "m.r = 3.0"),
    "environment": ("os.environ['OF_A_TEST'] = '1.0'", "x * float(os.environ['OF_A_TEST'])",
        "os.environ['OF_A_TEST'] = '3.0'"),
    "object that is given by keyword": ("c = Base(r=1.0)\nf = eb.cell(lambda x, *, c: x * c.r)", "f(x, c=c)",
        "c.r = 3.0"),
    "cell in a cell": ("Base.inner = eb.cell(lambda net, x: x * net.r); net.r = 1.0", "net.inner(x)", "net.r = 5.0"),
    "random numbers from a seed": ("o = NS(r=1.0)", "x * (o.r * np.random.default_rng(3).integers(1, 9))", "o.r = 2.0"),
    "what is logged and printed": (
        "o, text, log = NS(r=1.0), io.StringIO(), logging.getLogger('edbatch.test')\n"
        "def f():\n    log.warning('the time')\n    time.sleep(0)\n    print('traced', file=text)\n"
        "    with np.errstate(over='ignore'), decimal.localcontext():\n        return o.r", "x * f()", "o.r = 2.0"),
}

PARAMETERS = """
m = eb.ParameterCollection(seed=0)
ps = [m.add_parameters((2, 2)) for _ in range(3)]
net.W, L = ps[0], [ps[0]]
"""
#: Parameters that are replaced, listed and frozen, and what is drawn.
MODELS = {
    "another parameter": (PARAMETERS, "net.W @ x", "net.W = ps[1]", "net.W = ps[2]", "net.W = ps[0]"),
    "list of parameters": (PARAMETERS, "functools.reduce(lambda x, p: p @ x, L, x)", "L.append(ps[1])", "L[0] = ps[2]"),
    "value of a parameter": (PARAMETERS, "net.W @ x", "net.W.set_value(net.W.value() * 3)"),
    "another model": (PARAMETERS, "net.W @ x", "m = eb.ParameterCollection(seed=9); net.W = m.add_parameters((2, 2))"),
    "frozen": (PARAMETERS, "x * (2.0 if net.W.frozen else 1.0)", "net.W.freeze()", "m.freeze(False)"),
    "penalties of what is trained": (PARAMETERS, "x * eb.sum([eb.sum(p * p) for p in m if not p.frozen])",
        "ps[0].freeze()",
                                     "m.add_parameters((2, 2), init=2.0)", "ps[0].freeze(False)"),
}
MUTATIONS = OBJECTS | ATTRIBUTES | CLASSES | FUNCTIONS | MODELS

GENERATOR = np.random.default_rng(0)
#: What cannot be watched: before it, and a number that is read.
REFUSED = {
    "attrgetter of before": ("o = NS(r=1.0); g = operator.attrgetter('r')", "g(o)"),
    "thread-local": ("t = threading.local(); t.r = 1.0", "t.r"),
    "memoryview": ("o = NS(m=memoryview(bytearray(b'\\x01')))", "o.m[0]"),
    "iterator": ("o = iter([1.0])", "2.0 if o else 1.0"),
    "iterator of a deque": ("o = iter(collections.deque([1.0]))", "2.0 if o is not None else 1.0"),
    "tensor": ("import torch; t = torch.ones(1)", "float(t[0])"),
    "text of a file": ("p = pathlib.Path(tempfile.mkdtemp()) / 'r'; p.write_text('1.0')", "float(p.read_text())"),
    "open": ("def f():\n    with open(os.devnull) as file:\n        return float(len(file.read()))", "f()"),
    "np.load": ("p = tempfile.mkdtemp() + '/r.npy'; np.save(p, np.ones(()))", "float(np.load(p))"),
    "np.fromfile": ("", "float(np.fromfile(os.devnull, np.uint8).size)"),
    "text in memory": ("t = io.StringIO('2.0')", "float(t.getvalue())"),
    "bytes in memory": ("t = io.BytesIO(b'2.0')", "float(t.getvalue())"),
    "random numbers of an object": ("r = random.Random(0)", "(r.random() > 2)"),
    "random numbers of a local module": ("def f():\n    import numpy\n    return numpy.random.randint(1, 2)", "f()"),
    "decimal context": ("", "decimal.getcontext().prec"), "by name": ("g = decimal.getcontext", "g().prec"),
    "errors of NumPy": ("", "2.0 if np.geterr()['over'] == 'warn' else 1.0"),
    **{text: ("", f"float({text})") for text in (
        "os.path.exists('no such file')", "pathlib.Path('no such file').exists()", "len(os.listdir('.'))",
        "sys.getrecursionlimit()", "time.time() // 1e9", "time.perf_counter_ns() // 10**18",
            "datetime.date.today().year",
        "datetime.datetime.now().year", "np.random.get_state()[2]", "np.random.randint(1, 2)",
            "GENERATOR.integers(1, 2)",
        "random.randint(1, 1)", "random.getrandbits(1)", "len(random.getstate())", "len(os.urandom(1))",
        "secrets.randbelow(1)", "secrets.choice([1])", "uuid.uuid4().version", "len(inspect.stack(0))",
        "sys._getframe().f_lineno", "sys.getrefcount(GENERATOR)", "threading.active_count()",
            "threading.get_ident() > 0",
        "os.getpid()", "len(os.getcwd())", "len(os.path.abspath('x'))", "len(str(pathlib.Path.home()))",
        "len(list(os.walk(os.curdir))[:1])", "len(glob.glob('no such file'))",
            "shutil.which('no such program') is None",
        "gc.isenabled()", "tracemalloc.is_tracing()", "id(GENERATOR) > 0", "np.get_printoptions()['precision']",
        "len(locale.localeconv())", "len(contextvars.copy_context())")},
}
# fmt: on


class Program:
    """A program of the table, in names of its own.

    Attributes:
        names: its globals.
        read: what it computes of x; `method` computes the same of (net, x).
    """

    def __init__(self, setup, expression):
        self.names = {module.__name__: module for module in MODULES} | {"np": np, "eb": eb, "NS": NS}
        self.names |= {"__name__": __name__, "GENERATOR": GENERATOR}
        for text in (PRELUDE, setup, f"def read(x): return {expression}\ndef method(net, x): return {expression}\n"):
            exec(text, self.names)
        self.read, self.method = self.names["read"], self.names["method"]

    def change(self, text):
        exec(text, self.names)
