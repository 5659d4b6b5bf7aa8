"""The workload of small graphs: which atoms of a molecule are part of a ring."""

from __future__ import annotations

from collections.abc import Sequence

import edbatch as eb
from edbatch.data.random_molecules import ATOMS, Molecule, random_molecules
from edbatch.models.classifier import Classifier
from edbatch.models.graph_attention import GraphAttention
from edbatch.models.workloads.workload import Known, Numbered, Workload

LAYERS = 2
KINDS = ("chain", "ring")  # of an atom


class MoleculeNetwork(Classifier):
    """Layers of `edbatch.models.GraphAttention` over atoms, with a softmax at every one.

    Args:
        model: collection that the parameters are added to.
        atoms: number of elements.
        labels: number of classes.
        dim: size of embeddings and states.
    """

    def __init__(self, model: eb.ParameterCollection, atoms: int, labels: int, dim: int) -> None:
        super().__init__(model, dim, labels)
        self.embed = model.add_lookup_parameters((atoms, dim), name="embed")
        self.layers = [GraphAttention(model, dim, dim) for _ in range(LAYERS)]

    def hidden(self, atoms: Sequence[int], neighbours: Sequence[Sequence[int]]) -> list[eb.Expression]:
        """Vector [dim] of every atom; neighbours as of `GraphAttention.nodes`."""
        hs = [eb.lookup(self.embed, atom) for atom in atoms]
        for layer in self.layers:
            hs = [eb.tanh(h) for h in layer.nodes(hs, neighbours)]
        return hs


def _number_molecules(molecules: list[Molecule], known: Known) -> Numbered:
    elements = list(ATOMS)
    samples = [([elements.index(atom) for atom in one.atoms], one.neighbours) for one in molecules]
    return Numbered(samples, (len(elements), 2), list(KINDS))


OTHERS = {
    "graph-attention": Workload(
        noun="molecule",
        place="atom",
        files=(),
        folder=(),
        stream=None,
        generate=random_molecules,
        know=lambda molecules: {},
        numbered=_number_molecules,
        network=MoleculeNetwork,
        right=lambda molecule: [KINDS[ring] for ring in molecule.rings],
    )
}
