"""A network of modules: the program of each question says which run on the features of its image, in what order."""

import torch
import torch.nn as nn
import torch.nn.functional as F

from tests.torch.published.network import Network

IMAGE = (8, 6, 6)  # features of an image
ANSWERS = 7
ARITY = {
    "scene": 0, "filter_color[red]": 1, "filter_shape[cube]": 1, "relate[left]": 1, "same_size": 1, "unique": 1,
    "intersect": 2, "union": 2, "count": 1, "exist": 1, "equal_integer": 2,
}  # fmt: skip


class ResidualBlock(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.conv1 = nn.Conv2d(dim, dim, kernel_size=3, padding=1)
        self.conv2 = nn.Conv2d(dim, dim, kernel_size=3, padding=1)

    def forward(self, x):
        out = self.conv2(F.relu(self.conv1(x)))
        return F.relu(x + out)


class ConcatBlock(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.proj = nn.Conv2d(2 * dim, dim, kernel_size=1, padding=0)
        self.res_block = ResidualBlock(dim)

    def forward(self, x, y):
        out = torch.cat([x, y], 1)
        return self.res_block(F.relu(self.proj(out)))


class Flatten(nn.Module):
    def forward(self, x):
        return x.view(x.size(0), -1)


class ModuleNet(nn.Module):
    def __init__(self, size):
        super().__init__()
        channels, height, width = IMAGE
        dim = size // 4
        self.stem = nn.Sequential(
            nn.Conv2d(channels, dim, kernel_size=3, padding=1), nn.ReLU(inplace=True),
            nn.Conv2d(dim, dim, kernel_size=3, padding=1), nn.ReLU(inplace=True),
        )  # fmt: skip
        self.classifier = nn.Sequential(
            nn.Conv2d(dim, size, kernel_size=1), nn.ReLU(inplace=True), nn.MaxPool2d(kernel_size=2, stride=2),
            Flatten(), nn.Linear(size * height * width // 4, size), nn.ReLU(inplace=True), nn.Linear(size, ANSWERS),
        )  # fmt: skip
        self.function_modules = {}
        for fn_str, num_inputs in ARITY.items():
            mod = ConcatBlock(dim) if num_inputs == 2 else ResidualBlock(dim)
            self.add_module(fn_str, mod)
            self.function_modules[fn_str] = mod

    def forward(self, feats, program, answer):
        feats = self.stem(feats)
        module_outputs = []
        for f in program:
            module_inputs = [feats] if f["function"] == "scene" else [module_outputs[j] for j in f["inputs"]]
            module_outputs.append(self.function_modules[f["function"]](*module_inputs))
        return self.classifier(module_outputs[-1])


def samples(rng, count, nodes):
    def program():
        steps = []

        def add(left):
            names = [name for name, many in ARITY.items() if many and (many == 1 or left > 4)]
            name = names[int(rng.integers(len(names)))] if left > 1 else "scene"
            inputs = [add((left - 1) // ARITY[name]) for _ in range(ARITY[name])]
            steps.append({"function": name, "inputs": inputs})
            return len(steps) - 1

        add(max(2, int(rng.integers(nodes // 2, nodes * 3 // 2))))
        return steps

    answers = torch.from_numpy(rng.integers(0, ANSWERS, (count, 1)))
    return [(torch.randn(1, *IMAGE), program(), answer) for answer in answers]


NETWORK = Network(
    "module networks, programs of images (Johnson et al. 2017)", ModuleNet, samples,
    lambda result, feats, program, answer: F.cross_entropy(result, answer),
    ((ResidualBlock, "forward"), (ConcatBlock, "forward")),
)  # fmt: skip
