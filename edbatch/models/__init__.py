"""Models, built on the public API alone."""
