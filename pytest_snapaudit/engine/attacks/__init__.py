"""Attacks: scores of an output, events on a score, and the choice of the event to certify."""

from pytest_snapaudit.engine.attacks.choice import choose_event
from pytest_snapaudit.engine.attacks.event import Event
from pytest_snapaudit.engine.attacks.scores import Score, UserScore

__all__ = ["Event", "Score", "UserScore", "choose_event"]
