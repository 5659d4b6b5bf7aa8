"""REINFORCE (Williams 1992): what is done next is drawn, so that structure itself is random; rewards are weights."""

import asyncio

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


@pytest.mark.parametrize(("policy", "limit"), [("sufficient", 7), ("none", None)])
def test_episodes_together_are_those_of_each_alone(policy, limit):
    walker = Walker()
    expected_actions, expected = learned(walker, one_by_one)
    actions, found = learned(walker, lambda programs: eb.run(programs, limit=limit), policy)
    assert actions == expected_actions
    assert len({len(one) for one in actions}) > 3  # structure differs
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-13)
