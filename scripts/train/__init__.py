"""Trains models on real or made-up data, from the last checkpoint if there is one."""
