"""Where values live: arenas and the windows on them, row order, the plan of a mini-batch; `layout`: that of a cell.

Sees arrays and shapes only.
"""
