"""The Hypothesis settings profile for audits: loaded by name, never by default.

``pytest --hypothesis-profile=snapaudit``, or in a conftest.py ``hypothesis.settings.load_profile("snapaudit")``:

- no deadline: an audit takes longer than Hypothesis' 200 ms;
- 100 examples per test, whatever another profile says;
- a failing example is printed as a ``@reproduce_failure`` blob beside its code;
- 20,000 trials per side in each example, unless the command line, ``check``, a marker or the ini file say otherwise.

The rest is as in the profile that is active when Hypothesis is imported, so that examples are the same in every run in
continuous integration (Hypothesis' profile ``ci``) and fresh elsewhere. Nothing here loads NumPy, and Hypothesis is
looked at only once something else has imported it.
"""

from __future__ import annotations

import contextlib
import sys

PROFILE = "snapaudit"
MAX_EXAMPLES = 100
TRIALS = 20_000


def register_profile() -> None:
    """Make the profile known to Hypothesis, unless there is one of this name; called from its entry point."""
    from hypothesis import settings  # noqa: PLC0415
    from hypothesis.errors import InvalidArgument  # noqa: PLC0415

    with contextlib.suppress(InvalidArgument):
        settings.get_profile(PROFILE)
        return
    settings.register_profile(PROFILE, deadline=None, max_examples=MAX_EXAMPLES, print_blob=True)


def is_active() -> bool:
    """Whether the profile is the one that is loaded."""
    if "hypothesis" not in sys.modules:
        return False
    from hypothesis import settings  # noqa: PLC0415

    named = getattr(settings, "get_current_profile_name", None)
    current = named() if callable(named) else getattr(settings, "_current_profile", None)
    return bool(current == PROFILE)


def header(trials_stated: bool) -> str:
    """The line of the report's head, "" unless the profile is active.

    Args:
        trials_stated: whether an option of the session says how many trials an example gets.
    """
    if not is_active():
        return ""
    from hypothesis import settings  # noqa: PLC0415

    examples = settings.get_profile(PROFILE).max_examples
    trials = "" if trials_stated else f", {TRIALS:,} trials per side in each"
    return f"snapaudit: Hypothesis profile {PROFILE}: {examples:,} examples per test{trials}"
