"""Vertex functions (Cavs, section 3): one function, and structures as arrays."""
