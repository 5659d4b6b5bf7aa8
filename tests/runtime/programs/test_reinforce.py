"""REINFORCE (Williams 1992): what is done next is drawn, so that structure itself is random; rewards are weights."""

import asyncio
from itertools import product

import numpy as np
import pytest

import edbatch as eb

SIZE, ACTIONS, LONGEST = 5, 3, 3
END = 2  # the action after which nothing follows


class Walker:
    """Says actions until it draws the one that ends; each action is another cell."""

    def __init__(self):
        self.model = eb.ParameterCollection(seed=4, dtype="float64")
        self.Ws = [self.model.add_parameters((SIZE, SIZE), name=f"W{k}") for k in range(ACTIONS)]
        self.O = self.model.add_parameters((ACTIONS, SIZE), name="O")
        self.starts = self.model.add_lookup_parameters((4, SIZE), name="starts")

    async def walk(self, start, choose, longest=LONGEST):
        """The actions, and the logarithm of their probability."""
        h, actions, logs = eb.tanh(eb.lookup(self.starts, start)), [], []
        while len(actions) < longest and (not actions or actions[-1] != END):
            log_p = eb.log_softmax(self.O @ h)
            action = choose(np.exp(await log_p), len(actions))
            logs.append(log_p[action])
            actions.append(action)
            h = eb.tanh(self.Ws[action] @ h + h)
        return tuple(actions), eb.sum(logs)

    async def episode(self, start, seed):
        """Actions drawn from a sample's own stream, and the loss: its reward times their log probability."""
        random = np.random.default_rng(seed)
        actions, log_p = await self.walk(start, lambda p, _: int(random.choice(ACTIONS, p=p / p.sum())), 8)
        return actions, -log_p * eb.scalar(reward(start, actions))


def reward(start, actions):
    return np.cos(start + sum((k + 1) * (action + 1) for k, action in enumerate(actions))) + len(actions)


def one_by_one(programs):
    async def run():
        return [await program for program in programs]

    return asyncio.run(run())


def learned(walker, run, policy="sufficient"):
    """Actions, losses and gradients of some episodes."""
    walker.model.zero_grad()
    with eb.Graph(dtype="float64", policy=policy):
        found = run([walker.episode(seed % 4, seed) for seed in range(40)])
        loss = eb.sum([one for _, one in found])
    loss.backward()
    return [actions for actions, _ in found], [loss.value(), *(p.grad() for p in walker.model)]


@pytest.mark.parametrize("policy", ["sufficient", "agenda", "none"])
@pytest.mark.parametrize("limit", [None, 7])
def test_episodes_together_are_those_of_each_alone(policy, limit):
    walker = Walker()
    expected_actions, expected = learned(walker, one_by_one)
    actions, found = learned(walker, lambda programs: eb.run(programs, limit=limit), policy)
    assert actions == expected_actions
    assert len({len(one) for one in actions}) > 3  # structure differs
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-13)


def every_episode():
    """Of at most `LONGEST` actions."""
    for n in range(1, LONGEST + 1):
        for actions in product(range(ACTIONS), repeat=n):
            if END not in actions[:-1] and (n == LONGEST or actions[-1] == END):
                yield actions


def expected_reward(walker, start):
    """Over all episodes, in NumPy."""
    Ws, O, first = [W.value() for W in walker.Ws], walker.O.value(), np.tanh(walker.starts.value()[start])
    total = mass = 0.0
    for actions in every_episode():
        h, p = first, 1.0
        for action in actions:
            scores = np.exp(O @ h)
            p *= scores[action] / scores.sum()
            h = np.tanh(Ws[action] @ h + h)
        total += p * reward(start, actions)
        mass += p
    np.testing.assert_allclose(mass, 1, rtol=1e-12)
    return total


def test_over_all_episodes_it_is_the_gradient_of_the_expected_reward():
    """Σ p(episode) · reward · ∇ log p is ∇ of what is expected: against finite differences of that."""
    walker = Walker()
    episodes = [(start, actions) for start in range(4) for actions in every_episode()]
    with eb.Graph(dtype="float64", policy="sufficient") as graph:
        found = eb.run([walker.walk(start, lambda _, at, a=actions: a[at]) for start, actions in episodes])
        assert [actions for actions, _ in found] == [actions for _, actions in episodes]
        weights = [
            np.exp(log_p) * reward(*episode)
            for log_p, episode in zip(eb.forward([log_p for _, log_p in found]), episodes, strict=True)
        ]
        eb.sum([eb.scalar(w) * log_p for w, (_, log_p) in zip(weights, found, strict=True)]).backward()
    assert graph.report().rounds == LONGEST
    random = np.random.default_rng(0)
    for parameter in walker.model:
        before, direction = parameter.value(), random.standard_normal(parameter.shape)
        ends = []
        for sign in (1, -1):
            parameter.set_value(before + sign * 1e-6 * direction)
            ends.append(sum(expected_reward(walker, start) for start in range(4)))
        parameter.set_value(before)
        slope = (ends[0] - ends[1]) / 2e-6
        np.testing.assert_allclose(slope, np.sum(parameter.grad() * direction), rtol=1e-6, atol=1e-9)


def test_it_learns_what_is_rewarded():
    walker = Walker()
    trainer = eb.Adam(walker.model, lr=0.05)
    means = []
    for step in range(60):
        with eb.Graph(policy="sufficient", dtype="float64"):
            found = eb.run([walker.episode(0, 1000 * step + k) for k in range(16)])
            eb.sum([loss for _, loss in found]).backward()
        trainer.update()
        means.append(np.mean([reward(0, actions) for actions, _ in found]))
    assert np.mean(means[-10:]) > np.mean(means[:10]) + 1
