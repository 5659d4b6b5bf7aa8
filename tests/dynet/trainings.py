"""Eight updates by each of DyNet's trainers, something being done after the fourth; real DyNet gave `trainers.json`.

Runs with both: nothing here is newer than Python 3.6.
"""

import numpy as np

TRAINERS = [
    "SimpleSGDTrainer",
    "MomentumSGDTrainer",
    "AdagradTrainer",
    "AdadeltaTrainer",
    "RMSPropTrainer",
    "AdamTrainer",
    "AmsgradTrainer",
]
ACTIONS = {
    "none": lambda trainer: None,
    "restart": lambda trainer: trainer.restart(),
    "restart_rate": lambda trainer: trainer.restart(0.03),
    "learning_rate": lambda trainer: setattr(trainer, "learning_rate", 0.02),
    "clip": lambda trainer: trainer.set_clip_threshold(0.5),
    "no_clip": lambda trainer: trainer.set_clip_threshold(0),
    "status": lambda trainer: trainer.status(),
}
CASES = [(kind, action, sparse) for kind in TRAINERS for action in ACTIONS for sparse in (True, False)]


def trained(dy, kind, action, sparse):
    """All entries of the parameters after the updates, and the learning rate."""
    model = dy.ParameterCollection()
    W = model.add_parameters(2, init=np.array([1.0, 2.0]))
    b = model.add_parameters(1, init=np.array([0.5]))
    table = model.lookup_parameters_from_numpy(np.array([[1.0], [2.0], [-1.0]]))
    trainer = getattr(dy, kind)(model)
    trainer.set_sparse_updates(sparse)
    for step in range(8):
        dy.renew_cg()
        loss = dy.squared_norm(W * float(1 + step % 3)) + dy.squared_norm(b + table[step % 2])
        loss.backward()
        trainer.update()
        if step == 3:
            ACTIONS[action](trainer)
    entries = [x for one in (W, b, table) for x in np.asarray(one.as_array()).reshape(-1).tolist()]
    return [float(format(x, ".7g")) for x in [*entries, trainer.learning_rate]]
