"""The papers' tables and figures, measured anew: what `edbatch bench` runs, and what all benchmarks measure with.

An experiment is one file in `of_papers`; everything that is said of it, with the paper's own numbers, is there.
"""
