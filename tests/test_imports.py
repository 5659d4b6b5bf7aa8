"""What `import edbatch` costs: nothing is imported that takes long before it is used."""

import subprocess
import sys

import pytest

CODE = """
import sys
import edbatch as eb
model = eb.ParameterCollection()
model.add_parameters(3)
assert not {"numba", "scipy", "safetensors", "torch"} & set(sys.modules)
trainer = eb.Adam(model)
assert "numba" not in sys.modules
model["p0"].accumulator()[0][...] = 1
trainer.update()
assert "numba" in sys.modules
model.save(sys.argv[1])
assert "safetensors" in sys.modules
assert all(hasattr(eb, name) for name in eb.__all__)
"""


@pytest.mark.cpu  # another process
def test_slow_imports_wait(tmp_path):
    subprocess.run([sys.executable, "-c", CODE, tmp_path / "m.safetensors"], check=True)


@pytest.mark.cpu  # another process
@pytest.mark.parametrize("on", [False, True])
def test_python_without_its_lock_is_refused(on):
    """As free-threaded builds are, which have a lock where they are told to."""
    code = f"import sys; sys._is_gil_enabled = lambda: {on}; import edbatch"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == (not on)
    assert ("ImportError: edbatch needs Python's global interpreter lock (GIL)" in done.stderr) is not on
