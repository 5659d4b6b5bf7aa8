"""What pytest leaves alone of the package."""

# They import PyTorch (the extra `bench`), which is not installed where the tests run; what tests them skips without.
collect_ignore_glob = ["edbatch/experiments/peers/*.py"]
