"""Cells: functions traced, bodies and their passes, derivatives, stacks of parameters, parts split off recurrences."""
