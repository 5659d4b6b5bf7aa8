"""One file for each table or figure of a paper; a file that holds an `EXPERIMENT` is all that there is to one."""
