"""A parser of transitions with a stack, a buffer, an output and a history, each an LSTM, which finds named entities."""

import torch
import torch.nn as nn

from tests.torch.published.network import Network

WORDS = 40
SHIFT, OUT, REDUCE = 0, 1, (2, 3, 4)


class StackRNN:
    def __init__(self, cell, initial_state, empty_embedding):
        self.cell = cell
        self.s = [(initial_state, None)]
        self.empty = empty_embedding

    def push(self, expr, extra=None):
        self.s.append((self.cell(expr, self.s[-1][0]), extra))

    def pop(self):
        return self.s.pop()[1]

    def embedding(self):
        return self.s[-1][0][0] if len(self.s) > 1 else self.empty

    def __len__(self):
        return len(self.s) - 1


class TransitionNER(nn.Module):
    def __init__(self, size):
        super().__init__()
        actions = 2 + len(REDUCE)
        self.word_embeds = nn.Embedding(WORDS, size)
        self.action_embeds = nn.Embedding(actions, size // 2)
        self.relation_embeds = nn.Embedding(actions, size // 2)
        for name in ("buffer", "stack", "output", "entity_forward", "entity_backward"):
            setattr(self, f"{name}_lstm", nn.LSTMCell(size, size))
        self.action_lstm = nn.LSTMCell(size // 2, size)
        self.dropout = nn.Dropout(0.0)
        self.empty_emb = nn.Parameter(torch.randn(1, size))
        self.lstms_output_2_softmax = nn.Linear(size * 4, size)
        self.output_2_act = nn.Linear(size, actions)
        self.entity_2_output = nn.Linear(size * 2 + size // 2, size)
        self.lstm_initial = (torch.randn(1, size) / 10, torch.randn(1, size) / 10)

    def get_possible_actions(self, stack, buffer):
        valid_actions = [SHIFT] if len(buffer) > 0 else []
        return valid_actions + (list(REDUCE) if len(stack) > 0 else [OUT])

    def forward(self, sentence, actions):
        word_embeds = self.dropout(self.word_embeds(sentence)).squeeze(0)
        action_embeds = self.dropout(self.action_embeds(actions)).squeeze(0)
        relation_embeds = self.dropout(self.relation_embeds(actions)).squeeze(0)
        actions = actions.squeeze(0)

        def new(cell):
            return StackRNN(cell, self.lstm_initial, self.empty_emb)

        buffer, stack, action, output = map(
            new, (self.buffer_lstm, self.stack_lstm, self.action_lstm, self.output_lstm)
        )
        for i in reversed(range(word_embeds.size()[0])):
            buffer.push(word_embeds[i].unsqueeze(0), word_embeds[i].unsqueeze(0))
        losses, pre_actions = [], []
        action_count = 0
        while len(buffer) > 0 or len(stack) > 0:
            valid_actions = self.get_possible_actions(stack, buffer)
            real_action = actions[action_count].item()
            if len(valid_actions) > 1:
                states = torch.cat([one.embedding() for one in (buffer, stack, output, action)], 1)
                hidden_output = torch.tanh(self.lstms_output_2_softmax(self.dropout(states)))
                logits = self.output_2_act(hidden_output)[0][torch.LongTensor(valid_actions)]
                log_probs = torch.nn.functional.log_softmax(logits, dim=0)
                pre_actions.append(valid_actions[torch.max(log_probs, 0)[1].item()])
                losses.append(log_probs[valid_actions.index(real_action)])
            action.push(action_embeds[action_count].unsqueeze(0))
            if real_action == SHIFT:
                tok_embedding = buffer.pop()
                stack.push(tok_embedding, tok_embedding)
            elif real_action == OUT:
                output.push(buffer.pop())
            else:
                ent_f, ent_b = new(self.entity_forward_lstm), new(self.entity_backward_lstm)
                entity = []
                while len(stack) > 0:
                    entity.append(stack.pop())
                for i in range(len(entity)):
                    ent_f.push(entity[i])
                    ent_b.push(entity[len(entity) - i - 1])
                entity_input = self.dropout(torch.cat([ent_f.embedding(), ent_b.embedding()], 1))
                rel_embedding = relation_embeds[action_count].unsqueeze(0)
                output.push(self.entity_2_output(torch.cat([entity_input, rel_embedding], 1)))
            action_count += 1
        return -torch.sum(torch.stack(losses)), pre_actions


def samples(rng, count, nodes):
    found = []
    for _ in range(count):
        length, actions = max(1, int(rng.integers(nodes // 2, nodes * 3 // 2))), []
        left = length
        while left:
            size = min(left, int(rng.integers(1, 4)))
            if rng.random() < 0.5:
                actions += [OUT] * size
            else:
                actions += [SHIFT] * size + [REDUCE[int(rng.integers(len(REDUCE)))]]
            left -= size
        found.append((torch.from_numpy(rng.integers(0, WORDS, (1, length))), torch.tensor([actions])))
    return found


NETWORK = Network(
    "transitions, stack LSTM of named entities, reads its guesses (Lample et al. 2016)", TransitionNER, samples,
    lambda result, *given: result[0],
)  # fmt: skip
