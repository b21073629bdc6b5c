import asyncio
import datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgym_envs.errors import UsageError
from agentgym_envs.webarena.evaluators.base import Evaluator, FinishedEpisode, Verdict, score_all
from agentgym_envs.webarena.evaluators.strings import AnswerIncludes, ExactAnswer, includes
from agentgym_envs.webarena.evaluators.urls import EndsOn, parse_url
from agentgym_envs.webarena.evaluators.values import clean, read_date, read_quantity, same_value


async def no_pages(url: str | None, script: str = "") -> str:
    raise AssertionError("no page is to be read")


def finished(answer: str = "", url: str = "about:blank") -> FinishedEpisode:
    return FinishedEpisode("Do it", answer, url, no_pages)


def score(evaluator: Evaluator, episode: FinishedEpisode) -> Verdict:
    return asyncio.run(score_all([evaluator], episode))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Quest Lumaflex™ Band", "quest  lumaflex™ band"),
        ("'Yes'", "Yes."),
        ("' \"Yes\" '", "yes"),
        ("It’s", "it's"),
        ("$1,200.50", "1200.5"),
        ("-$5", "-5.00"),
        ("35%", "35 percent"),
        ("35%", "35"),
        ("748m", "748 m"),
        ("1.7km", "1700 meters"),
        ("1h 35min", "95 minutes"),
        ("Jan 5, 2023", "2023-01-05"),
        ("5th of January 2023", "1/5/23"),
        ("Thursday, January 5, 2023", "2023/01/05"),
        ("13/1/2023", "2023-01-13"),  # not ambiguous, as there is no month 13
        ("05.01.2023", "2023-01-05"),
        ("5-Jan-2023", "2023-01-05"),
        ("1-13-2023", "2023-01-13"),
        ("Thursday, the 5th of January, 2023", "2023-01-05"),
        ("49 dollars and 99 cents", "$49.99"),
        ("US$49.99", "49.99 USD"),
        ("1 hour and 35 minutes", "95 min"),
        ("50 km/h", "50 kph"),
    ],
)
def test_equal_values_match_in_other_notations(one: str, other: str) -> None:
    assert same_value(one, other)
    assert score(ExactAnswer(one), finished(other)) == Verdict(1.0)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("06516", "6516"),  # a postal code is not a number
        ("5 min", "5"),
        ("-5", "5"),
        ("1.2.3", "1.2.30"),
        ("5 min", "5 km"),
        ("$5", "€5"),
        ("Jan 5, 2023", "May 1, 2023"),
        ("1/13/2023", "2023-13-01"),
        ("5-6-2023", "2023-06-05"),  # ambiguous
        ("5-6-2023", "2023-05-06"),
        ("- 5", "-5"),
        ("1,200", "1.200"),
        ("yes", "yes, no"),
        ("", "."),
        ("3 5", "8"),
    ],
)
def test_different_values_do_not_match(one: str, other: str) -> None:
    assert not same_value(one, other)
    assert score(ExactAnswer(one), finished(other)).score == 0.0


@pytest.mark.parametrize(
    ("answer", "reference"),
    [
        ("$0.00", "0"),
        ("There are 0 of them", "0"),
        ("about 36.39 dollars", "36.39"),
        ("$745", "745.00"),
        ("40.44254, -79.93948", "40.442"),
        ("40.44254,-79.93948", "-79.939"),
        ("Order 000000180", "180"),
        ("94010-1234", "94010"),
        ("It closed on Jan 5, 2023.", "1/5/2023"),
        ("It is 2 km away", "2.0km"),
        ("The answer is 3", "65 |OR| 3"),
        ("Joust Duffle Bags", "joust duffle bag"),
    ],
)
def test_an_answer_with_the_reference_scores_1(answer: str, reference: str) -> None:
    assert includes(answer, reference)
    assert score(AnswerIncludes([reference]), finished(answer)) == Verdict(1.0)


@pytest.mark.parametrize(
    ("answer", "reference"),
    [
        ("It is 10", "0"),
        ("0.5", "0"),
        ("2023-01-05", "5"),
        ("at 1:05", "5"),
        ("scored 1:5", "5"),
        ("from 7-11", "7"),
        ("minus -5", "5"),
        ("12,500", "12"),
        ("1st", "1"),
        ("10.14", "0.14"),
        ("1346", "346"),
        ("1,346", "346"),
        ("12.5", "12"),
        ("14.0km", "4.0km"),
        ("2.0 miles", "2.0km"),
        ("", "0"),
        ("65 or 3", "4 |OR| 5"),
    ],
)
def test_an_answer_without_the_reference_scores_0(answer: str, reference: str) -> None:
    assert not includes(answer, reference)


def test_every_reference_is_required_and_the_reason_names_the_missing_one() -> None:
    verdict = score(AnswerIncludes(["Goldfish", "Roxanne"]), finished("Goldfish and Rachel"))
    assert verdict == Verdict(0.0, "the answer 'Goldfish and Rachel' does not include 'Roxanne'")


def test_an_answer_with_an_unwanted_text_fails() -> None:
    evaluator = AnswerIncludes(["it drips"], ["it is quiet"])
    assert score(evaluator, finished("They say that it drips.")).score == 1.0
    assert score(evaluator, finished("It drips, but it is quiet.")) == Verdict(
        0.0, "the answer 'It drips, but it is quiet.' also includes 'it is quiet'"
    )


@given(st.text() | st.text("'\" ab.’”"))
def test_cleaning_twice_changes_nothing(text: str) -> None:
    assert clean(clean(text)) == clean(text)


@given(st.text(), st.text())
def test_same_value_is_symmetric_and_reflexive(one: str, other: str) -> None:
    assert same_value(one, one)
    assert same_value(one, other) == same_value(other, one)


@given(st.decimals(0, 10**9, places=2))
def test_numbers_match_in_many_notations(number: Decimal) -> None:
    written = [f"{number}", f"{number:,}", f"${number:,}", f" '{number:f}' ", f"{number.normalize():f}", f"{number}00"]
    assert all(same_value(written[0], other) for other in written)
    assert includes(f"It costs {number:,} in all", written[0])
    assert not same_value(written[0], f"{number + Decimal('0.01')}")


@given(st.dates(datetime.date(1000, 1, 1)))
def test_dates_match_in_many_notations(date: datetime.date) -> None:
    for pattern in ("%B %d, {year}", "%b %d {year}", "%d %B {year}", "{year}-%m-%d", "%m/%d/{year}"):
        text = date.strftime(pattern).format(year=date.year)
        assert read_date(clean(text)) == date, text
        assert includes(f"It was on {text}.", f"{date}")


@given(st.text(min_size=1), st.text(), st.text())
def test_a_text_includes_each_of_its_words(word: str, before: str, after: str) -> None:
    cleaned = clean(word)
    if (
        len(cleaned) > 1
        and not {*word.strip()} & {"'", '"'}
        and not cleaned[0].isdecimal()
        and not cleaned[-1].isdecimal()
    ):
        assert includes(f"x {before} {word} {after} x", word)


@given(st.text())
def test_any_text_can_be_parsed(text: str) -> None:
    read_quantity(clean(text))
    read_date(clean(text))
    includes(text, text)


BOOKS = "http://forum.test/f/books"


@pytest.mark.parametrize(
    ("reference", "url"),
    [
        (BOOKS, "http://FORUM.test:80/f/books/"),
        (BOOKS, f"{BOOKS}?sort=new#top"),
        (f"{BOOKS} |OR| http://forum.test/f/DIY", "http://forum.test/f/diy"),
        ("http://a.test/issues/?label%5B%5D=help%20wanted", "http://a.test/issues?x=1&label[]=help+wanted"),
        ("http://a.test/a%20b/%7Ec", "http://a.test/a b/~c"),
        ("http://shop.test/find?q=%20case", "http://shop.test/find?q=Case&p=2"),
    ],
)
def test_equivalent_urls_match_the_reference(reference: str, url: str) -> None:
    assert score(EndsOn(reference), finished(url=url)) == Verdict(1.0)
    assert score(EndsOn(reference, below=True), finished(url=url)) == Verdict(1.0)


@pytest.mark.parametrize(
    ("reference", "url"),
    [
        ("http://forum.test/f/iphone", "http://forum.test/f/iphone13"),
        (BOOKS, "https://forum.test/f/books"),
        (BOOKS, "http://forum.test:8080/f/books"),
        (BOOKS, "http://forum.test.evil.test/f/books"),
        (BOOKS, f"http://evil.test/?next={BOOKS}"),
        (BOOKS, "http://forum.test/x/f/books"),
        ("http://a.test/a?x=1&y=2", "http://a.test/a?x=1"),
        ("http://a.test/a?x=1 |OR| http://a.test/b?x=2", "http://a.test/a?x=2"),  # each alternative counts whole
        ("http://a.test/a%2Fb", "http://a.test/a/b"),
        (BOOKS, "about:blank"),
        (BOOKS, "chrome-error://chromewebdata/"),
    ],
)
def test_different_urls_do_not_match_the_reference(reference: str, url: str) -> None:
    assert score(EndsOn(reference), finished(url=url)).score == 0.0
    assert score(EndsOn(reference, below=True), finished(url=url)).score == 0.0


def test_a_page_below_the_reference_matches_only_with_below() -> None:
    episode = finished(url=f"{BOOKS}/130/my-post")
    assert score(EndsOn(BOOKS, below=True), episode) == Verdict(1.0)
    assert score(EndsOn(BOOKS), episode).reason == f"the last page is '{BOOKS}/130/my-post', not '{BOOKS}'"


@given(st.lists(st.text(st.characters(codec="utf-8"), min_size=1), max_size=3), st.text(st.characters(codec="utf-8")))
def test_urls_are_compared_decoded(segments: list[str], value: str) -> None:
    from urllib.parse import quote

    one = "http://a.test/" + "/".join(quote(segment, safe="") for segment in segments) + f"?x={quote(value, safe='')}"
    other = (
        "HTTP://A.test:80//" + "/".join(quote(segment, safe="'()*!") for segment in segments) + f"/?x={quote(value)}"
    )
    assert parse_url(one) == parse_url(other)


def test_a_malformed_url_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="is no URL"):
        parse_url("http://a.test:port/")
