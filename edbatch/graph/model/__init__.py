"""What a model learns: parameters with their gradients and first values, collections of them, checkpoints."""
