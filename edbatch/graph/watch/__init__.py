"""What a cell's function reads besides its arguments, and whether it is still as it was."""
