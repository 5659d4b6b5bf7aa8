"""In which environment scripts measure, and that to import them changes none."""

import json
import os
import subprocess
import sys

import pytest

from scripts import ROOT

PINNED = {
    "OPENBLAS_CORETYPE": "Haswell",
    "OPENBLAS_L2_SIZE": "512",
    "OPENBLAS_NUM_THREADS": "2",
    "MKL_NUM_THREADS": "2",
    "EDBATCH_THREADS": "2",
}
OF_THREADS = {f"{name}_NUM_THREADS": "1" for name in ("OPENBLAS", "OMP", "MKL")} | {"EDBATCH_THREADS": "1"}
BEGUN = "import json, os, sys; print(json.dumps([sys.flags.optimize, dict(os.environ)]))"  # what each Python prints

pytestmark = pytest.mark.cpu  # other processes


def test_to_import_scripts_changes_nothing():
    code = "import os; before = dict(os.environ); import scripts.gpu.worker; assert os.environ == before"
    subprocess.run([sys.executable, "-c", code], env=os.environ | PINNED, check=True, cwd=ROOT)


@pytest.mark.parametrize("run", [["-O", "-m", "scripts.gpu.worker"], ["-O", "-mscripts.gpu.worker"]])
def test_what_is_run_begins_again_with_one_thread(run, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(BEGUN)
    environment = os.environ | PINNED | {"PYTHONPATH": str(tmp_path)}
    done = subprocess.run([sys.executable, *run], env=environment, check=True, cwd=ROOT, capture_output=True, text=True)
    (_, first), (optimizes, second) = map(json.loads, done.stdout.splitlines())
    others = {name: value for name, value in environment.items() if name not in PINNED}
    assert first.items() >= PINNED.items()
    assert second.items() >= (others | OF_THREADS).items()
    assert not {"OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"} & second.keys()
    assert optimizes
