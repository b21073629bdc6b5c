"""Natural wordings of questions about a statement: with and without question words, and with abbreviations.

They are not the wordings of the task tables. `{}` is the subject: the title of its page, or another name that people
use.
"""

COUNTRY = {
    "capital": ("whats the capital of {}", "{}'s capital city?", "Which city is the seat of government in {}?"),
    "peak": ("tallest mountain in {}", "What mountain is the highest in {}?", "highest peak {}"),
    "anthem": ("what is {}'s anthem called", "national song of {}", "name of the anthem they sing in {}"),
    "tld": ("what domain do websites in {} use", "{} TLD", "Which web domain suffix is for {}?"),
    "phone": ("how do I call {}: country calling code", "intl dialing code {}", "phone prefix for {}"),
    "currency": ("What money do they use in {}?", "{} currency name", "which currency can I pay with in {}"),
    "independence": (
        "When did {} become independent?",
        "independence day and year of {}",
        "{} gained independence when?",
    ),
    "holiday": (
        "When is the national day of {}?",
        "{} national holiday date",
        "what day is the national holiday in {}",
    ),
    "peak_m": (
        "How tall is the highest mountain in {}?",
        "elevation of highest point in {} in m",
        "{} highest point metres",
    ),
    "area": ("How big is {} in sq km?", "size of {} in square km", "{} land and water area total"),
    "population": ("How many people live in {}?", "pop. of {}", "number of inhabitants of {} in 2015"),
    "life": ("How long do people live in {} on average?", "avg life expectancy {}", "life expectancy in {}"),
    "border": (
        "How long are {}'s land borders in total?",
        "total length of land boundaries, {}",
        "km of land border {}",
    ),
    "coast": ("How long is the coast of {}?", "{} coastline km", "length of {}'s shoreline, i.e. its coastline"),
    "roads": ("How many km of roads does {} have?", "road network length {}", "total roads in {}"),
    "rail": ("How many kilometers of railway are in {}?", "rail network of {} length", "{} railways total km"),
    "borders": ("Which countries border {}?", "neighbouring countries of {}", "what are {}'s neighbors by land"),
}
"""By the attribute of a country."""

REVERSE = {
    "capital": ("{} is the capital of which country?", "Which country has {} as its capital?"),
    "peak": ("In which country is {} the highest point?", "{}: highest mountain of what country"),
    "anthem": ("Which nation's anthem is {}?", "What country sings {}?"),
    "tld": ("Which country has the domain {}?", "What country do {} websites belong to?"),
    "phone": ("Which country has the calling code {}?", "dialling code {} is what country"),
}
"""Questions for the country, by what is given."""

PROSE = {
    "Literacy - total population": ("literacy rate in {}", "What share of people in {} can read and write?"),
    "Unemployment rate": ("unemployment in {}", "How many people are out of work in {}, in percent?"),
    "Religions": ("What religions are practiced in {}?", "main religion of {}"),
    "Languages": ("Which languages are spoken in {}?", "official language of {}"),
    "Ethnic groups": ("ethnic makeup of {}", "What ethnic groups live in {}?"),
    "Climate": ("What's the climate like in {}?", "{} climate"),
    "Terrain": ("What does the terrain of {} look like?", "terrain {}"),
    "Natural resources": ("What natural resources does {} have?", "natural resources of {}"),
    "Natural hazards": ("What natural disasters threaten {}?", "natural hazards in {}"),
    "Median age - total": ("median age in {}", "How old is the average person in {} (median age)?"),
    "Birth rate": ("birth rate of {}", "How many births per 1,000 people are there in {}?"),
    "Death rate": ("death rate in {}", "deaths per 1000 people {}"),
    "Infant mortality rate - total": ("infant mortality in {}", "How many infants die in {} per 1,000 live births?"),
    "Total fertility rate": ("fertility rate {}", "How many children are born per woman in {}?"),
    "Population growth rate": ("How fast does the population of {} grow?", "population growth rate {}"),
    "Urbanization - urban population": (
        "What share of {}'s population lives in cities (urban population)?",
        "urban population of {} percent",
    ),
    "Net migration rate": ("net migration {}", "What is the net migration rate of {}?"),
    "Suffrage": ("voting age in {} (suffrage)", "From what age can people vote in {}, i.e. suffrage?"),
    "Legal system": ("What legal system does {} have?", "{} legal system based on"),
    "Administrative divisions": ("How is {} divided administratively?", "administrative divisions of {}"),
    "Government type": ("What type of government does {} have?", "government type of {}"),
    "GDP (purchasing power parity)": ("GDP of {} at purchasing power parity", "{} GDP PPP"),
    "GDP - per capita (PPP)": ("GDP per capita of {}", "What's {}'s GDP per head (PPP)?"),
    "GDP - real growth rate": ("economic growth of {}: real GDP growth rate", "real growth rate of GDP in {}"),
    "Inflation rate (consumer prices)": ("inflation in {}", "What was {}'s inflation rate for consumer prices?"),
    "Industries": ("What industries are there in {}?", "{} main industries"),
    "Agriculture - products": ("What crops and farm products come from {}?", "agricultural products {}"),
    "Exports - commodities": ("What does {} export?", "main export commodities of {}"),
    "Imports - commodities": ("What goods does {} import?", "import commodities of {}"),
    "Exports - partners": ("Who buys the exports of {}?", "main export partners of {}"),
    "Budget - revenues": ("government budget revenues {}", "How large are the budget revenues of {}?"),
    "Debt - external": ("external debt of {}", "How much external debt does {} have?"),
    "Labor force": ("How large is the labor force of {}?", "labour force {}"),
    "Electricity - production": ("How much electricity does {} produce?", "electricity production of {}"),
    "Electricity - consumption": ("electricity consumption of {}", "How much electricity is consumed in {}?"),
    "Crude oil - proved reserves": (
        "proven crude oil reserves of {}",
        "How much crude oil does {} have in the ground?",
    ),
    "Internet users - total": ("number of internet users in {}", "How many people use the internet in {}?"),
    "Broadcast media": ("What TV and radio stations broadcast in {}?", "broadcast media in {}"),
    "Telephones - mobile cellular - total": (
        "How many mobile phones are there in {}?",
        "mobile cellular subscriptions {}",
    ),
    "Airports": ("How many airports does {} have?", "number of airports in {}"),
    "Military branches": ("What branches does the military of {} have?", "armed forces of {}: branches"),
    "Flag description": ("What does the flag of {} look like?", "flag of {} description and meaning of colors"),
    "Constitution": ("When was the constitution of {} adopted?", "{} constitution history"),
    "Irrigated land": ("How much irrigated land is there in {}?", "irrigated land {} sq km"),
    "Illicit drugs": ("drug trafficking in {}", "What role does {} play in the trade of illicit drugs?"),
}
"""By the label of the World Factbook's prose."""

CITY = {
    "population": ("How many people live in {}?", "{} population", "inhabitants of {}"),
    "country": ("Where is {}?", "which country is {} in", "What country does {} belong to?"),
    "zone": ("What time zone is {} in?", "time zone of {}"),
    "latitude": ("latitude and longitude of {}", "coordinates of {}"),
}
AIRPORT = {
    "iata": ("airport code for {}", "What is the 3-letter code of {}?"),
    "icao": ("ICAO for {}", "{} icao code"),
    "elevation": ("How high is {}?", "elevation of {} in ft"),
    "country": ("Where is {}?", "In what country is {}?"),
    "name": ("Which airport has the code {}?", "{} is which airport"),
}
ELEMENT = {
    "symbol": ("what's the symbol for {}", "{} element symbol"),
    "number": ("What number is {} on the periodic table?", "atomic no. of {}"),
    "weight": ("How heavy is {}: atomic weight?", "{} atomic weight"),
    "cas": ("CAS number {}", "What's the CAS no. of {}?"),
    "discoverers": ("Who discovered {}?", "{} discoverer"),
    "name_origin": ("Where does the name {} come from?", "etymology of the name {}"),
    "uses": ("What is {} used for?", "uses of {}"),
    "sources": ("Where is {} found, what are its sources?", "How is {} obtained?"),
}

OTHER_NAMES = {
    "United Arab Emirates": ("the UAE", "the Emirates", "United Arab Emirates"),
    "United States": ("the US", "the USA", "America", "the United States"),
    "South Korea": ("South Korea", "Republic of Korea", "S. Korea"),
    "Trinidad and Tobago": ("Trinidad & Tobago", "Trinidad and Tobago", "Trinidad"),
    "Saint Helena": ("St. Helena", "Saint Helena"),
}
"""Names that people use for a country besides that of its page."""
