"""An autoencoder of shapes: hierarchies of parts, at each of which a graph network reads the children's relations."""

import numpy as np
import torch
import torch.nn as nn

from tests.torch.published.network import Network

BOX, MEANINGS, RELATIONS, MOST = 10, 6, 3, 4


class Part:
    def __init__(self, box, meaning, children=(), edges=()):
        self.box, self.meaning, self.children, self.edges = box, meaning, list(children), list(edges)

    @property
    def is_leaf(self):
        return not self.children

    def get_semantic_one_hot(self):
        return torch.eye(MEANINGS)[self.meaning].view(1, -1)

    def edge_tensors(self):
        pairs = [[a, b] for a, b, _ in self.edges] + [[b, a] for a, b, _ in self.edges]
        types = torch.eye(RELATIONS)[[kind for _, _, kind in self.edges] * 2]
        return types.unsqueeze(0), torch.tensor(pairs, dtype=torch.long).view(1, len(pairs), 2)


class Sampler(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.mlp1 = nn.Linear(size, size)
        self.mlp2mu = nn.Linear(size, size)
        self.mlp2var = nn.Linear(size, size)

    def forward(self, x, eps):
        encode = torch.relu(self.mlp1(x))
        mu = self.mlp2mu(encode)
        logvar = self.mlp2var(encode)
        std = logvar.mul(0.5).exp_()
        kld = mu.pow(2).add_(logvar.exp()).mul_(-1).add_(1).add_(logvar)
        return torch.cat([eps.mul(std).add_(mu), kld], 1)


class GNNChildEncoder(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.child_op = nn.Linear(size + MEANINGS, size)
        self.node_edge_op = nn.ModuleList([nn.Linear(2 * size + RELATIONS, size) for _ in range(2)])
        self.parent_op = nn.Linear(size * 3, size)

    def forward(self, child_feats, child_exists, edge_type_onehot, edge_indices):
        max_childs, num_edges = child_feats.shape[1], edge_indices.shape[1]
        child_feats = torch.relu(self.child_op(child_feats))
        hidden_size = child_feats.size(-1)
        child_feats = child_feats * child_exists
        child_feats = child_feats.view(1, max_childs, -1)
        iter_parent_feats = [child_feats.max(dim=1)[0]]
        edge_indices_from = edge_indices[:, :, 0].view(-1, 1).expand(-1, hidden_size)
        for op in self.node_edge_op:
            if num_edges > 0:
                node_edge_feats = torch.cat([
                    child_feats[0:1, edge_indices[0, :, 0], :],
                    child_feats[0:1, edge_indices[0, :, 1], :],
                    edge_type_onehot,
                ], dim=2)  # fmt: skip
                node_edge_feats = torch.relu(op(node_edge_feats.view(num_edges, -1)))
                new_child_feats = child_feats.new_zeros(max_childs, hidden_size)
                new_child_feats = torch.scatter_add(new_child_feats, 0, edge_indices_from, node_edge_feats)
                child_feats = new_child_feats.view(1, max_childs, hidden_size)
            iter_parent_feats.append(child_feats.max(dim=1)[0])
        return torch.relu(self.parent_op(torch.cat(iter_parent_feats, dim=1)))


class RecursiveEncoder(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.box_encoder = nn.Linear(BOX, size)
        self.child_encoder = GNNChildEncoder(size)

    def encode_node(self, node):
        if node.is_leaf:
            return torch.relu(self.box_encoder(node.box.view(1, -1)))
        child_feats = []
        for child in node.children:
            cur_child_feat = torch.cat([self.encode_node(child), child.get_semantic_one_hot()], dim=1)
            child_feats.append(cur_child_feat.unsqueeze(dim=1))
        child_feats = torch.cat(child_feats, dim=1)
        if child_feats.shape[1] < MOST:
            padding = child_feats.new_zeros(1, MOST - child_feats.shape[1], child_feats.shape[2])
            child_feats = torch.cat([child_feats, padding], dim=1)
        child_exists = child_feats.new_zeros(1, MOST, 1)
        child_exists[:, : len(node.children), :] = 1
        return self.child_encoder(child_feats, child_exists, *node.edge_tensors())


class BoxDecoder(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.mlp = nn.Linear(size, size)
        self.center = nn.Linear(size, 3)
        self.size = nn.Linear(size, 3)
        self.quat = nn.Linear(size, 4)

    def forward(self, parent_feature):
        feat = torch.relu(self.mlp(parent_feature))
        center = torch.tanh(self.center(feat))
        size = torch.sigmoid(self.size(feat)) * 2
        quat = self.quat(feat).add(feat.new_tensor([[1.0, 0.0, 0.0, 0.0]]))
        quat = quat / (1e-12 + quat.pow(2).sum(dim=1).unsqueeze(dim=1).sqrt())
        return torch.cat([center, size, quat], dim=1)


class RecursiveDecoder(nn.Module):
    """Pairs the parts that it makes with the given ones by how near they are, which reads them."""

    def __init__(self, size):
        super().__init__()
        self.size = size
        self.box_decoder = BoxDecoder(size)
        self.leaf_classifier = nn.Sequential(nn.Linear(size, size), nn.ReLU(), nn.Linear(size, 1))
        self.mlp_parent = nn.Linear(size, size * MOST)
        self.mlp_exists = nn.Linear(size, 1)
        self.mlp_sem = nn.Linear(size, MEANINGS)
        self.mlp_child = nn.Linear(size, size)
        self.bce_loss = nn.BCEWithLogitsLoss(reduction="none")
        self.sem_ce_loss = nn.CrossEntropyLoss(reduction="none")

    def node_recon_loss(self, node_latent, node):
        is_leaf_logit = self.leaf_classifier(node_latent)
        is_leaf = is_leaf_logit.new_tensor(float(node.is_leaf)).view(1, -1)
        loss = self.bce_loss(is_leaf_logit, is_leaf).view(-1)
        if node.is_leaf:
            return loss + (self.box_decoder(node_latent) - node.box.view(1, -1)).pow(2).sum(1)
        child_feats = torch.relu(self.mlp_parent(node_latent)).view(1, MOST, self.size)
        exists_logits = self.mlp_exists(child_feats.view(MOST, self.size)).view(1, MOST, 1)
        sem_logits = self.mlp_sem(child_feats.view(MOST, self.size)).view(1, MOST, MEANINGS)
        child_feats = torch.relu(self.mlp_child(child_feats.view(MOST, self.size))).view(1, MOST, self.size)
        with torch.no_grad():
            boxes = torch.cat([self.box_decoder(child_feats[:, i]) for i in range(MOST)], 0)
            given = torch.cat([child.box.view(1, -1) for child in node.children], 0)
            matched = paired((boxes.unsqueeze(1) - given.unsqueeze(0)).pow(2).sum(2).cpu().numpy())
        exists_gt = exists_logits.new_zeros(1, MOST, 1)
        exists_gt[:, list(matched), :] = 1
        loss = loss + self.bce_loss(exists_logits, exists_gt).sum()
        for i, at in zip(matched, range(len(node.children)), strict=True):
            child = node.children[at]
            loss = loss + self.sem_ce_loss(sem_logits[:, i, :], torch.tensor([child.meaning]))
            loss = loss + self.node_recon_loss(child_feats[:, i, :], child)
        return loss


def paired(distances):
    """For each given part, that of ours which is nearest of those that are left."""
    distances, found = np.array(distances), []
    for at in range(distances.shape[1]):
        found.append(int(distances[:, at].argmin()))
        distances[found[-1]] = np.inf
    return found


class ShapeAutoencoder(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.encoder = RecursiveEncoder(size)
        self.sample_encoder = Sampler(size)
        self.sample_decoder = nn.Sequential(nn.Linear(size, size), nn.ReLU(), nn.Linear(size, size), nn.ReLU())
        self.decoder = RecursiveDecoder(size)

    def forward(self, part, eps):
        root_code_and_kld = self.sample_encoder(self.encoder.encode_node(part), eps[:, : self.decoder.size])
        root_code, kldiv = root_code_and_kld.chunk(2, 1)
        return self.decoder.node_recon_loss(self.sample_decoder(root_code), part).sum() - 0.05 * kldiv.sum()


def samples(rng, count, nodes):
    def part(left):
        box = torch.from_numpy(rng.normal(size=BOX)).to(torch.get_default_dtype())
        children = [part((left - 1) // 3) for _ in range(int(rng.integers(2, MOST + 1)))] if left > 2 else []
        pairs = [(a, b) for b in range(len(children)) for a in range(b) if rng.random() < 0.5]
        edges = [(a, b, int(rng.integers(RELATIONS))) for a, b in pairs]
        return Part(box, int(rng.integers(MEANINGS)), children, edges)

    return [(part(int(rng.integers(nodes // 2, nodes * 3 // 2))), torch.randn(1, 256)) for _ in range(count)]


NETWORK = Network(
    "hierarchies of parts, StructureNet, reads what it pairs (Mo et al. 2019)", ShapeAutoencoder, samples,
    lambda result, *given: result, ((BoxDecoder, "forward"),),
)  # fmt: skip
