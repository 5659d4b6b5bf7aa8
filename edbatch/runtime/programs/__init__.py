"""Programs over values: what a sample does next depends on what was computed; all samples that wait run together."""
