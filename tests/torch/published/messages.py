"""Message passing over the graph of a molecule, atom by atom, with a network for each kind of bond."""

import torch
import torch.nn as nn
import torch.nn.functional as F

from tests.torch.published.network import Network

ATOMS, BONDS = 8, 4


class EdgeNetwork(nn.Module):
    """A matrix for each bond, which its features make."""

    def __init__(self, size):
        super().__init__()
        self.size = size
        self.learn_e = nn.Sequential(nn.Linear(BONDS, size), nn.ReLU(), nn.Linear(size, size * size))

    def forward(self, h_w, e_vw):
        edge = self.learn_e(e_vw).view(self.size, self.size)
        return torch.mm(edge, h_w.t()).t()


class SetReadout(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.gate = nn.Linear(2 * size, size)
        self.value = nn.Linear(size, size)
        self.out = nn.Linear(size, 1)

    def forward(self, h_t, h_0):
        total = None
        for v in h_t:
            one = torch.sigmoid(self.gate(torch.cat([h_t[v], h_0[v]], 1))) * self.value(h_t[v])
            total = one if total is None else total + one
        return self.out(torch.relu(total))


class MPNN(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.embed = nn.Linear(ATOMS, size)
        self.message = EdgeNetwork(size)
        self.update = nn.GRUCell(size, size)
        self.readout = SetReadout(size)
        self.n_layers = 3

    def forward(self, g, h_in, edges, target):
        h = [{v: torch.tanh(self.embed(h_in[v].view(1, -1))) for v in g}]
        for t in range(self.n_layers):
            h.append({})
            for v in g:
                if not g[v]:
                    h[t + 1][v] = h[t][v]
                    continue
                neighbours = [self.message(h[t][w], edges[min(v, w), max(v, w)]) for w in g[v]]
                m = torch.sum(torch.cat(neighbours, 0), 0, keepdim=True)
                h[t + 1][v] = self.update(m, h[t][v])
        return F.mse_loss(torch.squeeze(self.readout(h[-1], h[0])), target)


def samples(rng, count, nodes):
    found = []
    for _ in range(count):
        atoms = max(1, int(rng.integers(nodes // 4, nodes * 3 // 4)))
        bonds = {(int(rng.integers(max(0, v - 3), v)), v) for v in range(1, atoms)}
        if atoms > 4:
            bonds.add((0, atoms - 1))
        g = {v: [w for w in range(atoms) if (min(v, w), max(v, w)) in bonds] for v in range(atoms)}
        features = torch.eye(ATOMS)[torch.from_numpy(rng.integers(0, ATOMS, atoms))]
        edges = {bond: torch.eye(BONDS)[int(rng.integers(BONDS))] for bond in sorted(bonds)}
        found.append((g, features, edges, torch.tensor(float(rng.normal()))))
    return found


NETWORK = Network(
    "graphs, message passing with edge networks (Gilmer et al. 2017)", MPNN, samples, lambda result, *given: result,
    ((EdgeNetwork, "forward"),),
)  # fmt: skip
