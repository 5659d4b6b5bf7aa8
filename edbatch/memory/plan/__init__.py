"""Where the values of a mini-batch live: the plan's format, rows in the order of their consumers, windows, arenas."""
