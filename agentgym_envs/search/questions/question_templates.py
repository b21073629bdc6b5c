"""Templates for the wording of questions. Most end with their blank, because its filling may be long."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

FRAMES = (
    "What is {}?",
    "Find {}.",
    "Please find {}.",
    "Look up {}.",
    "Tell me {}.",
    "State {}.",
    "Give {}.",
    "Can you find {}?",
    "I am looking for {}.",
    "I need to know {}.",
    "Work out {}.",
    "Determine {}.",
)
"""Frames around a noun phrase for the answer."""
FRAMES_2015 = (
    "What was {}?",
    *FRAMES[1:],
)
"""Frames for attributes that change over the years."""

COUNTRY: Mapping[str, tuple[Sequence[str], Sequence[str]]] = {
    "capital": (
        ("the capital of {}", "the capital city of {}", "the name of the capital of {}"),
        (
            "Which city is the capital of {}?",
            "What city serves as the capital of {}?",
            "What is the name of the capital of {}?",
        ),
    ),
    "peak": (
        (
            "the highest point of {}",
            "the highest point in {}",
            "the highest natural point in {}",
            "the name of the highest point in {}",
        ),
        (
            "Which peak is the highest point of {}?",
            "What is the name of the highest natural point in {}?",
            "What is the name of the highest point of {}?",
        ),
    ),
    "anthem": (
        (
            "the title of the national anthem of {}",
            "the name of the national anthem of {}",
            "the national anthem of {}",
        ),
        (
            "Which song is the national anthem of {}?",
            "What is the title of the anthem of {}?",
            "What is the name of the anthem of {}?",
        ),
    ),
    "tld": (
        (
            "the internet country code of {}",
            "the country-code top-level domain of {}",
            "the internet domain ending of {}",
        ),
        (
            "Which top-level domain belongs to {}?",
            "What is the internet suffix of {}?",
            "Which country code do web addresses have in {}?",
        ),
    ),
    "phone": (
        ("the international dialling code of {}", "the telephone country code of {}", "the country calling code of {}"),
        (
            "Which calling code must be dialled to phone {}?",
            "With which international prefix does one telephone {}?",
            "What is the international telephone code of {}?",
        ),
    ),
    "currency": (
        ("the currency of {}", "the name of the currency of {}", "the money used in {}", "the unit of money of {}"),
        (
            "Which currency is used in {}?",
            "In what currency does one pay in {}?",
            "What is the name of the money of {}?",
        ),
    ),
    "independence": (
        (
            "the date of independence of {}",
            "the day, month and year of the independence of {}",
            "the exact date of independence of {}",
        ),
        (
            "On what date did independence come to {}?",
            "What is the date of independence of {}?",
            "Which day marks the independence, year included, of {}?",
        ),
    ),
    "holiday": (
        (
            "the day and month of the national holiday of {}",
            "the date of the national holiday of {}",
            "the calendar date of the national day of {}",
        ),
        (
            "On which day of the year is the national holiday of {}?",
            "On what date is the national holiday of {}?",
            "As of 2015, on which date was the national holiday of {}?",
        ),
    ),
    "peak_m": (
        (
            "the height in metres of the highest point of {}",
            "the elevation in metres of the highest point in {}",
            "the elevation in metres of the highest place in {}",
        ),
        (
            "How many metres high is the highest point of {}?",
            "How many metres above sea level is the highest point of {}?",
            "How high in metres is the highest point in {}?",
        ),
    ),
    "area": (
        (
            "the total area in square kilometres of {}",
            "the area, land and water together, in square kilometres of {}",
            "the total size in square kilometres of {}",
        ),
        (
            "How many square kilometres is the total area of {}?",
            "How large in square kilometres is the total area of {}?",
            "How many square kilometres large is the territory of {}?",
        ),
    ),
    "population": (
        (
            "the 2015 population of {}",
            "the number of people who lived in 2015 in {}",
            "the estimated population in 2015 of {}",
        ),
        (
            "How many people lived in {} in 2015?",
            "In 2015, what was the population of {}?",
            "In 2015, how many inhabitants were there in {}?",
        ),
    ),
    "life": (
        (
            "the life expectancy at birth in years, as of 2015, in {}",
            "the average life expectancy at birth (2015) in {}",
            "the 2015 life expectancy in years in {}",
        ),
        (
            "As of 2015, how many years was the life expectancy at birth in {}?",
            "In 2015, what was the life expectancy at birth in {}?",
            "In 2015, how many years could a newborn expect to live in {}?",
        ),
    ),
    "border": (
        (
            "the total length in kilometres of the land boundaries of {}",
            "the length in kilometres of all land borders of {}",
            "the combined length in kilometres of the land borders of {}",
        ),
        (
            "What is the total length in kilometres of the land borders of {}?",
            "How long in kilometres, all together, are the land borders of {}?",
            "What is the total length of the land boundaries of {}?",
        ),
    ),
    "coast": (
        (
            "the length in kilometres of the coastline of {}",
            "the coastline in kilometres of {}",
            "the length of the coast, in kilometres, of {}",
        ),
        (
            "How many kilometres long is the coastline of {}?",
            "How long in kilometres is the coast of {}?",
            "What is the length of the coastline of {}?",
        ),
    ),
    "roads": (
        (
            "the total length of roads in kilometres, according to the 2015 profile, of {}",
            "the length in kilometres of the road network, as of 2015, of {}",
            "the 2015 total of kilometres of roads in {}",
        ),
        (
            "As of 2015, how many kilometres of roads were there in {}?",
            "According to the 2015 profile, how many kilometres of roads are there in {}?",
            "As of 2015, how long in kilometres was the road network of {}?",
        ),
    ),
    "rail": (
        (
            "the total length of railways in kilometres, according to the 2015 profile, of {}",
            "the length in kilometres of the rail network, as of 2015, of {}",
            "the 2015 total of kilometres of railways in {}",
        ),
        (
            "As of 2015, how many kilometres of railways were there in {}?",
            "According to the 2015 profile, how many kilometres of railways are there in {}?",
            "As of 2015, how long in kilometres was the railway network of {}?",
        ),
    ),
}
"""Noun phrases and whole questions for each attribute of a country."""
AIRPORT: Mapping[str, tuple[Sequence[str], Sequence[str]]] = {
    "city": (
        ("the city served by {}", "the name of the place that is served by {}", "the city or town served by {}"),
        ("Which city is served by {}?", "What is the city served by {}?", "Which place has as its airport {}?"),
    ),
    "iata": (
        ("the IATA code of {}", "the three-letter IATA code of {}", "the three-letter code of {}"),
        (
            "Which IATA code belongs to {}?",
            "Which three letters stand on tickets to {}?",
            "Which three-letter code has IATA given to {}?",
        ),
    ),
    "icao": (
        ("the ICAO code of {}", "the ICAO location indicator of {}", "the code that ICAO uses for {}"),
        ("Which ICAO code belongs to {}?", "Which ICAO code do pilots use for {}?", "Which code has ICAO given to {}?"),
    ),
    "elevation": (
        (
            "the elevation in feet of {}",
            "the height above sea level in feet of {}",
            "the field elevation in feet of {}",
        ),
        (
            "How many feet above sea level is {}?",
            "How high in feet above the sea is {}?",
            "At how many feet of elevation lies {}?",
        ),
    ),
}
ELEMENT: Mapping[str, tuple[Sequence[str], Sequence[str]]] = {
    "symbol": (
        ("the chemical symbol of {}", "the symbol of the element {}", "the symbol in the periodic table of {}"),
        (
            "Which symbol has the element {}?",
            "Which letter or letters stand for the element {}?",
            "How do chemists abbreviate {}?",
        ),
    ),
    "number": (
        ("the atomic number of {}", "the atomic number of the element {}", "the number of protons in an atom of {}"),
        (
            "Which atomic number belongs to {}?",
            "How many protons are in the nucleus of an atom of {}?",
            "At what place in the periodic table is {}?",
        ),
    ),
    "weight": (
        (
            "the standard atomic weight of {}",
            "the atomic weight of the element {}",
            "the standard atomic weight of the element {}",
        ),
        (
            "Which standard atomic weight belongs to {}?",
            "How large is the standard atomic weight of {}?",
            "Which atomic weight is given for {}?",
        ),
    ),
    "cas": (
        (
            "the CAS registry number of {}",
            "the CAS number of the element {}",
            "the Chemical Abstracts Service number of {}",
        ),
        (
            "Which CAS registry number belongs to {}?",
            "Under which CAS number is one to look for {}?",
            "Which CAS number belongs to the element {}?",
        ),
    ),
}
CHANGES = frozenset(["population", "life", "roads", "rail"])
"""Attributes whose question refers to 2015."""

CITY_COUNTRY = (
    "the country in which {} lies",
    "the country where {} is located",
    "the country where {} lies",
    "the country in which {} is situated",
    "the country that {} is a part of",
    "the country to which {} belongs",
    "the country that is home to {}",
    "the country in which one finds {}",
    "the country whose territory includes {}",
    "the state in whose territory {} lies",
)
CITY = ("{}", "{}", "the place called {}", "the place {}", "the populated place {}")
AIRPORT_COUNTRY = (
    "the country where {} is located",
    "the country in which {} lies",
    "the country in which {} is situated",
    "the country that {} is in",
    "the country that is home to {}",
    "the country that one enters on landing at {}",
    "the country on whose soil {} stands",
    "the country where one lands at {}",
)
NEIGHBOUR = (
    "the country that lies across the longest land border of {}",
    "the neighbouring country that has the longest land border with {}",
    "the country that has the longest common land border with {}",
    "the country beyond the longest land border of {}",
    "the country on the other side of the longest land border of {}",
    "the neighbour that shares the most kilometres of land border with {}",
    "the country that, of all neighbours, has the longest land border with {}",
)
MORE: Mapping[str, Sequence[str]] = {
    "area": ("the larger total area", "the greater total area", "more square kilometres of total area"),
    "population": ("the larger population in 2015", "more inhabitants in 2015", "the greater number of people in 2015"),
    "coast": ("the longer coastline", "the longer coast", "more kilometres of coastline"),
    "peak_m": ("the higher highest point", "the highest point that is higher", "the loftier highest point"),
    "border": ("the longer land boundaries in all", "more kilometres of land border in all"),
}
"""Phrases for the quantities by which two countries are compared."""
COMPARED_COUNTRIES = (
    "whichever has {more}: {a} or {b}",
    "the one with {more} out of {a} and {b}",
    "whichever of {a} and {b} has {more}",
    "the one of these two that has {more}: {a} and {b}",
)
COMPARED_CITIES = (
    "whichever country has {more}: the one where {a} lies or the one where {b} lies",
    "the country with {more} out of the two in which {a} and {b} lie",
    "that country which has {more}, of the two to which {a} and {b} belong",
    "the country which has {more}: that of {a} or that of {b}",
    "the one with {more} of these two countries: the one that {a} is in and the one that {b} is in",
)
HIGHER_AIRPORT = (
    "the country of the airport that lies higher above sea level: {a} or {b}",
    "the country in which the higher one of two airports lies, which are {a} and {b}",
    "the country where one lands at the higher of {a} and {b}",
    "the country that has whichever airport has the greater elevation: {a} or {b}",
)
MIDDLE_CITY = (
    "the country in which the second most populous of these places lies: {a}, {b} and {c}",
    "the country where the middle one by population of {a}, {b} and {c} lies",
    "the country to which the second largest by inhabitants of {a}, {b} and {c} belongs",
    "the country that is home to the one with neither the most nor the fewest people of {a}, {b} and {c}",
)
MIDDLE_AIRPORT = (
    "the country in which the second highest of these airports lies: {a}, {b} and {c}",
    "the country where the middle one by elevation of {a}, {b} and {c} is located",
    "the country of the airport that is neither the highest nor the lowest of {a}, {b} and {c}",
    "the country that has the second highest above sea level of three airports: {a}, {b} and {c}",
)
CITY_SUM = (
    "How many inhabitants do these places have together: {a}, {b}, {c} and {d}?",
    "What is the combined population of {a}, {b}, {c} and {d}?",
    "How many people live in {a}, {b}, {c} and {d} taken together?",
    "Add up the populations of {a}, {b}, {c} and {d}.",
    "Find the sum of the populations of {a}, {b}, {c} and {d}.",
    "What do the populations of {a}, {b}, {c} and {d} add up to?",
    "If {a}, {b}, {c} and {d} were one place, how many inhabitants would it have?",
    "Work out how many people {a}, {b}, {c} and {d} have in all.",
    "Give the total population of four places: {a}, {b}, {c} and {d}.",
    "Tell me the joint population of {a}, {b}, {c} and {d}.",
    "What is the total of inhabitants when {a}, {b}, {c} and {d} are counted together?",
)
COUNTRY_SUM: Mapping[str, Sequence[str]] = {
    "area": (
        "What is the combined total area in square kilometres of {a}, {b}, {c} and {d}?",
        "How many square kilometres do {a}, {b}, {c} and {d} cover together?",
        "Add up the total areas in square kilometres of {a}, {b}, {c} and {d}.",
        "If {a}, {b}, {c} and {d} were one country, how many square kilometres would its total area be?",
        "Find the sum of the total areas, in square kilometres, of {a}, {b}, {c} and {d}.",
        "Taken together, how large in square kilometres are {a}, {b}, {c} and {d}?",
        "Work out the joint total area in square kilometres of {a}, {b}, {c} and {d}.",
    ),
    "population": (
        "How many people lived in {a}, {b}, {c} and {d} together in 2015?",
        "What was the combined population of {a}, {b}, {c} and {d} in 2015?",
        "Add up the 2015 populations of {a}, {b}, {c} and {d}.",
        "If {a}, {b}, {c} and {d} had been one country, how many inhabitants would it have had in 2015?",
        "Find the sum of the 2015 populations of {a}, {b}, {c} and {d}.",
        "In 2015, how many inhabitants did {a}, {b}, {c} and {d} have taken together?",
        "Work out the joint population of {a}, {b}, {c} and {d} in 2015.",
    ),
}
NEIGHBOUR_COUNT = (
    "How many different countries share a land border with at least one of {all}, not counting these themselves?",
    "Leaving out these themselves, how many countries border {any} by land?",
    "Count the different land neighbours of {all}, without these themselves.",
    "How many countries other than these have a land border with {any}?",
    "Other than these themselves, how many countries are land neighbours of {any}?",
    "Find the number of different countries that border {any} by land, these not counted.",
)
COUNT_IN = (
    "How many of these five places lie in {where}: {all}?",
    "How many of these five belong to {where}: {all}?",
    "Count those of {all} which lie in {where}.",
    "Of {all}, how many are in {where}?",
    "Find out how many of the following are in {where}: {all}.",
    "Some, all or none of {all} lie in {where}. How many do?",
)
COUNT_ABOVE = (
    "How many of these five airports lie more than {feet} feet above sea level: {all}?",
    "How many of {all} have an elevation of more than {feet} feet?",
    "Count those of {all} which lie higher than {feet} feet.",
    "Of {all}, how many have an elevation above {feet} feet?",
    "Find out how many of these airports are more than {feet} feet above the sea: {all}.",
)
HIGHER_BY = (
    "By how many feet does {a} lie higher above sea level than {b}?",
    "How many feet higher than {b} is {a}?",
    "How much higher, in feet, is {a} than {b}?",
    "Find the difference in elevation, in feet, between {a} and {b}.",
    "What is the difference in feet between the elevations of {a} and {b}?",
    "{a} lies higher than {b}. By how many feet?",
    "A plane goes from {b} to {a}. How many feet higher is it on the ground after landing?",
    "By how many feet does the elevation of {b} fall short of that of {a}?",
    "How many feet lower than {a} is {b}?",
    "Work out by how many feet {a} lies above {b}.",
    "Subtract the elevation of {b} from that of {a}, both in feet. What is left?",
)
MORE_PEOPLE = (
    "How many more people live in {a} than in {b}?",
    "More people live in {a} than in {b}. How many more?",
    "By how many people does the population of {a} exceed that of {b}?",
    "Find the difference between the population of {a} and that of {b}.",
    "How many fewer inhabitants does {b} have than {a}?",
    "Subtract the population of {b} from that of {a}. What is left?",
    "Work out how many more inhabitants {a} has than {b}.",
    "What is the difference in population between {a} and {b}?",
    "I need to know how many people more there are in {a} than in {b}.",
)
COUNTRY_GAP: Mapping[str, Sequence[str]] = {
    "peak_m": (
        "By how many metres is the highest point of {a} higher than that of {b}?",
        "Find the difference in metres between the highest point of {a} and that of {b}.",
        "What is the difference in height, in metres, between the highest point of {a} and that of {b}?",
        "How many metres higher is the highest point of {a} than the highest point of {b}?",
    ),
    "population": (
        "In 2015, by how many people did the population of {a} exceed that of {b}?",
        "Find the difference between the 2015 population of {a} and that of {b}.",
        "What was the difference in population, in 2015, between {a} and {b}?",
        "In 2015, how many more inhabitants than {b} were there in {a}?",
    ),
    "area": (
        "By how many square kilometres is the total area of {a} larger than that of {b}?",
        "Find the difference in square kilometres between the total area of {a} and that of {b}.",
        "What is the difference in total area, in square kilometres, between {a} and {b}?",
        "How many square kilometres larger, by total area, is {a} than {b}?",
    ),
}
CLUE: Mapping[str, Sequence[str]] = {
    "capital": (
        "the country whose capital is {}",
        "the country that has as its capital {}",
        "the country with the capital {}",
    ),
    "peak": (
        "the country whose highest point is {}",
        "the country that has as its highest point {}",
        "the country where the highest point is {}",
    ),
    "anthem": (
        'the country whose national anthem is "{}"',
        'the country with the anthem "{}"',
        'the country where the anthem is "{}"',
    ),
    "currency": (
        "the country whose currency is the {}",
        "the country where people pay with the {}",
        "the country that uses the {} as its money",
    ),
}
"""Phrases that identify a country without its name."""
NAMESAKE = (
    "How many inhabitants does the {name} in {where} have?",
    "What is the population of the {name} in {where}?",
    "Several places are called {name}. What is the population of the one in {where}?",
    "There is more than one {name}. How many people live in the one in {where}?",
    "Find the population of {name}: not any of that name, but the one in {where}.",
    "How many people live in that {name} which lies in {where}?",
    "Of all the places named {name}, one is in {where}. How many inhabitants does it have?",
    "Tell me the number of inhabitants of the {name} that is in {where}.",
)
NAMESAKE_GAP = (
    "How many more inhabitants does the {name} in {a} have than the {name} in {b}?",
    "One {name} lies in {a}, another in {b}. How many more people does the first have?",
    "By how many inhabitants is the {name} in {a} larger than its namesake in {b}?",
    "There is one {name} in {a}, and a smaller one in {b}. By how many people do they differ?",
    "Find how many more people live in the {name} of {a} than in the {name} of {b}.",
)
