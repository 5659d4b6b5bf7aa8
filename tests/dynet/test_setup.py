"""Starting up: flags, settings, unchanged programs."""

import subprocess
import sys

import pytest

import edbatch.dynet as dy
from edbatch.dynet import config
from edbatch.dynet.implicit import implicit


class TestFlags:
    def test_are_taken_out(self):
        arguments = ["a.py", "--dynet-mem", "512", "--x", "1", "--dynet-autobatch", "1", "--dynet_seed=3"]
        assert config.flags(arguments) == {"mem": "512", "autobatch": "1", "seed": "3"}
        assert arguments == ["a.py", "--x", "1"]

    def test_choose_policies(self):
        for number, policy in config.POLICIES.items():
            config.set(**config.settings_of({"autobatch": str(number)}))
            assert implicit.policy == policy
            assert (dy.scalarInput(1) + 1).value() == 2.0
        config.set()

    def test_set_the_weight_decay(self):
        config.set(**config.settings_of({"weight-decay": "0.25", "devices": "CPU"}))
        assert dy.ParameterCollection().get_weight_decay() == 0.25
        config.set()
        assert dy.ParameterCollection().get_weight_decay() == 0.0

    @pytest.mark.parametrize(
        "wrong", [{"gpu": "1"}, {"gpus": "1"}, {"devices": "CPU,GPU:0"}, {"autobatch": "9"}, {"seed": "x"}]
    )
    def test_what_cannot_be_had(self, wrong):
        with pytest.raises(RuntimeError):
            config.set(**config.settings_of(wrong))

    def test_unknown_ones(self):
        with pytest.raises(RuntimeError, match="unknown flag"):
            config.flags(["--dynet-memory", "3"])


def test_settings():
    config.set(mem=100, random_seed=5, autobatch=2)
    assert implicit.policy == "depth"
    params = dy.DynetParams()
    params.from_args()
    params.set_autobatch(False)
    params.set_random_seed(3)
    params.set_weight_decay(0.0)
    params.set_mem(10)
    params.init()
    assert implicit.policy is None
    assert config.gpu() is False
    with pytest.raises(RuntimeError, match="CPU"):
        config.set_gpu()
    params.set_requested_gpus(1)
    with pytest.raises(RuntimeError, match="CPU"):
        params.init()


@pytest.mark.cpu
def test_unchanged_programs(tmp_path):
    (tmp_path / "beside.py").write_text("value = 3\n")
    (tmp_path / "script.py").write_text(
        "import sys\n"
        "import dynet_config\n"
        "dynet_config.set(mem=100, random_seed=1)\n"
        "import dynet as dy, _dynet, beside\n"
        "from dynet import *\n"
        "print(sys.argv[1:], dy.__version__, (inputVector([1, 2]) * beside.value).value(), _dynet is dy)\n"
    )
    command = [
        sys.executable,
        "-m",
        "edbatch.dynet",
        str(tmp_path / "script.py"),
        "--dynet-mem",
        "100",
        "--epochs",
        "2",
    ]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    assert found.stdout == "['--epochs', '2'] 2.1 [3.0, 6.0] True\n"
