"""Programs of modules against the same networks in PyTorch, a program at a time."""

import numpy as np
import pytest

import edbatch as eb
from edbatch.data.programs import Step, random_programs
from edbatch.models import ModuleNetwork
from tests.models.against_torch import check, new_model

PROGRAMS = [program.steps for program in random_programs(5, seed=4)]
PROGRAMS.append([Step("scene", (), ()), Step("scene", (), ()), Step("union", (0, 1), ()), Step("count", (2,), ())])
PICTURES = np.random.default_rng(0).normal(size=(len(PROGRAMS), 3, 4, 4))
SIZES = {"features": 3, "channels": 2, "side": 4, "labels": 3}


def test_values_and_gradients():
    model = new_model()
    network = ModuleNetwork(model, ModuleNetwork.modules_of(PROGRAMS), **SIZES)

    def build():
        return [network.scores(network.hidden(steps, eb.input(x))) for steps, x in zip(PROGRAMS, PICTURES, strict=True)]

    def wanted(torch, p):
        def convolve(name, x):
            weight = p[f"{name}.weight"]
            return torch.nn.functional.conv2d(x[None], weight, p[f"{name}.bias"], padding=weight.shape[-1] // 2)[0]

        found = []
        for steps, picture in zip(PROGRAMS, PICTURES, strict=True):
            seen = torch.relu(convolve("stem", torch.from_numpy(picture)))
            results = []
            for step in steps:
                name, x = f"module.{step.module}", seen
                if len(step.inputs) == 1:
                    x = results[step.inputs[0]]
                elif len(step.inputs) == 2:
                    x = torch.relu(convolve(f"{name}.join", torch.cat([results[at] for at in step.inputs])))
                inside = torch.relu(convolve(f"{name}.first", x))
                results.append(torch.relu(x + convolve(f"{name}.second", inside)))
            last = torch.relu(convolve("last", results[-1]))
            pooled = torch.nn.functional.max_pool2d(last[None], 2).flatten()
            found.append(p["W_out"] @ pooled + p["b_out"])
        return found

    check(model, build, wanted)


def test_errors():
    model = eb.ParameterCollection()
    network = ModuleNetwork(model, {"scene": 0, "union": 2}, **SIZES)
    picture = np.zeros((3, 4, 4))
    with eb.Graph(), pytest.raises(eb.EdBatchError, match="step 0: no module is named 'count'"):
        network.hidden([Step("count", (), ())], eb.input(picture))
    with eb.Graph(), pytest.raises(eb.EdBatchError, match=r"cell _Module.apply: conv2d"):
        network.hidden([Step("scene", (), ()), Step("union", (0,), ())], eb.input(picture))


def test_an_odd_side_and_a_module_of_three_inputs():
    network = ModuleNetwork(eb.ParameterCollection(), {"scene": 0, "f": 3}, **SIZES | {"side": 5})
    steps = [Step("scene", (), ()), Step("f", (0, 0, 0), ())]
    with eb.Graph():
        assert network.scores(network.hidden(steps, eb.ones((3, 5, 5)))).shape == (SIZES["labels"],)
