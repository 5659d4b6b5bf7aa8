"""Three models of `edbatch.models` as one writes them in PyTorch, to compare with."""
