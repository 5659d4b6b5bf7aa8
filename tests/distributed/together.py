"""Workers in this process, without Ray: what each gets is pickled on the way."""

import pickle
from dataclasses import asdict

from edbatch.distributed.job import Job, Part, state_of
from edbatch.distributed.shares import divided
from edbatch.distributed.worker import Worker
from edbatch.graph.options import current_options


def copied(x):
    return pickle.loads(pickle.dumps(x, protocol=5))


class Together:
    """So many workers, begun where a run is."""

    def __init__(self, run, n, mean=False, check_every=1):
        job = Job(run.model, run.trainer, run.losses, "sufficient", mean, asdict(current_options()), None, check_every)
        self.run, self.n, self.step = run, n, run.step
        self.workers = [Worker(pickle.dumps(job), number, n) for number in range(n)]
        for worker in self.workers:
            worker.ready()
            worker.begin(copied(state_of(run.model, run.trainer)), run.step)

    def parts(self, numbers):
        samples = [self.run.data[number] for number in numbers]
        return [
            Part([samples[at] for at in places], [numbers[at] for at in places], places, len(numbers))
            for places in divided([len(words) for words, _ in samples], self.n)
        ]

    def steps(self, batches):
        """What all say of each step."""
        found = []
        self.record(batches[0])
        for number in range(len(batches)):
            pieces = [worker.gradients() for worker in self.workers]
            pieces = pieces if self.n > 1 else [pieces]
            self.step += 1
            if number + 1 < len(batches):
                self.record(batches[number + 1])
            sums = [worker.reduce(*(copied(of[owner]) for of in pieces)) for owner, worker in enumerate(self.workers)]
            found.append([worker.update(*copied(sums)) for worker in self.workers])
        return found

    def record(self, numbers):
        for worker, part in zip(self.workers, self.parts(numbers), strict=True):
            worker.record(copied(part), self.step)
