"""Trees, tagged and parsed sentences, lattices, parallel text, programs and plain text: in files of any size, as random
samples, and a small sample file of each; vocabularies and lexicons.

Per kind there is `stream_...`, which reads one sample at a time, `read_...`, which gives a list, `write_...`, which
writes a file that `read_...` reads, and `random_...`: equal seeds give equal samples in every version of Python, and
fewer samples are the first of more. Files that cannot be read or written are an `edbatch.EdBatchError`; a malformed
sample is one that names file and line or, with `skip_bad=True`, skipped and counted.
"""
