"""Trees, tagged sentences, lattices and parallel text: in files, and made up; vocabularies."""
