import sys

from edbatch.kernels.generated import module_of


def test_a_source_is_a_module():
    source = '"""Written by a test."""\ndef add(a, b): return a + b + 1\n'
    module = module_of(source)
    assert module.add(2, 3) == 6
    assert module_of(source) is module
    assert sys.modules[module.__name__] is module
