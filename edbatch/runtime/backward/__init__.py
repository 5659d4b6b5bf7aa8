"""Backward passes: plans of derivatives, made from the plan that has run, and the gradients that come of them."""
