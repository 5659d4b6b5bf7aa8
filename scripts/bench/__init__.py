"""What is measured: `python -m scripts.bench` lists it."""
