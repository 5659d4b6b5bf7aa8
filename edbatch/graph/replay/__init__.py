"""Replay: what a function records for a sample, kept and appended again."""
