"""The driver: graph -> schedule -> plan -> run. Knows all other folders."""
