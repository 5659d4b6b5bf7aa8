"""The way back through what has run, as plans of derivatives, and the gradients that come of it."""
