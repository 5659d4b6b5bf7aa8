"""What to compute: lazy expressions, the op table, parameters, cells.

Knows nothing of the other folders. `expression`, `columns` and `record` record nodes; `op`, `node_type`, `views` and
`ops/` say what they are; `cell`, `trace`, `body` and `passes/` make static subgraphs. `parameters`, `stacking` and
`collection` are what a model learns, `init` is what it begins with, `checkpoint` and `checksum` keep it in files.
"""
