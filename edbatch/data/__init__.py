"""Trees in files, a generator of trees, vocabularies."""
