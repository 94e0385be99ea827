"""Words and vocabularies."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dp_icl.words import public_vocabulary, tokenise, validate_vocabulary


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("River, river and RIVER!", ["river", "river", "and", "river"]),
        ("don't 'quote' it’s", ["don't", "quote", "it’s"]),
        ("snake_case kebab-case 3.5 g20", ["snake", "case", "kebab", "case", "3", "5", "g20"]),
        ("Ärger übt CAFE\u0301", ["ärger", "übt", "café"]),
        ("", []),
        (" \n--- ?!", []),
        ("東京 tower", ["東京", "tower"]),
    ],
)
def test_words(text, words):
    assert tokenise(text) == words


@settings(max_examples=25)
@given(st.text())
def test_every_text_has_words_that_are_words_again_or_combine_differently(text):
    for word in tokenise(text):
        assert word
        assert "".join(tokenise(word)) == word


def test_only_strings_have_words():
    with pytest.raises(TypeError, match="text must be a string, got b'rain' of type bytes"):
        tokenise(b"rain")


def test_a_public_vocabulary_is_sorted_and_without_repeats():
    assert public_vocabulary(["The river", "the rain"]) == ("rain", "river", "the")
    assert public_vocabulary([]) == ()
    with pytest.raises(TypeError, match="put a single text in a list"):
        public_vocabulary("rain")


def test_a_vocabulary_is_kept_in_its_order():
    assert validate_vocabulary(["yes", "no", "don't"]) == ("yes", "no", "don't")


@pytest.mark.parametrize(
    ("vocabulary", "error", "message"),
    [
        ("yes no", TypeError, "got 'yes no' of type str"),
        ({"yes", "no"}, TypeError, "of type set"),
        ((), ValueError, "got none"),
        (("yes", 3), TypeError, "got 3 of type int"),
        (("yes", "yes"), ValueError, "got 'yes' twice"),
        (("Yes",), ValueError, r"'Yes' is read as \['yes'\]"),
        (("new york",), ValueError, r"'new york' is read as \['new', 'york'\]"),
        (("",), ValueError, r"'' is read as \[\]"),
    ],
)
def test_bad_vocabularies_are_named(vocabulary, error, message):
    with pytest.raises(error, match=message):
        validate_vocabulary(vocabulary)
