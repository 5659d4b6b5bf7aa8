"""Trees, tagged and parsed sentences, lattices, parallel text, programs and plain text: in files, as random samples,
and a small sample file of each; vocabularies.

Per kind there is `read_...`, which gives a list of samples, `write_...`, which writes a file that `read_...` reads, and
`random_...`: equal seeds give equal samples in every version of Python, and fewer samples are the first of more. Files
that cannot be read or written are an `edbatch.EdBatchError`; a malformed sample is one that names file and line or,
with `skip_bad=True`, skipped and counted.
"""
