"""Where values live: arenas and the windows on them, row order, the plan of a mini-batch; PQ trees and cell layouts.

Sees arrays and shapes only.
"""
