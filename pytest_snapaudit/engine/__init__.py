"""The auditing engine: knows nothing of pytest and is usable from a script or a notebook."""
