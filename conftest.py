"""What pytest leaves alone of the package."""

# They import PyTorch (the extra `bench`), which is not installed where the tests run; what tests them skips without.
IN_TORCH = ("lattice", "peer", "recurrent", "table", "tagger", "torch_sides", "translation", "tree_networks", "trees")
collect_ignore = [f"edbatch/experiments/peers/{name}.py" for name in IN_TORCH]
