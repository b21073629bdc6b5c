"""Templates for the wording of questions of several hops: nested phrases, and journeys in several sentences."""

from __future__ import annotations

SECOND_NEIGHBOUR = (
    "the country that lies across the second longest land border of {}",
    "the country beyond the second longest land border of {}",
    "the country on the other side of the second longest land border of {}",
    "the country that, of all neighbours, has the second longest land border with {}",
    "the neighbour with the second longest common land border with {}",
)
LARGER_NEIGHBOUR = (
    "the one with {more} of the two countries that lie across the two longest land borders of {}",
    "whichever has {more} of the two countries beyond the two longest land borders of {}",
    "the country that has {more}, out of the two that have the longest land borders with {}",
)
JOURNEY_BEGIN = (
    "Start in {where}. {step}.",
    "Take {where}. {step}.",
    "A journey begins in {where}. {step}.",
    "Think of {where}. {step}.",
)
JOURNEY = (
    (
        "Cross its longest land border",
        "Go to the neighbour with which it has its longest land border",
        "Go over to the country behind its longest land border",
    ),
    (
        "Cross its second longest land border",
        "Go to the neighbour with which it has its second longest land border",
        "Go over to the country behind its second longest land border",
    ),
    (
        "Of the two countries behind its two longest land borders, go to the one with {more}",
        "Two countries lie behind its two longest land borders: go to the one with {more}",
        "Compare the two neighbours with which it has its longest land borders, and go to the one with {more}",
    ),
)
"""Steps from a country: to its first neighbour, to its second one, and to one of both."""
JOURNEY_ON = (
    "From the country that you reach: {}.",
    "Then do this from there: {}.",
    "Go on from there: {}.",
)
JOURNEY_END = (
    "the country where you end up",
    "the country that you reach in the end",
    "the last country of this journey",
    "the country where this leads you",
)
CHAIN_BEGIN = (
    "Of {a} and {b}, take the one that has {more}.",
    "Compare {a} with {b} and keep the one that has {more}.",
    "Two countries are {a} and {b}: choose whichever has {more}.",
    "There are two countries, {a} and {b}. Select the one that has {more}.",
)
CHAIN_ON = (
    "Then compare it with {} and keep the one that has {more}.",
    "Of that country and {}, take the one that has {more}.",
    "Next, put it against {} and choose whichever has {more}.",
)
CHAIN_END = (
    "the country that is left",
    "the country that you have in the end",
    "the country that remains",
    "the country that was chosen last",
)
