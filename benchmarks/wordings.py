"""Wordings of right answers, and near misses, for `benchmarks.grading` and the tests of grading.

Made from the wanted values alone, without code of the graders: they parse answers, this writes them.
"""

from __future__ import annotations

import datetime
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation

MONTHS = [datetime.date(2000, month, 1).strftime("%B") for month in range(1, 13)]
WORDS = "zero one two three four five six seven eight nine ten eleven twelve".split()  # noqa: SIM905
UNIT_WORDS = {"km": ("kilometers", 1000), "m": ("metres", 1), "min": ("minutes", 60)}
KINDS = (
    *("number", "money", "duration", "distance", "date", "time", "code"),
    *("name", "name and number", "list", "yes/no", "N/A"),
)

FRAMES = (
    "{}",
    " {} ",
    "{}.",
    "**{}**",
    "`{}`",
    '"{}"',
    "- {}",
    "* {}",
    "# Answer\n\n{}",
    "> {}",
    "Answer: {}",
    "Answer - {}",
    "Answer – {}",
    "Answer — {}",
    "**Answer:** {}",
    "Final answer: **{}**.",
    "Result\n- {}",
    "| Answer | {} |",
    "It is {}.",
    "It's **{}**!",
    "The answer is {}.",
    "The answer is: {}",
    "So the answer is {}, as the page shows.",
    "According to the site, it is {}.",
    "{}. I found it on page 2.",
    "I looked at step 3 of the list, and it is {}.",
    "The page lists it as {} [54].",
    "I have checked the page carefully. The answer is therefore {}.",
    "Okay, let me see. The details say {}, so that is what you asked for.",
    "Based on what I see on the page, {} is the answer.",
    "I searched for it, opened the page, and the value shown there is {}.",
    "1. I opened the page.\n2. I read the details.\n\nThe answer is {}.",
    "Step 1: open the page. Step 2: read it. Answer: {}",
    "Thought: I have found it.\n\nAnswer: {}",
    "Answer = {}",
    "→ {}",
    "<answer>{}</answer>",
    "({})",
    "[{}]",
    "{} ✓",
    "My answer: {} (see page 3)",
    "I believe it is {}.",
    "{}\n\nLet me know if you need anything else!",
    "Hmm, let me look again... Right: {}!",
    "{intent} {}",
    "{intent}\n\n{}",
    "> {intent}\n\n**{}**",
    "Question: {intent}\nAnswer: {}",
)
COUNTS = ("There are {} of them.", "Total: - {}", "I counted {}.", "{} in total", "You asked how many: {}.")
SECOND = (
    "{v} or {m}",
    "{m} or {v}",
    "Either {m} or {v}.",
    "{v}, {m}",
    "{m}, {v}",
    "{v} and {m}",
    "{m}; {v}",
    "- {v}\n- {m}",
    "{v} / {m}",
    "{v} ({m})",
    "It is {v}, or else {m}.",
    "It is {m}. It is {v}.",
    "If it is not {m}, it is {v}.",
    "{v}, unless it is {m}",
    "of {m} {v}",
    "It could be {v}, it could be {m}.",
    "{m}? {v}?",
    "First I thought of {m}, but it is {v}.",
    "{v} {m}",
    "{m}\n{v}",
    "{v} & {m}",
    "{m} => {v}",
    "between {m} and {v}",
    "option 1: {v}, option 2: {m}",
    "A: {m} B: {v}",
    "{m}, not {v}",
    "not {v} but {m}",
    "{v}... or was it {m}?",
    "{v} (if I misread it, {m})",
)
HEDGES = (
    "N/A, or else {v}",
    "{v} or N/A",
    "N/A. {v}",
    "Maybe {v}.",
    "Perhaps it is {v}.",
    "It is probably {v}.",
    "It could be {v}.",
    "I guess {v}",
    "{v}, or something else",
    "I am not sure, but {v}.",
    "{v} or not",
    "Possibly {v}",
    "It might be {v}.",
    "Either {v} or I misread it.",
    "{v}, otherwise I do not know.",
    "{v}, or so",
    "I am uncertain: {v}",
)
DENIALS = (
    "It is not {v}.",
    "not {v}",
    "It isn't {v}.",
    "The answer is definitely not {v}.",
    "{v} is wrong.",
    "{v} is not the answer.",
    "Anything but {v}.",
    "I do not think that it is {v}.",
    "{v}. No, that is not right.",
    "It was never {v}.",
    "Neither {v} nor anything else.",
    "Something other than {v}.",
    "everything except {v}",
    "I doubt that it is {v}.",
    "It cannot be {v}.",
    "{v} is incorrect.",
    "That is wrong: {v}",
    "I would never say {v}.",
    "{v} isn't it",
    "{v}? No.",
)
ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
EMPTY = ("", "I do not know.", "N/A", "Yes.", "Done", "{intent}", "The page does not say.")


@dataclass(frozen=True)
class Question:
    """A question and its answer: `wanted` has alternatives for each part, `others` are wrong names."""

    template: str
    intent: str
    kind: str
    wanted: tuple[tuple[str, ...], ...] = ()
    others: tuple[str, ...] = ()
    elsewhere: tuple[str, ...] = field(default=(), compare=False)
    """Right answers of other instances of the template."""


def kind_of(wanted: Sequence[Sequence[str]], intent: str) -> str:
    """Return the kind of an answer, as the table shows it."""
    kinds = [_kind(one[0], intent) for one in wanted]
    if len(kinds) == 1:
        return kinds[0]
    return "name and number" if {*kinds} == {"name", "number"} else "list"


def _kind(text: str, intent: str) -> str:
    if text.lower() in ("yes", "no"):
        return "yes/no"
    if text.startswith("$"):
        return "money"
    if parse_date(text):
        return "date"
    if re.fullmatch(r"\d\d?:\d\d|\d+ [AP]M", text):
        return "time"
    number, _, unit = text.replace(",", "").partition(" ")
    if parse_number(number) is not None and unit in ("", *UNIT_WORDS) and not re.match(r"0\d", number):
        if unit == "min":
            return "duration"
        return "distance" if unit or ("kilometres" in intent and "." in number) else "number"
    return "name" if re.search("[A-Za-z]", text) else "code"


def parse_number(text: str) -> Decimal | None:
    try:
        return Decimal(text.replace(",", ""))
    except InvalidOperation:
        return None


def parse_date(text: str) -> datetime.date | None:
    for form in ("%b %d, %Y", "%Y-%m-%d"):
        try:
            return datetime.datetime.strptime(text, form).date()
        except ValueError:
            continue
    return None


def right(question: Question, rng: random.Random) -> Iterator[str]:
    """Yield right answers, in every frame at least once and in every spelling at least once."""
    if question.kind == "N/A":
        yield from _impossible(question)
        return
    spelled = [_spellings(one, question) for one in question.wanted]
    frames = [*FRAMES, *(COUNTS if question.kind == "number" else ())]
    # "Step 1: open the page" has a second candidate where the question is whether an issue is open or closed.
    frames = [one for one in frames if not set(question.others) & set(re.findall(r"\w+", one.lower()))]
    for number in range(max(len(frames), *map(len, spelled))):
        frame = frames[number % len(frames)].replace("{intent}", question.intent)
        parts = [one[number % len(one)] if number < len(one) else rng.choice(one) for one in spelled]
        yield frame.replace("{}", _together(parts, question, rng))
    if question.kind == "number" and question.wanted[0][0] == "0":
        yield from ("None.", "There are none.", "none of them", "Zero", "No.")


def _together(parts: list[str], question: Question, rng: random.Random) -> str:
    """Put the parts of an answer together; a list in any order."""
    if len(parts) == 1:
        return parts[0]
    if question.kind == "name and number":
        return rng.choice(("{}, {}", "{} ({})", "{} - {}", "{} — {}", "- {}\n- {}", "{} with {}", "{}: {}")).format(
            *parts
        )
    if re.search(r"\bto\b.*\d", question.intent) and question.kind == "range":
        return " to ".join(parts)
    rng.shuffle(parts)
    form = rng.randrange(6)
    if form == 5 and len(parts) <= len(ORDINALS):
        return _labelled(parts)
    if form == 0:
        return ", ".join(parts)
    if form == 1:
        return ", ".join(parts[:-1]) + " and " + parts[-1]
    if form == 2:
        return "\n" + "\n".join(f"- {part}" for part in parts)
    if form == 3:
        return "\n" + "\n".join(f"{number}. {part}" for number, part in enumerate(parts, 1))
    return "; ".join(parts)


def _labelled(parts: Sequence[str]) -> str:
    """A list with labels, in which a colon comes before each part."""
    return ", ".join(f"the {name} one: {part}" for name, part in zip(ORDINALS, parts, strict=False))


def _spellings(wanted: Sequence[str], question: Question) -> list[str]:
    kind = _kind(wanted[0], question.intent)
    if kind in ("name", "yes/no"):
        return [name for one in wanted for name in _names(one)]
    makers = {"number": _numbers, "money": _amounts, "distance": _distances, "duration": _durations}
    makers |= {"date": _dates, "time": _times, "code": _codes}
    return [*wanted, *makers[kind](wanted[0], question.intent)]


def _names(name: str) -> list[str]:
    return [name, name.lower(), name.upper(), f"“{name}”", f"**{name}**", f"`{name}`", name.replace("'", "’")]


def _numbers(text: str, intent: str) -> list[str]:
    number = parse_number(text)
    assert number is not None
    found = [f"{number:,}", f"**{number}**", f"{number} "]
    if number == int(number):
        found += [WORDS[int(number)], WORDS[int(number)].capitalize()] if number < len(WORDS) else []
        found += [_in_words(int(number))] if 20 <= number < 100 else []
        noun = re.search(r"how many ([a-z]+)s\b", intent.lower())
        found += [f"{number} {noun[1]}{'' if number == 1 else 's'}"] if noun else []
    return found


def _in_words(number: int) -> str:
    tens = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")[number // 10 - 2]
    return f"{tens}-{WORDS[number % 10]}" if number % 10 else tens


def _amounts(text: str, intent: str) -> list[str]:
    amount = parse_number(text[1:])
    assert amount is not None
    dollars, cents = divmod(int(amount * 100), 100)
    found = [f"{amount}", f"${amount}", f"$ {amount:,}", f"{amount:,} dollars", f"USD {amount}", f"{amount:,} USD"]
    found += [f"US${amount:,}", f"**{text}**", f"{amount}$"]
    if cents:
        plural = "dollar" if dollars == 1 else "dollars"
        found += [f"{dollars:,} {plural} and {cents} cents", f"{dollars} {plural} {cents} cents"]
    return found


def _distances(text: str, intent: str) -> list[str]:
    number, _, unit = text.replace(",", "").partition(" ")
    unit = unit or "km"
    word, metres = UNIT_WORDS[unit]
    whole = Decimal(number) * metres
    found = [number, f"{number} {unit}", f"{number}{unit}", f"{number} {word}", f"**{number}** {unit}"]
    return [*found, f"{whole:,.0f} m", f"{whole / 1000:f} km", f"{number} {word.replace('er', 're')}"]


def _durations(text: str, intent: str) -> list[str]:
    minutes = int(text.split()[0])
    hours, rest = divmod(minutes, 60)
    found = [f"{minutes}", f"{minutes} min", f"{minutes} minutes", f"{minutes}min", f"**{minutes} minutes**"]
    if hours:
        found += [
            f"{hours} h {rest} min",
            f"{hours} hours and {rest} minutes",
            f"{hours}:{rest:02}",
            f"{hours}h {rest}m",
        ]
        found += [f"{hours} hrs {rest} mins", f"{hours} hours, {rest} minutes"]
    return found


def _dates(text: str, intent: str) -> list[str]:
    date = parse_date(text)
    assert date is not None
    year, month, day, name = date.year, date.month, date.day, MONTHS[date.month - 1]
    suffix = {1: "st", 2: "nd", 3: "rd"}.get(day % 10 if day // 10 != 1 else 0, "th")
    found = [date.isoformat(), f"{name} {day}, {year}", f"{day} {name} {year}", f"{name[:3]} {day}, {year}"]
    found += [f"{name[:3]}. {day}, {year}", f"{name} {day}{suffix}, {year}", f"the {day}{suffix} of {name} {year}"]
    found += [f"{date:%A}, {name} {day}, {year}", f"{date:%A}, {day} {name} {year}", f"{month}/{day}/{year}"]
    found += [
        f"{day:02}.{month:02}.{year}",
        f"{day}.{month}.{year}",
        f"{year}/{month:02}/{day:02}",
        f"{day}-{name[:3]}-{year}",
    ]
    found += [f"{name} {day} {year}", f"{date}T00:00:00", f"{date} 10:30"]
    return [*found, f"{day}/{month}/{year}", f"{day}-{month}-{year}"] if day > 12 else found


def _times(text: str, intent: str) -> list[str]:
    hour, minute = _clock(text)
    half, twelve = ("am", "pm")[hour >= 12], hour % 12 or 12
    found = [f"{hour:02}:{minute:02}", f"{twelve}:{minute:02} {half}", f"{twelve}:{minute:02}{half.upper()}"]
    found += [f"{twelve} {half}", f"{twelve}{half}", f"{twelve} {half[0]}.m."] if not minute else []
    return [*found, "midnight"] if (hour, minute) == (0, 0) else found


def _clock(text: str) -> tuple[int, int]:
    number, _, half = text.partition(" ")
    hour, _, minute = number.partition(":")
    late = 12 if half == "PM" and hour != "12" else 0
    return (int(hour) + late) % 24, int(minute or 0)


def _codes(text: str, intent: str) -> list[str]:
    if " " not in text:
        return [f"#{text}", f"**{text}**", f"number {text}"]
    return [
        text.replace(" ", "-"),
        text.replace(" ", ""),
        text.replace(" ", "."),
        f"({text[:3]}){text[3:]}",
        f"**{text}**",
    ]


def _impossible(question: Question) -> Iterator[str]:
    reasons = ("there is none", "it does not exist", "I could not find it", "this is not possible here")
    spellings = ("N/A", "n/a", "NA", "**N/A**", "`N/A`", '"N/A"', "N.A.")
    for number, frame in enumerate((*FRAMES, *FRAMES)):
        yield frame.replace("{intent}", question.intent).replace("{}", spellings[number % len(spellings)])
    for reason in reasons:
        yield from (
            f"N/A: {reason}",
            f"N/A - {reason}.",
            f"N/A ({reason})",
            f"N/A, because {reason}.",
            f"N/A. {reason}.",
        )
        yield from (f"{reason[0].upper()}{reason[1:]}, so the answer is N/A.", f"{reason}. N/A", f"N/A\n\n- {reason}")


def wrong(question: Question, rng: random.Random) -> Iterator[str]:
    """Yield near misses: another value, two candidates, hedges, denials, and no answer."""
    if question.kind == "N/A":
        yield from _not_impossible(question, rng)
        return
    spelled = [_spellings(one, question) for one in question.wanted]
    value = lambda: _together([rng.choice(one) for one in spelled], question, rng)  # noqa: E731
    rivals = list(_rivals(question, rng))
    for rival in rivals:
        yield rng.choice(FRAMES).replace("{intent}", question.intent).replace("{}", rival)
    for form in SECOND if rivals else ():
        yield form.replace("{v}", value()).replace("{m}", rng.choice(rivals))
    yield from (form.replace("{v}", value()) for form in (*HEDGES, *DENIALS) if question.wanted != (("no",),))
    yield from (
        form.replace("{intent}", question.intent) for form in EMPTY if form != "Yes." or question.kind != "yes/no"
    )
    yield from (rng.choice(FRAMES[:10]).replace("{}", one) for one in question.elsewhere)
    if len(question.wanted) > 1:
        parts = [rng.choice(one) for one in spelled]
        yield from (_together(parts[:number] + parts[number + 1 :], question, rng) for number in range(len(parts)))


def _rivals(question: Question, rng: random.Random) -> Iterator[str]:
    """Yield wrong values of the kind of one part of the answer."""
    others = question.others or (question.elsewhere if question.kind == "name" else ())
    yield from rng.sample(others, min(3, len(others)))
    for one in question.wanted:
        yield from _near(one[0], _kind(one[0], question.intent), {text for part in question.wanted for text in part})


def _near(text: str, kind: str, wanted: set[str]) -> list[str]:
    if kind == "date":
        return _near_dates(text)
    if kind == "time":
        hour, minute = _clock(text)
        return [
            f"{(hour + 1) % 24:02}:{minute:02}",
            f"{(hour + 12) % 24:02}:{minute:02}",
            f"{hour:02}:{(minute + 30) % 60:02}",
        ]
    if kind == "yes/no":
        return ["no" if text == "yes" else "yes"]
    if kind == "code" or (kind == "name" and re.search(r"\d", text)):
        last = max(match.start() for match in re.finditer(r"\d", text))
        near = f"{text[:last]}{(int(text[last]) + 1) % 10}{text[last + 1 :]}"
        return [near] if near not in wanted else []
    if kind == "name":
        return []
    return [near for near in _near_numbers(text, kind) if near not in wanted]


def _near_numbers(text: str, kind: str) -> list[str]:
    number, _, unit = text.lstrip("$").replace(",", "").partition(" ")
    value = Decimal(number)
    step = Decimal(1).scaleb(int(value.as_tuple().exponent))
    sign, unit = text[:1] if text[:1] == "$" else "", f" {unit}" if unit else ""
    near = [f"{sign}{one}{unit}" for one in (value + step, value - step, value + 10 * step) if one >= 0]
    if kind == "number" and value + 1 < len(WORDS):
        near.append(WORDS[int(value) + 1])
    near += [f"{value} miles", f"{value * 2} {unit or 'km'}"] if kind == "distance" else []
    near += [f"€{value}"] if kind == "money" else []
    return [*near, f"{value} hours"] if kind == "duration" else near


def _near_dates(text: str) -> list[str]:
    date = parse_date(text)
    assert date is not None
    day = datetime.timedelta(days=1)
    others = [date + day, date - day, date + 30 * day, date - 365 * day]
    if date.day <= 12 and date.day != date.month:
        others.append(datetime.date(date.year, date.day, date.month))
    return [*(one.strftime("%b %d, %Y") for one in others), others[0].isoformat()]


def _not_impossible(question: Question, rng: random.Random) -> Iterator[str]:
    values = ("$49.99", "26", "046 555 8630", "Jan 5, 2025", "ida@mail.test", "12.5 km", "two")
    for value in values:
        yield from (frame.replace("{intent}", question.intent).replace("{}", value) for frame in FRAMES[::5])
        yield from (f"N/A, or else {value}", f"N/A or {value}", f"{value} or N/A", f"N/A; {value}", f"N/A ({value})")
        yield from (
            f"N/A, but {value}",
            f"- N/A\n- {value}",
            f"N/A: it does not exist. It is {value}.",
            f"{value}. N/A",
        )
        yield from (f"Either N/A or {value}.", f"N/A, unless it is {value}", f"Maybe N/A, maybe {value}")
    yield from ("not N/A", "It is not N/A.", "It isn't N/A", "N/A is wrong.", "The answer is not N/A.", "Maybe N/A.")
    yield from (
        "I do not think that it is N/A.",
        "Nancy",
        "NAACP",
        "an/a",
        "",
        "no",
        "Done.",
        "N/A. Done.",
        "Perhaps N/A",
    )
    yield question.intent
