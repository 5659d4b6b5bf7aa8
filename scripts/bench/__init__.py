"""Measures what EdBatch costs, beside what it is compared with."""
