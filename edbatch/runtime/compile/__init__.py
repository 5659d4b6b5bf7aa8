"""From a cell's body to a program: batches found, laid out, made into steps, linked to where values lie."""
