"""A dependency parser that decides one transition after the other, by LSTMs over stacks (Dyer et al. 2015)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from random import Random
from typing import NamedTuple

import numpy as np

import edbatch as eb
from edbatch.models.arc_hybrid import Configuration, Move
from edbatch.models.arguments import checked_sizes
from edbatch.models.lstm import LSTM
from edbatch.models.recurrent import State

NEVER = -1e9  # added to the score of what is not allowed


class Action(NamedTuple):
    """A transition; `relation` is the number of the new arc's, -1 where there is none."""

    move: Move
    relation: int


class _Stack:
    """Vectors, and the state of an LSTM that has read those that are there: to take one away is to go back."""

    def __init__(self, empty: State) -> None:
        self.states = [empty]
        self.vectors: list[eb.Expression] = []

    def push(self, vector: eb.Expression) -> None:
        self.states.append(self.states[-1].add_input(vector))
        self.vectors.append(vector)

    def pop(self) -> eb.Expression:
        self.states.pop()
        return self.vectors.pop()


class _Parse:
    """A sentence that is being parsed: the configuration, and the vectors of what is in it."""

    def __init__(self, parser: TransitionParser, words: Sequence[int]) -> None:
        self._parser = parser
        self.configuration = Configuration(len(words))
        self.relations = [-1] * len(words)
        self._stack = _Stack(parser.stack.initial_state())
        self._buffer = _Stack(parser.buffer.initial_state())
        self._actions = parser.actions.initial_state()
        for word in (parser.words, *reversed(words)):  # the root's vector is behind those of words
            self._buffer.push(eb.lookup(parser.embed_word, word))

    def scores(self) -> eb.Expression:
        """The scores of all actions, from the LSTMs over the stack, the buffer, and the transitions so far."""
        states = self._stack.states[-1], self._buffer.states[-1], self._actions
        return self._parser.scores(*(state.output() for state in states))

    def allowed(self) -> np.ndarray:
        """Whether each action can be made."""
        return self._parser.allowed[tuple(self.configuration.allowed())]

    def good(self, heads: Sequence[int], relations: Sequence[int]) -> np.ndarray:
        """Whether each action can be made and loses nothing; where its arc is right, its relation has to be as well."""
        moves = [move for move in self.configuration.allowed() if not self.configuration.cost(move, heads)]
        found = []
        for move, relation in self._parser.known:
            right = move in moves
            if right and move is not Move.SHIFT:
                word = self.configuration.stack[-1]
                head = self.configuration.buffer[-1] if move is Move.LEFT else self.configuration.stack[-2]
                right = heads[word - 1] != head or relations[word - 1] == relation
            found.append(right)
        return np.array(found)

    def apply(self, number: int) -> None:
        """Make an action: the vector of a head is composed anew, of its own and that of its new dependent."""
        parser, (move, relation) = self._parser, self._parser.known[number]
        if move is Move.SHIFT:
            self._stack.push(self._buffer.pop())
        else:
            self.relations[self.configuration.stack[-1] - 1] = relation
            dependent = self._stack.pop()
            side = self._buffer if move is Move.LEFT else self._stack
            side.push(parser.compose(side.pop(), dependent, number))
        self.configuration.apply(move)
        self._actions = self._actions.add_input(eb.lookup(parser.embed_action, number))


class TransitionParser:
    """Finds head and relation of every word, one transition of the arc-hybrid system after the other.

    What comes next depends on scores that were computed: `parse` and `loss` are programs for `edbatch.run`, which
    batches across the sentences. Three LSTMs read the stack, the buffer and the transitions so far; their outputs give
    the scores of the actions.

    Args:
        model: collection that the parameters are added to.
        words: size of the vocabulary.
        relations: number of relations.
        dim: size of embeddings and states.

    Example:
        >>> import edbatch as eb
        >>> from edbatch.models import TransitionParser
        >>> parser = TransitionParser(eb.ParameterCollection(seed=0), words=10, relations=3, dim=4)
        >>> (heads, relations), (others, _) = eb.run([parser.parse([5, 6, 7]), parser.parse([1, 2])])
        >>> len(heads), len(relations), len(others)
        (3, 3, 2)
    """

    def __init__(self, model: eb.ParameterCollection, words: int, relations: int, dim: int) -> None:
        words, relations, dim = checked_sizes("TransitionParser", model, words=words, relations=relations, dim=dim)
        self.words = words  # the number of the root, which follows those of words
        arcs = [Action(move, relation) for move in (Move.LEFT, Move.RIGHT) for relation in range(relations)]
        self.known = [Action(Move.SHIFT, -1), *arcs]
        moves = [some for n in range(4) for some in combinations(Move, n)]
        self.allowed = {some: np.array([action.move in some for action in self.known]) for some in moves}
        self.embed_word = model.add_lookup_parameters((words + 1, dim), name="embed_word")
        self.embed_action = model.add_lookup_parameters((len(self.known), dim), name="embed_action")
        self.stack = LSTM(model, dim, dim, name="stack")
        self.buffer = LSTM(model, dim, dim, name="buffer")
        self.actions = LSTM(model, dim, dim, name="actions")
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
