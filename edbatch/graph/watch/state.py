"""Functions whose results depend on more than their arguments: on what the process, the machine, the clock or the disk
is like, where nobody can look whether it has changed.

What they gave while a cell was traced would be kept, so a cell that calls one is refused. Calls from Python's own
library do not count: who logs in a cell asks for the time, and no number follows from that.
"""

from __future__ import annotations

import dis
import io
import random
from types import CodeType, FrameType, ModuleType
from typing import Any

import numpy as np

from edbatch.graph.watch.modules import is_pure, is_standard

_READS_OF_FILES = {"read", "read1", "readinto", "readline", "readlines", "getvalue", "getbuffer", "tell", "peek"}

_FILES = """
    abspath access exists expanduser expandvars fstat fstatvfs fwalk getatime getcwd getcwdb getctime getmtime getsize
    getxattr isdevdrive isdir isfile isjunction islink ismount lexists listdir listdrives listmounts listvolumes
    listxattr lseek lstat open pread preadv ptsname read readinto readlink readv realpath relpath samefile sameopenfile
    scandir stat statvfs timerfd_gettime timerfd_gettime_ns walk
"""
_PROCESS = """
    cpu_count ctermid get_blocking get_inheritable get_terminal_size getegid geteuid getgid getgrouplist getgroups
    getloadavg getlogin getpgid getpgrp getpid getppid getpriority getrandom getresgid getresuid getsid getuid isatty
    popen process_cpu_count sched_getaffinity sched_getparam sched_getscheduler sched_rr_get_interval system tcgetpgrp
    times ttyname umask uname urandom
"""

# By the module that a function is of (without an underscore before its name); `os` stands for those that it is made of.
_BY_MODULE = {
    "asyncio": "all_tasks capture_call_graph current_task format_call_graph get_event_loop get_running_loop",
    "builtins": "id",
    "contextvars": "copy_context",
    "ctypes": "get_errno get_last_error string_at wstring_at",
    "datetime": "now today utcnow",
    "decimal": "getcontext",
    "filecmp": "cmp cmpfiles",
    "fileinput": "input",
    "gc": "get_count get_freeze_count get_objects get_referents get_referrers get_stats get_threshold isenabled",
    "getpass": "getpass getuser",
    "glob": "glob glob0 glob1 iglob",
    "grp": "getgrall getgrgid getgrnam",
    "inspect": "currentframe getframeinfo getinnerframes getouterframes stack trace",
    "linecache": "getline getlines",
    "locale": "getencoding getlocale getpreferredencoding localeconv nl_langinfo setlocale",
    "multiprocessing": "active_children cpu_count current_process parent_process",
    "numpy": "fromfile getbufsize geterr geterrcall get_printoptions memmap",
    "os": _FILES + _PROCESS,
    "pathlib": """
        absolute cwd exists expanduser glob group home is_block_device is_char_device is_dir is_fifo is_file is_junction
        is_mount is_socket is_symlink iterdir lstat owner readlink resolve rglob samefile stat walk
    """,
    "pkgutil": "get_data iter_modules walk_packages",
    "pwd": "getpwall getpwnam getpwuid",
    "resource": "getpagesize getrlimit getrusage prlimit",
    "secrets": "choice randbelow randbits token_bytes token_hex token_urlsafe",
    "select": "poll select",
    "shutil": "disk_usage get_terminal_size which",
    "signal": "getitimer getsignal sigpending",
    "socket": "getaddrinfo getdefaulttimeout getfqdn gethostbyaddr gethostbyname gethostname if_nameindex",
    "subprocess": "call check_call check_output getoutput getstatusoutput run",
    "sys": """
        _current_exceptions _current_frames _getframe _getframemodulename get_asyncgen_hooks
        get_coroutine_origin_tracking_depth get_int_max_str_digits getallocatedblocks getdlopenflags getprofile
        getrecursionlimit getrefcount getswitchinterval gettrace getunicodeinternedsize
    """,
    "tempfile": "gettempdir gettempdirb gettempprefix mkdtemp mkstemp mktemp",
    "threading": """
        active_count activeCount current_thread currentThread enumerate get_ident get_native_id getprofile gettrace
        stack_size
    """,
    "time": """
        asctime clock_getres clock_gettime clock_gettime_ns ctime get_clock_info gmtime localtime mktime monotonic
        monotonic_ns perf_counter perf_counter_ns process_time process_time_ns strftime thread_time thread_time_ns time
        time_ns
    """,
    "traceback": "extract_stack format_stack walk_stack",
    "tracemalloc": """
        get_object_traceback get_traceback_limit get_traced_memory get_tracemalloc_memory is_tracing take_snapshot
    """,
    "uuid": "getnode uuid1 uuid4 uuid6 uuid7 uuid8",
    "weakref": "getweakrefcount getweakrefs",
}  # fmt: skip
_OS = ("posix", "nt", "posixpath", "ntpath", "genericpath")

READS_STATE = {module: frozenset(names.split()) for module, names in _BY_MODULE.items()}
READS_STATE |= dict.fromkeys(_OS, READS_STATE["os"])

_ATTRIBUTE = ("LOAD_ATTR", "LOAD_METHOD")
GLOBAL = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")
_LOCAL = ("LOAD_FAST", "LOAD_DEREF")  # parts of names: since Python 3.13, one instruction may load two variables
_SHARED: Any = random.random.__self__  # type: ignore[attr-defined]  # whose methods the functions of `random` are


def state_read(frame: FrameType, kind: str, about: Any) -> str | None:
    """The name of a function that reads what nobody can watch, if that is what a user's function calls.

    Args:
        frame, kind, about: as `sys.setprofile` tells them, of a call.
    """
    caller = frame if kind == "c_call" else frame.f_back
    module = "" if caller is None else caller.f_globals.get("__name__", "")
    if is_pure(module) or is_standard(module):
        return None
    if kind == "c_call":
        name, home = about.__name__.removeprefix("_path_"), about.__module__ or ""  # `isdir` of Windows, since 3.12
        owner = getattr(about, "__self__", None)
    else:
        name, home = frame.f_code.co_name, frame.f_globals.get("__name__") or ""
        owner = frame.f_locals.get("self") if home == "random" else None
    # `getrandbits` of the system is asked by NumPy, for generators that have a seed, too.
    if owner is _SHARED or (isinstance(owner, random.SystemRandom) and name != "getrandbits"):
        return f"random.{name}"
    if kind == "c_call":
        if isinstance(owner, io.IOBase) and name in _READS_OF_FILES:
            return f"{type(owner).__name__}.{name}"
        if not home and owner is not None and not isinstance(owner, ModuleType):
            home = (owner if isinstance(owner, type) else type(owner)).__module__
    home = home.lstrip("_").partition(".")[0]
    home = {"thread": "threading"}.get(home, home)
    return f"{home}.{name}" if name in READS_STATE.get(home, ()) else None


def draws(value: Any) -> bool:
    """Whether it is a generator of NumPy's random numbers, whose functions tell no profiler that they are called."""
    return isinstance(value, np.random.Generator | np.random.RandomState | np.random.BitGenerator)


def draws_by_name(code: CodeType, scope: dict[str, Any]) -> str | None:
    """The function of NumPy that draws random numbers, or tells their state, which code reads as `np.random.rand`."""
    steps = [step for step in dis.get_instructions(code) if "LOAD_" in step.opname or "CALL" in step.opname]
    for before, random_module, step in zip([None, *steps], steps, steps[1:], strict=False):
        if step.opname not in _ATTRIBUTE:
            continue
        by_name = random_module.opname in GLOBAL and scope.get(random_module.argval) is np.random
        if before is not None and random_module.opname in _ATTRIBUTE and random_module.argval == "random":
            by_name = before.opname in GLOBAL and scope.get(before.argval) is np
            last = before.argval[-1] if isinstance(before.argval, tuple) else before.argval
            by_name |= any(part in before.opname for part in _LOCAL) and last in ("np", "numpy")
        if by_name and draws(getattr(getattr(np.random, step.argval, None), "__self__", None)):
            return str(step.argval)
    return None
