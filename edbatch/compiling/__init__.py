"""Compiled functions: the decorator, and machine code kept in the user's cache folder."""
