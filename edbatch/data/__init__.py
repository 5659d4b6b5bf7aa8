"""Trees, tagged and parsed sentences, lattices, parallel text and programs: in files of any size, made up, and a small
sample file of each; vocabularies and lexicons.

Per kind there is `stream_...`, which reads one sample at a time, `read_...`, which gives a list, `write_...` and
`random_...`. A malformed sample is an error that names file and line or, with `skip_bad=True`, skipped and counted.
"""
