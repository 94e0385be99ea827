"""Entry point Hypothesis calls at start-up; imports nothing heavy."""


def register() -> None:
    """Register the strategies for the plugin's own types."""
