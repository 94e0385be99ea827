"""Settings of all examples: Hypothesis draws the same examples in every run, as audits draw the same noise."""

from hypothesis import settings

settings.register_profile("examples", derandomize=True, database=None)
settings.load_profile("examples")
