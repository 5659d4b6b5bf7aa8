"""What all of the package may use, and knows nothing of it."""
