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
