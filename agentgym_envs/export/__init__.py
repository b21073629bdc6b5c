"""Export of recorded episodes to the formats of other tools, and import of theirs.

`formats` is the table behind `agentgym export`. `atif` writes Harbor's Agent Trajectory Interchange Format and
`atif_import` reads it, `otlp` writes OpenTelemetry spans, and `nemo` writes the data set of a NeMo-Gym run. All need
only Python's own library.
"""
