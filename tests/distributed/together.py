"""Workers in this process, without Ray: what each gets is pickled on the way."""

import pickle
from dataclasses import asdict

from edbatch.distributed.team import divided
from edbatch.distributed.worker import Job, Worker, state_of
from edbatch.graph.options import current_options


def copied(x):
    return pickle.loads(pickle.dumps(x, protocol=5))


class Together:
    """So many workers, begun where a run is."""

    def __init__(self, run, n, mean=False):
        job = Job(run.model, run.trainer, run.losses, "sufficient", mean, asdict(current_options()), None)
        self.run, self.n = run, n
        self.workers = [Worker(pickle.dumps(job)) for _ in range(n)]
        for worker in self.workers:
            worker.begin(copied(state_of(run.model, run.trainer)), run.step)

    def gradients(self, numbers):
        """Of each worker's part of a mini-batch."""
        samples = [self.run.data[number] for number in numbers]
        parts = divided([len(words) for words, _ in samples], self.n)
        return [
            worker.gradients([samples[at] for at in part], [numbers[at] for at in part], part, len(numbers))
            for worker, part in zip(self.workers, parts, strict=True)
        ]

    def steps(self, batches):
        """What all say of each step: loss, bytes sent, checksum."""
        found = []
        for numbers in batches:
            gradients = self.gradients(numbers)
            found.append([worker.update(*copied(gradients)) for worker in self.workers])
        return found
