"""Programs that read what decides their numbers in every way that Python has; what changes is seen, or refused."""

import abc
import collections
import contextlib
import contextvars
import datetime
import decimal
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
import uuid
import weakref

import numpy as np
import pytest

import edbatch as eb
from edbatch.graph.watch.state import READS_STATE

CASES, REFUSED = {}, {}


def case(make):
    """A function that makes a cell to call, and changes of what it reads."""
    CASES[make.__name__] = make
    return make


def refused(make):
    """One of a cell that reads what cannot be watched."""
    REFUSED[make.__name__] = make
    return make


def value_of(call, cells):
    with eb.options(cells=cells), eb.Graph(policy="depth"):
        return call(eb.input([0.3, -0.2])).value()


@case
def abc_property():
    class B(abc.ABC):
        @property
        @abc.abstractmethod
        def r(self): ...
        @eb.cell
        def step(self, x):
            return x * self.r

    class C(B):
        def __init__(s):
            s._r = 1.0

        @property
        def r(self):
            return self._r

    c = C()
    return c.step, [lambda: setattr(c, "_r", 3.0)]


@case
def descriptor():
    class D:
        def __set_name__(s, o, n):
            s.n = "_" + n

        def __get__(s, o, t=None):
            return o.__dict__[s.n]

        def __set__(s, o, v):
            o.__dict__[s.n] = v

    class C:
        r = D()

        def __init__(s):
            s.r = 1.0

        @eb.cell
        def step(self, x):
            return x * self.r

    c = C()
    return c.step, [lambda: setattr(c, "r", 3.0)]


@case
def getitem_obj():
    class M:
        def __init__(s):
            s.d = {"a": 1.0}

        def __getitem__(s, k):
            return s.d[k]

    class C:
        def __init__(s):
            s.m = M()

        @eb.cell
        def step(self, x):
            return x * self.m["a"]

    c = C()
    return c.step, [lambda: c.m.d.__setitem__("a", 4.0)]


@case
def userdict():
    d = collections.UserDict(a=1.0)

    @eb.cell
    def step(x):
        return x * d["a"]

    return step, [lambda: d.__setitem__("a", 4.0)]


@case
def chainmap():
    d = collections.ChainMap({"a": 1.0}, {"b": 2.0})

    @eb.cell
    def step(x):
        return x * d["b"]

    return step, [lambda: d.__setitem__("b", 4.0)]


@case
def environ():
    os.environ["RATE_X"] = "1.0"

    @eb.cell
    def step(x):
        return x * float(os.environ["RATE_X"])

    return step, [lambda: os.environ.__setitem__("RATE_X", "3.0")]


@case
def dict_get_obj():
    reg = {"a": types.SimpleNamespace(r=1.0)}

    @eb.cell
    def step(x):
        return x * reg.get("a").r

    return step, [lambda: setattr(reg["a"], "r", 3.0), lambda: reg.__setitem__("a", types.SimpleNamespace(r=7.0))]


@case
def global_func_returning():
    cur = [types.SimpleNamespace(r=1.0)]

    def get():
        return cur[0]

    @eb.cell
    def step(x):
        return x * get().r

    return step, [lambda: setattr(cur[0], "r", 3.0), lambda: cur.__setitem__(0, types.SimpleNamespace(r=7.0))]


@case
def iter_next():
    xs = [types.SimpleNamespace(r=1.0)]

    @eb.cell
    def step(x):
        return x * next(iter(xs)).r

    return step, [lambda: setattr(xs[0], "r", 3.0)]


@case
def zip_enum():
    xs = [types.SimpleNamespace(r=1.0), types.SimpleNamespace(r=2.0)]

    @eb.cell
    def step(x):
        for i, o in enumerate(xs):
            x = x * o.r + i
        return x

    return step, [lambda: setattr(xs[0], "r", 3.0)]


@case
def mapfn():
    xs = [types.SimpleNamespace(r=1.0)]

    @eb.cell
    def step(x):
        return x * sum(map(lambda o: o.r, xs))  # noqa: C417

    return step, [lambda: setattr(xs[0], "r", 3.0)]


@refused
def attrgetter():
    o = types.SimpleNamespace(r=1.0)
    g = operator.attrgetter("r")

    @eb.cell
    def step(x):
        return x * g(o)

    return step, [lambda: setattr(o, "r", 3.0)]


@case
def attrgetter_inline():
    o = types.SimpleNamespace(r=1.0)

    @eb.cell
    def step(x):
        return x * operator.attrgetter("r")(o)

    return step, [lambda: setattr(o, "r", 3.0)]


@case
def getattr_alias():
    o = types.SimpleNamespace(r=1.0)
    ga = getattr

    @eb.cell
    def step(x):
        return x * ga(o, "r")

    return step, [lambda: setattr(o, "r", 3.0)]


@case
def dunder_dict():
    o = types.SimpleNamespace(r=1.0)

    @eb.cell
    def step(x):
        return x * o.__dict__["r"]

    return step, [lambda: setattr(o, "r", 3.0)]


@case
def getattribute_obj():
    class Holder:
        def __init__(s):
            s.r = 1.0

    o = Holder()

    @eb.cell
    def step(x):
        return x * object.__getattribute__(o, "r")

    return step, [lambda: setattr(o, "r", 3.0)]


@case
def dunder_getattribute():
    class Holder:
        def __init__(s):
            s.d = 1.0

        def __getattribute__(s, n):
            return object.__getattribute__(s, "d") if n == "r" else object.__getattribute__(s, n)

    o = Holder()

    @eb.cell
    def step(x):
        return x * o.r

    return step, [lambda: setattr(o, "d", 3.0)]


@case
def globals_call():
    globals()["GG"] = 1.0

    @eb.cell
    def step(x):
        return x * globals()["GG"]

    return step, [lambda: globals().__setitem__("GG", 3.0)]


@case
def evals():
    globals()["GG"] = 1.0

    @eb.cell
    def step(x):
        return x * eval("GG")

    return step, [lambda: globals().__setitem__("GG", 3.0)]


@case
def import_inside():
    m = types.ModuleType("somecfg")
    m.RATE = 1.0
    sys.modules["somecfg"] = m

    @eb.cell
    def step(x):
        from somecfg import RATE

        return x * RATE

    return step, [lambda: setattr(m, "RATE", 3.0)]


@case
def import_inside2():
    m = types.ModuleType("somecfg2")
    m.RATE = 1.0
    sys.modules["somecfg2"] = m

    @eb.cell
    def step(x):
        import somecfg2 as c

        return x * c.RATE

    return step, [lambda: setattr(m, "RATE", 3.0)]


@case
def sysmodules():
    m = types.ModuleType("somecfg3")
    m.RATE = 1.0
    sys.modules["somecfg3"] = m

    @eb.cell
    def step(x):
        return x * sys.modules["somecfg3"].RATE

    return step, [lambda: setattr(m, "RATE", 3.0)]


@refused
def threadlocal():
    t = threading.local()
    t.r = 1.0

    @eb.cell
    def step(x):
        return x * t.r

    return step, [lambda: setattr(t, "r", 3.0)]


@case
def generator_expr():
    o = types.SimpleNamespace(r=[1.0, 2.0])

    @eb.cell
    def step(x):
        return x * sum(r for r in o.r)

    return step, [lambda: o.r.__setitem__(0, 3.0)]


@case
def contextmanager():
    o = types.SimpleNamespace(r=1.0)

    @contextlib.contextmanager
    def cm():
        yield o.r

    @eb.cell
    def step(x):
        with cm() as r:
            return x * r

    return step, [lambda: setattr(o, "r", 3.0)]


@case
def lru():
    o = types.SimpleNamespace(r=1.0)

    @functools.lru_cache(None)
    def get():
        return o

    @eb.cell
    def step(x):
        return x * get().r

    return step, [lambda: setattr(o, "r", 3.0)]


def forgotten(maxsize):
    """One number is remembered before the cell is traced, another by its trace; then both are forgotten."""
    o = types.SimpleNamespace(r=1.0, s=2.0)

    @functools.lru_cache(maxsize)
    def r(k):
        return o.r * k

    class C:
        s = functools.lru_cache(maxsize)(lambda self, k: o.s * k)

        @eb.cell
        def step(self, x):
            return x * r(2) * self.s(3)

    def first():
        o.r = 3.0
        r.cache_clear()

    def second():
        o.s = 5.0
        C.s.cache_clear()
        r(7)

    c = C()
    r(2)
    return c.step, [first, second]


@case
def lru_forgotten_and_found_again():
    """The entry of the cache is there at each look; what is in it is not shown."""
    o = types.SimpleNamespace(r=1.0)

    @functools.lru_cache
    def r():
        return o.r

    def change():
        o.r += 1
        r.cache_clear()
        r()

    @eb.cell
    def step(x):
        return x * r()

    r()
    return step, [change, change]


@case
def registered_class():
    class Kind(abc.ABC):  # noqa: B024 (it is told its classes)
        pass

    class Mine:
        pass

    given = Mine()

    @eb.cell
    def step(x):
        return x * (2.0 if isinstance(given, Kind) else 3.0)

    return step, [lambda: Kind.register(Mine)]


@case
def lru_forgotten():
    return forgotten(128)


@case
def lru_unbounded_forgotten():
    return forgotten(None)


@case
def singledispatch():
    o = types.SimpleNamespace(r=1.0)

    @functools.singledispatch
    def f(a):
        return o.r

    @eb.cell
    def step(x):
        return x * f(1)

    return step, [lambda: setattr(o, "r", 3.0)]


@case
def partialmethod():
    class C:
        r = 1.0

        def f(s, x, k):
            return x * k * s.r

        g = functools.partialmethod(f, k=2.0)

        @eb.cell
        def step(s, x):
            return s.g(x)

    c = C()
    return c.step, [lambda: setattr(c, "r", 3.0)]


@case
def super_attr():
    class A:
        r = 1.0

    class B(A):
        @eb.cell
        def step(self, x):
            return x * super().r

    b = B()
    return b.step, [lambda: setattr(A, "r", 3.0)]


@case
def type_self_attr():
    class B:
        r = 1.0

        @eb.cell
        def step(self, x):
            return x * type(self).r

    b = B()
    return b.step, [lambda: setattr(B, "r", 3.0)]


@case
def metaclass_attr():
    class M(type):
        @property
        def r(cls):
            return cls._r

    class B(metaclass=M):
        _r = 1.0

        @eb.cell
        def step(self, x):
            return x * type(self).r

    b = B()
    return b.step, [lambda: setattr(B, "_r", 3.0)]


@case
def nested_lists():
    d = [[1.0, [2.0]], (3.0, [4.0])]

    @eb.cell
    def step(x):
        return x * d[1][1][0] * d[0][1][0]

    return step, [lambda: d[1][1].__setitem__(0, 7.0)]


@case
def obj_array():
    a = np.array([types.SimpleNamespace(r=1.0)], object)

    @eb.cell
    def step(x):
        return x * a[0].r

    return step, [lambda: setattr(a[0], "r", 3.0)]


@case
def array_view():
    a = np.ones((2, 2))
    o = types.SimpleNamespace(v=a[:, 1])

    @eb.cell
    def step(x):
        return x * o.v

    return step, [lambda: a.__setitem__((0, 1), 5.0)]


@case
def deque_():
    a = collections.deque([1.0])

    @eb.cell
    def step(x):
        return x * a[0]

    return step, [lambda: a.__setitem__(0, 5.0)]


@case
def bytearr():
    a = bytearray(b"\x01")

    @eb.cell
    def step(x):
        return x * a[0]

    return step, [lambda: a.__setitem__(0, 5)]


@refused
def memview():
    a = bytearray(b"\x01")
    o = types.SimpleNamespace(m=memoryview(a))

    @eb.cell
    def step(x):
        return x * o.m[0]

    return step, [lambda: a.__setitem__(0, 5)]


@case
def list_subclass():
    class L(list):
        pass

    held = L([1.0])
    held.r = 2.0

    @eb.cell
    def step(x):
        return x * held[0] * held.r

    return step, [lambda: held.__setitem__(0, 5.0), lambda: setattr(held, "r", 7.0)]


@case
def float_subclass():
    class F(float):
        pass

    f = F(1.0)
    f.r = 1.0
    o = types.SimpleNamespace(f=f)

    @eb.cell
    def step(x):
        return x * o.f.r

    return step, [lambda: setattr(f, "r", 7.0)]


@case
def arg_object_static():
    class K:
        def __init__(s):
            s.r = 1.0

    k = K()
    f = eb.cell(lambda x, *, cfg: x * cfg.r)
    return (lambda x: f(x, cfg=k)), [lambda: setattr(k, "r", 3.0)]


@case
def kwdefaults():
    o = types.SimpleNamespace(r=1.0)

    @eb.cell
    def step(x, *, cfg=o):
        return x * cfg.r

    c = step.__wrapped__.__kwdefaults__["cfg"]
    return step, [lambda: setattr(c, "r", 3.0)]


@case
def replaced_code():
    def h(x):
        return x * 2

    def h2(x):
        return x * 3

    @eb.cell
    def step(x):
        return h(x)

    return step, [lambda: setattr(h, "__code__", h2.__code__)]


@case
def monkey_method():
    class C:
        def f(s, x):
            return x

        @eb.cell
        def step(s, x):
            return s.f(x)

    c = C()
    return c.step, [lambda: setattr(C, "f", lambda s, x: x * 3), lambda: setattr(c, "f", lambda x: x * 5)]


@case
def weakvaluedict():
    class K:
        pass

    k = K()
    k.r = 1.0
    d = weakref.WeakValueDictionary(a=k)

    @eb.cell
    def step(x):
        return x * d["a"].r

    return step, [lambda: setattr(k, "r", 3.0)]


@case
def paramlist():
    m = eb.ParameterCollection(seed=0)
    ps = [m.add_parameters((2, 2)) for _ in range(3)]
    L = [ps[0]]

    @eb.cell
    def step(x):
        for p in L:
            x = p @ x
        return x

    return step, [lambda: L.append(ps[1]), lambda: L.__setitem__(0, ps[2])]


@refused
def pathlib_read():
    p = pathlib.Path(tempfile.mkdtemp()) / "r"
    p.write_text("1.0")

    @eb.cell
    def step(x):
        return x * float(p.read_text())

    return step, [lambda: p.write_text("3.0")]


@refused
def np_load():
    p = tempfile.mkdtemp() + "/r.npy"
    np.save(p, np.ones(2))

    @eb.cell
    def step(x):
        return x * np.load(p)

    return step, [lambda: np.save(p, np.ones(2) * 3)]


@refused
def random_seeded():
    r = random.Random(0)

    @eb.cell
    def step(x):
        return x * (r.random() > 2)

    return step, []


@case
def named_tuple_of_objs():
    P = collections.namedtuple("P", "o")
    p = P(types.SimpleNamespace(r=1.0))

    @eb.cell
    def step(x):
        return x * p.o.r

    return step, [lambda: setattr(p.o, "r", 3.0)]


@case
def nn_style_dict():
    class Mod:
        def __init__(s):
            object.__setattr__(s, "_p", {})

        def __setattr__(s, n, v):
            s._p[n] = v

        def __getattr__(s, n):
            try:
                return object.__getattribute__(s, "_p")[n]
            except KeyError:
                raise AttributeError(n) from None

        @eb.cell
        def step(s, x):
            return x * s.r

    m = Mod()
    m.r = 1.0
    return m.step, [lambda: setattr(m, "r", 3.0)]


@case
def fn_attr():
    def h(x):
        return x * h.r

    h.r = 1.0

    @eb.cell
    def step(x):
        return h(x)

    return step, [lambda: setattr(h, "r", 3.0)]


@case
def cell_attr():
    @eb.cell
    def step(x):
        return x * step.r

    step.r = 1.0
    return step, [lambda: setattr(step, "r", 3.0)]


@case
def param_attr():
    m = eb.ParameterCollection(seed=0)
    W = m.add_parameters((2,))
    W.scale = 1.0

    @eb.cell
    def step(x):
        return x * W.scale

    return step, [lambda: setattr(W, "scale", 3.0)]


@case
def collection_attr():
    m = eb.ParameterCollection(seed=0)
    m.add_parameters((2,), name="W", init=1.0)
    m.scale = 1.0

    @eb.cell
    def step(x):
        return x * m.scale * m["W"]

    return step, [lambda: setattr(m, "scale", 3.0)]


@case
def subclass_collection():
    class Model(eb.ParameterCollection):
        def __init__(s):
            super().__init__()
            s.W = s.add_parameters((2,), init=1.0)
            s.r = 1.0

        @eb.cell
        def step(s, x):
            return x * s.W * s.r

    m = Model()
    return m.step, [lambda: setattr(m, "r", 3.0)]


@case
def lr_trainer():
    m = eb.ParameterCollection(seed=0)
    m.add_parameters((2,), init=1.0)
    t = eb.SGD(m, lr=0.1)

    @eb.cell
    def step(x):
        return x * t.lr

    return step, [lambda: setattr(t, "lr", 0.3)]


def reading(read):
    @eb.cell
    def step(x):
        return x * read()

    return step, []


@refused
def text_in_memory():
    text = io.StringIO("2.0")
    return reading(lambda: float(text.getvalue()))


@refused
def bytes_in_memory():
    data = io.BytesIO(b"2.0")
    return reading(lambda: float(data.read()) if data.seek(0) == 0 else 1.0)


@refused
def iterator_of_a_deque():
    numbers = iter(collections.deque([1.0, 2.0, 2.0]))
    return reading(lambda: 2.0 if numbers is not None else 1.0)


@refused
def decimal_context():
    return reading(lambda: decimal.getcontext().prec)


@refused
def decimal_context_by_name():
    getcontext = decimal.getcontext
    return reading(lambda: getcontext().prec)


@refused
def numpy_errors():
    return reading(lambda: 2.0 if np.geterr()["over"] == "warn" else 1.0)


@refused
def file_that_may_come():
    return reading(lambda: 2.0 if os.path.exists("no such file") else 1.0)


@refused
def path_that_may_come():
    return reading(lambda: 2.0 if pathlib.Path("no such file").exists() else 1.0)


@refused
def random_numbers_of_a_local_module():
    @eb.cell
    def step(x):
        import numpy as np

        return x * np.random.randint(1, 2)  # noqa: NPY002

    return step, []


@refused
def files_in_folder():
    return reading(lambda: float(len(os.listdir("."))))


@refused
def depth_of_calls():
    return reading(lambda: float(sys.getrecursionlimit()))


GENERATOR = np.random.default_rng(0)
STATE = {
    "clock": lambda: time.time() // 1e9,
    "monotonic clock": lambda: time.perf_counter_ns() // 10**18,
    "date": lambda: datetime.date.today().year,
    "date and time": lambda: datetime.datetime.now().year,
    "state of random numbers of NumPy": lambda: np.random.get_state()[2],  # noqa: NPY002
    "random numbers of NumPy": lambda: np.random.randint(1, 2),  # noqa: NPY002
    "a generator of NumPy": lambda: GENERATOR.integers(1, 2),
    "random numbers": lambda: random.randint(1, 1),
    "a random number in C": lambda: random.getrandbits(1),
    "state of random numbers": lambda: len(random.getstate()),
    "random bytes": lambda: len(os.urandom(1)),
    "secrets": lambda: secrets.randbelow(1) + secrets.choice([1]),
    "a unique id": lambda: uuid.uuid4().version,
    "calls": lambda: len(inspect.stack()),
    "frame": lambda: sys._getframe().f_lineno,
    "references": lambda: sys.getrefcount(GENERATOR),
    "threads": threading.active_count,
    "thread": lambda: float(threading.get_ident() > 0),
    "process": os.getpid,
    "folder": lambda: len(os.getcwd()),
    "absolute path": lambda: len(os.path.abspath("x")),
    "home": lambda: len(str(pathlib.Path.home())),
    "walk": lambda: len(list(os.walk(os.curdir))[:1]),
    "found files": lambda: len(glob.glob("no such file")),
    "program": lambda: float(shutil.which("no such program") is None),
    "garbage": lambda: float(gc.isenabled()),
    "memory": lambda: float(tracemalloc.is_tracing()),
    "id": lambda: float(id(GENERATOR) > 0),
    "printing": lambda: np.get_printoptions()["precision"],
    "locale": lambda: len(locale.localeconv()),
    "context": lambda: len(contextvars.copy_context()),
    "array in a file": lambda: np.fromfile(os.devnull, np.uint8).size,
}
for name, read in STATE.items():
    REFUSED[name] = functools.partial(lambda read: reading(lambda: float(read())), read)


def test_the_library_has_no_other_functions_of_such_names():
    """What Python gets in later versions is put on the list, or here."""
    constant = {
        "getsizeof", "getdefaultencoding", "getfilesystemencoding", "getfilesystemencodeerrors", "getandroidapilevel",
        "getwindowsversion", "getenv", "getenvb", "get_exec_path", "get_handle_inheritable", "get_inheritable", "sleep",
        "tzset", "pthread_getcpuclockid", "clock_settime", "clock_settime_ns", "isabs", "get_debug", "is_tracked",
        "is_finalized", "is_finalizing", "is_stack_trampoline_active", "strptime",
    }  # fmt: skip
    for module, begins in (
        (os, ("get", "is")),
        (os.path, ("get", "is")),
        (sys, "get"),
        (time, ""),
        (gc, ("get", "is")),
    ):
        known = READS_STATE.get(module.__name__, set()) | constant
        functions = {
            name
            for name, value in vars(module).items()
            if isinstance(value, types.BuiltinFunctionType | types.FunctionType)
        }
        assert {name for name in functions if name.startswith(begins)} - known == set()


@case
def random_numbers_that_are_the_same_in_each_call():
    rate = [1.0]

    def read():
        return rate[0] * np.random.RandomState(3).randint(1, 9) * np.random.default_rng(3).integers(1, 9)

    return reading(read)[0], [lambda: rate.__setitem__(0, 2.0)]


@case
def the_library_may_ask_for_the_time():
    rate, log = [1.0], logging.getLogger("edbatch.test")

    def read():
        log.warning("asks for the time, the thread and the process")
        time.sleep(0)
        return rate[0]

    return reading(read)[0], [lambda: rate.__setitem__(0, 2.0)]


@case
def what_is_written_to_files():
    text, rate = io.StringIO(), [1.0]

    def read():
        print("traced", file=text)
        text.write("traced")
        with np.errstate(over="ignore"), decimal.localcontext():
            return rate[0]

    step, _ = reading(read)
    return step, [lambda: rate.__setitem__(0, 2.0)]


class Layer:
    def __init__(s, rate):
        s.rate = rate


class Layers:
    def __init__(s):
        s.layers = [Layer(1.0), Layer(2.0)]

    def listed(s):
        return list(s.layers)

    def nested(s):
        return {"all": [(one,) for one in s.layers]}


def of_layers(read):
    net = Layers()

    @eb.cell
    def step(x):
        return x * sum(read(net), 0.0)

    return step, [lambda: setattr(net.layers[0], "rate", 3.0), lambda: setattr(net.layers[1], "rate", 5.0)]


@case
def comprehension_over_objects():
    return of_layers(lambda net: [one.rate for one in net.layers])


@case
def comprehension_by_name():
    return of_layers(lambda net: [getattr(one, "rate") for one in net.layers])  # noqa: B009


@case
def set_comprehension_of_what_is_returned():
    return of_layers(lambda net: {one.rate for one in net.listed()})


@case
def loop_over_what_is_returned():
    def read(net):
        total = 0.0
        for one in net.listed():
            total += one.rate
        for (one,) in net.nested()["all"]:
            total += one.rate
        return [total]

    return of_layers(read)


@pytest.mark.parametrize("name", CASES)
def test_changes_are_seen(name):
    call, changes = CASES[name]()
    before = value_of(call, True)
    np.testing.assert_allclose(before, value_of(call, False), rtol=1e-6)
    for change in changes:
        change()
        got = value_of(call, True)
        np.testing.assert_allclose(got, value_of(call, False), rtol=1e-6)
        assert np.abs(got - before).max() > 0.01


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_watched_is_refused(name):
    call, _ = REFUSED[name]()
    with pytest.raises(eb.EdBatchError, match=r"cell .*: it (reads|calls) "):
        value_of(call, True)


class TestChangedInsideOneGraph:
    """Numbers of the object, whether of its own or of its class, are looked at in every call."""

    def values(self, one, names):
        with eb.Graph(policy="none"):
            x = eb.ones(1)
            found = [one.step(x)]
            for name in names:
                setattr(one, name, 2.0)
                found.append(one.step(x))
            for name in names:
                delattr(one, name)
                found.append(one.step(x))
        return [y.value().item() for y in found]

    def kinds(self):
        class Defaults:
            a = b = c = d = 1.0

            @eb.cell
            def step(self, x):
                return x * self.a * self.b * self.c * self.d

        class Mixed(Defaults):
            def __init__(self):
                self.d = 1.0

        return Defaults, Mixed

    def test_one_object(self):
        for kind in self.kinds():
            want = [1, 2, 4, 8, 16, 8, 4, 2, 1]
            one = kind()
            assert self.values(one, "abcd") == want
            assert self.values(one, "abcd") == want

    def test_objects_in_turn(self):
        Defaults, Mixed = self.kinds()
        ones, counts = [Defaults(), Mixed(), Defaults()], [0, 0, 0]
        got, want = [], []
        with eb.Graph(policy="none"):
            x = eb.ones(1)
            for at, name in [(0, "a"), (1, "d"), (2, "c"), (1, "b"), (0, "d"), (2, "a"), (1, "a"), (0, "b")]:
                setattr(ones[at], name, 2.0)
                counts[at] += 1
                got += [one.step(x) for one in ones]
                want += [2.0**count for count in counts]
        assert [y.value().item() for y in got] == want

    def test_a_switch_with_a_default(self):
        class Net:
            training = True

            @eb.cell
            def step(self, x):
                return eb.tanh(x) if self.training else x

        net, T = Net(), np.tanh(1.0)
        with eb.Graph(policy="none"):
            x = eb.ones(1)
            ys = [net.step(x)]
            net.training = False
            ys.append(net.step(x))
            net.training = True
            ys.append(net.step(x))
            del net.training
            ys.append(net.step(x))
        np.testing.assert_allclose([y.value().item() for y in ys], [T, 1, T, T], rtol=1e-6)
