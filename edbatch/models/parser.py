"""A dependency parser that decides one transition after the other, by LSTMs over stacks (Dyer et al. 2015)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from random import Random
from typing import Any, NamedTuple

import numpy as np

import edbatch as eb
from edbatch.models.arc_hybrid import Configuration, Move
from edbatch.models.arguments import checked
from edbatch.models.lstm import LSTM
from edbatch.models.recurrent import State

NEVER = -1e9  # added to the score of what is not allowed


class Action(NamedTuple):
    """A transition; `relation` is the number of the new arc's, -1 where there is none."""

    move: Move
    relation: int


_Stack = list[tuple[State, Any]]  # vectors, each with the state of an LSTM that has read it and those below it


def _push(stack: _Stack, vector: eb.Expression) -> None:
    stack.append((stack[-1][0].add_input(vector), vector))


class _Parse:
    """A sentence that is being parsed: the configuration, and the vectors of what is in it."""

    def __init__(self, parser: TransitionParser, words: Sequence[int]) -> None:
        self._parser = parser
        self.configuration = Configuration(len(words))
        self.relations = [-1] * len(words)
        self._stack: _Stack = [(parser.stack.initial_state(), None)]
        self._buffer: _Stack = [(parser.buffer.initial_state(), None)]
        self._actions = parser.actions.initial_state()
        for word in (parser.words, *reversed(words)):  # the root's vector is behind those of words
            _push(self._buffer, eb.lookup(parser.embed_word, word))

    def scores(self) -> eb.Expression:
        """The scores of all actions, from the LSTMs over the stack, the buffer, and the transitions so far."""
        states = self._stack[-1][0], self._buffer[-1][0], self._actions
        return self._parser.scores(*(state.output() for state in states))

    def allowed(self) -> np.ndarray:
        """Whether each action can be made."""
        return self._parser.allowed[tuple(self.configuration.allowed())]

    def good(self, heads: Sequence[int], relations: Sequence[int]) -> np.ndarray:
        """Whether each action can be made and loses nothing; where its arc is right, its relation has to be as well."""
        state = self.configuration
        moves = [move for move in state.allowed() if not state.cost(move, heads)]

        def is_good(move: Move, relation: int) -> bool:
            if move is Move.SHIFT or move not in moves:
                return move in moves
            word, head = state.stack[-1], state.buffer[-1] if move is Move.LEFT else state.stack[-2]
            return heads[word - 1] != head or relations[word - 1] == relation

        return np.array([is_good(*action) for action in self._parser.known])

    def apply(self, number: int) -> None:
        """Make an action: the vector of a head is composed anew, of its own and that of its new dependent."""
        parser, (move, relation) = self._parser, self._parser.known[number]
        if move is Move.SHIFT:
            _push(self._stack, self._buffer.pop()[1])
        else:
            self.relations[self.configuration.stack[-1] - 1] = relation
            _, dependent = self._stack.pop()
            side = self._buffer if move is Move.LEFT else self._stack
            _push(side, parser.compose(side.pop()[1], dependent, number))
        self.configuration.apply(move)
        self._actions = self._actions.add_input(eb.lookup(parser.embed_action, number))


class TransitionParser:
    """Finds head and relation of every word, one transition of the arc-hybrid system after the other.

    What comes next depends on scores that were computed: `parse` and `loss` are programs for `edbatch.run`, which
    batches across the sentences. Three LSTMs read the stack, the buffer and the transitions so far; their outputs give
    the scores of the actions.

    Example:
        >>> import edbatch as eb
        >>> from edbatch.models import TransitionParser
        >>> parser = TransitionParser(eb.ParameterCollection(seed=0), words=10, relations=3, dim=4)
        >>> (heads, relations), (others, _) = eb.run([parser.parse([5, 6, 7]), parser.parse([1, 2])])
        >>> len(heads), len(relations), len(others)
        (3, 3, 2)
    """

    @checked
    def __init__(self, model: eb.ParameterCollection, words: int, relations: int, dim: int) -> None:
        self.words = words  # the number of the root, which follows those of words
        arcs = [Action(move, relation) for move in (Move.LEFT, Move.RIGHT) for relation in range(relations)]
        self.known = [Action(Move.SHIFT, -1), *arcs]
        moves = [some for n in range(4) for some in combinations(Move, n)]
        self.allowed = {some: np.array([action.move in some for action in self.known]) for some in moves}
        self.embed_word = model.add_lookup_parameters((words + 1, dim), name="embed_word")
        self.embed_action = model.add_lookup_parameters((len(self.known), dim), name="embed_action")
        self.stack, self.buffer, self.actions = (
            LSTM(model, dim, dim, name=name) for name in ("stack", "buffer", "actions")
        )
        self.W_compose = model.add_parameters((dim, 2 * dim), name="W_compose")
        self.embed_arc = model.add_lookup_parameters((len(self.known), dim), name="embed_arc")
        self.W_hidden = model.add_parameters((dim, 3 * dim), name="W_hidden")
        self.b_hidden = model.add_parameters((dim,), name="b_hidden")
        self.W_out = model.add_parameters((len(self.known), dim), name="W_out")
        self.b_out = model.add_parameters((len(self.known),), name="b_out")

    @eb.cell
    def compose(self, head: eb.Expression, dependent: eb.Expression, action: int) -> eb.Expression:
        """The vector of a head with one more dependent."""
        return eb.tanh(self.W_compose @ eb.concatenate([head, dependent]) + eb.lookup(self.embed_arc, action))

    @eb.cell
    def scores(self, stack: eb.Expression, buffer: eb.Expression, actions: eb.Expression) -> eb.Expression:
        """Scores of all actions."""
        hidden = eb.tanh(eb.affine(self.W_hidden, eb.concatenate([stack, buffer, actions]), self.b_hidden))
        return eb.affine(self.W_out, hidden, self.b_out)

    @eb.cell
    def loss_of(self, scores: eb.Expression, allowed: eb.Expression, good: eb.Expression) -> eb.Expression:
        """-log of the probability of good actions among those that are allowed; both are added to the scores."""
        return eb.logsumexp(scores + allowed) - eb.logsumexp(scores + good)

    async def parse(self, words: Sequence[int]) -> tuple[list[int], list[int]]:
        """Heads and relations of the words, by the best action at every step; a program.

        Returns:
            Per word the number of its head (words count from 1, 0 is the root), and of its relation.
        """
        parse, _ = await self._parsed(words)
        return parse.configuration.heads, parse.relations

    async def answer(self, words: Sequence[int]) -> list[eb.Expression]:
        """Probabilities of all actions at every step of `parse`; a program."""
        return [eb.softmax(scores) for scores in (await self._parsed(words))[1]]

    async def guided(self, words: Sequence[int], actions: Sequence[int]) -> list[eb.Expression]:
        """Scores of all actions at every step, where these are made, by their numbers in `known`; a program."""
        parse, found = _Parse(self, words), []
        for action in actions:
            found.append(parse.scores())
            parse.apply(action)
        return found

    async def loss(
        self, words: Sequence[int], heads: Sequence[int], relations: Sequence[int], explore: float, random: Random
    ) -> list[eb.Expression]:
        """The cost of deciding otherwise than the dynamic oracle, a loss for each step; a program.

        Args:
            heads, relations: those that are right.
            explore: how often the best action is made, be it right or not; otherwise the best that is right.
            random: decides that; one for each sentence, so that it does not matter what else runs.
        """
        parse, losses = _Parse(self, words), []
        while not parse.configuration.is_over:
            scores = parse.scores()
            allowed, good = parse.allowed(), parse.good(heads, relations)
            losses.append(self.loss_of(scores, _added(allowed), _added(good)))
            parse.apply(_best(await scores, allowed if random.random() < explore else good))
        return losses

    async def _parsed(self, words: Sequence[int]) -> tuple[_Parse, list[eb.Expression]]:
        parse, found = _Parse(self, words), list[eb.Expression]()
        while not parse.configuration.is_over:
            found.append(parse.scores())
            parse.apply(_best(await found[-1], parse.allowed()))
        return parse, found


def _best(scores: np.ndarray, among: np.ndarray) -> int:
    return int(np.where(among, scores, -np.inf).argmax())


def _added(among: np.ndarray) -> eb.Expression:
    return eb.input(np.where(among, 0.0, NEVER))
