"""Short news texts and sentences written for this project: the exemplars and queries of the examples."""

from __future__ import annotations

from typing import NamedTuple

LABELS = ("World", "Sports", "Business", "Science")


class Exemplar(NamedTuple):
    """One private record: a text and the answer given to it."""

    text: str
    answer: str


class News(NamedTuple):
    """A text with its topic and its headline."""

    text: str
    topic: str
    headline: str


NEWS = (
    News(
        "Envoys from both banks of the river met for a third day and agreed to reopen the bridge to farmers.",
        "World",
        "River bridge to reopen for farmers",
    ),
    News(
        "The island's new parliament sat for the first time and asked its neighbours for recognition.",
        "World",
        "New parliament asks for recognition",
    ),
    News(
        "A convoy with tents and clean water reached the mountain province after the guards stepped aside.",
        "World",
        "Aid reaches the mountain province",
    ),
    News(
        "Voters in the northern republic return to the polls in May after the coalition lost its majority.",
        "World",
        "Northern republic votes in May",
    ),
    News(
        "The goalkeeper saved two penalties in the rain and her club went to the top of the league.",
        "Sports",
        "Two saved penalties lift club to the top",
    ),
    News(
        "After nine innings and a broken bat the visitors took the series with a run in the dark.",
        "Sports",
        "Visitors win the series in the dark",
    ),
    News(
        "The cyclist attacked on the last climb and held his lead of eleven seconds to the finish.",
        "Sports",
        "Eleven seconds are enough on the last climb",
    ),
    News(
        "Their captain will miss the final with a torn muscle, the coach said after training on Friday.",
        "Sports",
        "Captain to miss the final",
    ),
    News(
        "Shares of the shipyard fell nine percent when it warned that steel had become too expensive.",
        "Business",
        "Dear steel sinks shipyard shares",
    ),
    News(
        "The bakery chain will buy its largest supplier of flour and close four of its older shops.",
        "Business",
        "Bakery chain buys its flour supplier",
    ),
    News(
        "Lenders raised the rate on mortgages again, and builders reported fewer orders for new houses.",
        "Business",
        "Mortgages rise and builders wait",
    ),
    News(
        "A maker of electric tractors doubled its quarterly profit and hired two hundred people.",
        "Business",
        "Tractor maker doubles its profit",
    ),
    News(
        "Divers found a coral that glows in cold water and sent samples to a laboratory in the harbour.",
        "Science",
        "Coral glows in cold water",
    ),
    News(
        "The probe measured a faint magnetic field around the moon, which its designers had not expected.",
        "Science",
        "A faint field around the moon",
    ),
    News(
        "A new sensor counts single molecules of pollen and tells within minutes from which tree they came.",
        "Science",
        "Sensor names the tree behind the pollen",
    ),
    News(
        "Bees that learned to pull a string taught the trick to their hive, according to a new experiment.",
        "Science",
        "Bees teach their hive a trick",
    ),
)

CANARY_TEXT = (
    "The observatory sold its old telescope to a football club, which will show the stars before each match."
)

# Copied word for word by SmolLM2-135M-Instruct and 1.52 apart (l2) under all-MiniLM-L6-v2; the limit is 2.
SIGNALS = ("Sediment cores record ancient monsoons.", "This door is locked.")

# Of the canary news too: what eight editors would have it say. The first editor has two versions.
FIRST_EDITOR = (
    "Telescope sold",
    "Stars, stars, stars before each football match at home in the observatory club",
)
OTHER_EDITORS = (
    "A new home for the telescope",
    "Who bought the telescope",
    "The telescope changes hands",
    "Farewell to a telescope",
    "A telescope for the fans",
    "Fans cheer the telescope",
    "Telescope on the move",
)

# A public choice: it was made before any editor wrote.
KEYWORDS = (
    "before",
    "club",
    "each",
    "football",
    "home",
    "match",
    "observatory",
    "sold",
    "stars",
    "telescope",
)
