"""Manual decisions for scripts/make_search_corpus.py: names, and values of the profiles that are not answers."""

import re

# ruff: noqa: SIM905

NAMES = {
    "CD": "Democratic Republic of the Congo",
    "CG": "Republic of the Congo",
    "MO": "Macau",
    "NL": "Netherlands",
    "PS": "Palestinian Territories",
    "TL": "Timor-Leste",
    "VA": "Vatican City",
    "CZ": "Czech Republic",
}
"""Names of countries that differ from GeoNames."""
ALIASES = {
    "AE": ["UAE"],
    "BO": ["Plurinational State of Bolivia"],
    "CD": ["DRC", "Congo (Kinshasa)", "DR Congo", "Congo-Kinshasa", "Zaire"],
    "CG": ["Congo (Brazzaville)", "Congo-Brazzaville"],
    "CI": ["Cote d'Ivoire", "Côte d'Ivoire"],
    "CV": ["Cape Verde"],
    "CZ": ["Czechia"],
    "DO": ["The Dominican"],
    "GB": ["UK", "Great Britain", "Britain"],
    "KP": ["Korea, North", "DPRK"],
    "KR": ["Korea, South", "Republic of Korea"],
    "MK": ["Macedonia", "FYROM"],
    "MM": ["Burma"],
    "NL": ["Holland"],
    "PS": ["Palestine", "West Bank and Gaza Strip"],
    "RU": ["Russian Federation"],
    "ST": ["São Tomé and Príncipe"],
    "SZ": ["Swaziland"],
    "TL": ["East Timor"],
    "TR": ["Türkiye"],
    "US": ["US", "USA", "America"],
    "VA": ["Holy See", "Holy See (Vatican City)", "The Vatican"],
}
WITH_ARTICLE = frozenset("AE BS CF CG CD CZ DO GB GM KM MH MV NL PH SB SC US PS FK FO KY TC VG VI MP IM CK".split())
"""Countries whose names have an article in a sentence."""
DISPUTED = frozenset(["EH", "PS", "TW", "XK"])
"""Countries without questions, because their status is disputed; pages call them places."""
NOT_ASKED = frozenset(["IL", "KP", "VA"])
"""Other countries without questions: borders or capital are disputed, or there are too few facts."""
DISPUTED_ZONES = ("Asia/Famagusta", "Europe/Simferopol")
"""Time zones without questions about their cities: Northern Cyprus, the Crimea."""
NO_CAPITAL = frozenset("BI BJ BO CI GQ ID KI LK MM NR PW SZ TZ ZA".split())
"""Countries with several capitals, or another one since 2015; the capital is on the page but is not an answer."""
NO_CURRENCY = frozenset("BG EE HR LT LV MR ST TV VE ZM ZW".split())
"""Countries whose currency was outdated in the profile, or was replaced or renamed since 2015."""
NO_ANTHEM = frozenset("AF AU CA GB IQ LY MR NP NZ SY TO ZW".split())
"""Countries whose anthem was outdated or replaced since, is one of several, or has a garbled title."""
NO_HOLIDAY = frozenset("AF IQ NL LU SY VA".split())
NO_INDEPENDENCE = frozenset("NZ CU MX".split())
PEAKS = {
    "CD": ["Pic Marguerite", "Margherita Peak", "Mount Stanley", "Mont Ngaliema"],
    "ES": ["Pico de Teide", "Teide", "Mount Teide", "Pico del Teide"],
    "FI": ["Halti", "Haltia", "Haltitunturi", "Haltiatunturi"],
    "IT": ["Mont Blanc de Courmayeur", "Monte Bianco di Courmayeur", "Mont Blanc", "Monte Bianco"],
    "MX": ["Pico de Orizaba", "Volcan Pico de Orizaba", "Citlaltepetl", "Citlaltépetl"],
    "NL": ["Mount Scenery"],
    "PT": ["Ponta do Pico", "Pico Alto", "Mount Pico", "Pico"],
    "UG": ["Margherita Peak", "Mount Stanley"],
    "CF": ["Mont Ngaoui", "Mount Ngaoui"],
    "IQ": None,
}
"""Highest points whose text needs its own parsing; None if not trusted."""
GENERIC_PEAK = "Mount Mt. Monte Mont Cerro Pico Nevado Jabal Jebel Gora Volcan Volcán Phnum Phu Doi Pic".split()
SINGULAR = {
    "baht": "baht", "colones": "colon", "emalangeni": "lilangeni", "hryvnia": "hryvnia", "kips": "kip",
    "konvertibilna markas": "convertible mark", "koruny": "koruna", "kroner": "krone", "kronor": "krona",
    "kronur": "krona", "lei": "leu", "leke": "lek", "leva": "lev", "maloti": "loti", "meticais": "metical",
    "Communaute Financiere Africaine francs": "West African CFA franc",
    "Cooperation Financiere en Afrique Centrale francs": "Central African CFA franc",
    "new Israeli shekels": "new Israeli shekel", "quetzales": "quetzal", "zlotych": "zloty",
}  # fmt: skip
ACCENTS = {
    name: accented
    for accented, name in (
        ("Mu isamaa, mu õnn ja rõõm", "Mu isamaa, mu onn ja room"),
        ("Amhrán na bhFiann", "Amhran na bhFiann"), ("La Brabançonne", "La Brabanconne"),
        ("Canción Patriótica", "Cancion Patriotica"), ("Cântico da Liberdade", "Cantico da Liberdade"),
        ("O Cameroun, Berceau de nos Ancêtres", "O Cameroun, Berceau de nos Ancetres"),
        ("Kde domov můj?", "Kde domov muj?"), ("Liberté", "Liberte"), ("Lijepa naša domovino", "Lijepa nasa domovino"),
        ("Esta é a Nossa Pátria Bem Amada", "Esta e a Nossa Patria Bem Amada"), ("Lofsöngur", "Lofsongur"),
        ("Tautiška giesmė", "Tautiska giesme"), ("Dievs, svētī Latviju!", "Dievs, sveti Latviju!"),
        ("Hymne Chérifien", "Hymne Cherifien"), ("Limba noastră", "Limba noastra"), ("Himno Istmeño", "Himno Istmeno"),
        ("Mazurek Dąbrowskiego", "Mazurek Dabrowskiego"), ("Dąbrowski's Mazurka", "Dabrowski's Mazurka"),
        ("A Portuguesa", "A Portugesa"), ("Paraguayos, República o muerte!", "Paraguayos, Republica o muerte!"),
        ("Deșteaptă-te, române!", "Desteapta-te romane!"), ("Bože pravde", "Boze pravde"), ("Pátria", "Patria"),
        ("Nad Tatrou sa blýska", "Nad Tatrou sa blyska"), ("Independência total", "Independencia total"),
        ("Salut à toi, pays de nos aïeux", "Salut a toi, pays de nos aieux"), ("İstiklal Marşı", "Istiklal Marsi"),
        ("Tiến quân ca", "Tien quan ca"), ("La Nigérienne", "La Nigerienne"), ("Pátria Amada", "Patria Amada"),
        ("Møllehøj", "Mollehoj"), ("Ejer Bavnehøj", "Ejer Bavnehoj"), ("Galdhøpiggen", "Galdhopiggen"),
        ("Maglić", "Maglic"), ("Pico Cristóbal Colón", "Pico Cristobal Colon"), ("Cerro Chirripó", "Cerro Chirripo"),
        ("Sněžka", "Snezka"), ("Suur Munamägi", "Suur Munamagi"), ("Pico Basilé", "Pico Basile"), ("Kékes", "Kekes"),
        ("Volcán Tajumulco", "Volcan Tajumulco"), ("Chaîne de la Selle", "Chaine de la Selle"),
        ("Hvannadalshnúkur", "Hvannadalshnukur"), ("Aukštojas", "Aukstojas"), ("Gaiziņa Kalns", "Gaizina Kalns"),
        ("Dealul Bălănești", "Dealul Balanesti"), ("Königstein", "Konigstein"), ("Mogotón", "Mogoton"),
        ("Volcán Barú", "Volcan Baru"), ("Nevado Huascarán", "Nevado Huascaran"), ("Cerro Peró", "Cerro Pero"),
        ("Midžor", "Midzor"), ("Gerlachovský Štít", "Gerlachovsky Stit"), ("Pico de São Tomé", "Pico de Sao Tome"),
        ("La Soufrière", "La Soufriere"), ("Pico Bolívar", "Pico Bolivar"),
    )
}  # fmt: skip
"""Accented spellings of titles and highest points, which the profiles have in plain ASCII (and a misprint)."""
ANTHEMS = {"TH": ["Phleng Chat"], "NL": ["Wilhelmus"], "DE": ["Deutschlandlied"], "CF": ["La Renaissance"]}
"""Further names of anthems."""
GENERIC_ANTHEM = re.compile("National Anthem|Himno Nacional|Hino Nacional|Inno Nazionale|Bundeshymne|Drzavna himna")
"""Titles that only mean "national anthem": they are not answers and have no page."""
QUESTION_WORDS = frozenset(
    "anthem area birth border boundaries boundary calling capital city coast coastline code country currency date day "
    "dialling domain elevation expectancy height high highest holiday in independence inhabitants internet is lake "
    "land length life lived lives main money name national of peak people point population rail railway railways road "
    "roads size square state telephone the time total what which year years".split()
)
"""Towns with names of only these words ("Independence", "Lake Country") have no page, since any query finds them."""
CURRENCY_ACCENTS = {
    "krona": "króna", "cordoba": "córdoba", "guarani": "guaraní", "zloty": "złoty", "colon": "colón", "dong": "đồng",
}  # fmt: skip
CURRENCIES = {
    "CN": ["renminbi", "yuan", "Chinese yuan"],
    "GB": ["pound sterling", "sterling", "pound"],
    "PE": ["sol", "Peruvian sol"],
}
"""Further names of currencies."""
NO_YEAR = frozenset("Nd Rn Nh".split())
"""Elements whose year of discovery is wrong or contested."""
MONTHS = "January February March April May June July August September October November December".split()
DATE = rf"(\d{{1,2}}) ({'|'.join(MONTHS)})"
BORDER_NAMES = {"US": "US", "UK": "GB", "UAE": "AE", "The Gambia": "GM", "Holy See": "VA", "West Bank": "PS"}
BORDER_NAMES |= {"Gaza Strip": "PS", "Czech Republic": "CZ", "Macau": "MO", "Hong Kong": "HK"}
CONTINENTS = {
    "AF": "Africa", "AN": "Antarctica", "AS": "Asia", "EU": "Europe", "NA": "North America", "OC": "Oceania",
    "SA": "South America",
}  # fmt: skip
OTHER_TITLES = {
    "cc": "Curacao", "ee": "European Union", "oo": "Southern Ocean", "sk": "Sint Maarten", "xo": "Indian Ocean",
    "xq": "Arctic Ocean", "xx": "World", "zh": "Atlantic Ocean", "zn": "Pacific Ocean",
    "um": "United States Pacific Island Wildlife Refuges",
}  # fmt: skip
HARD_TO_FIND = frozenset(
    map(
        int,
        "741240 1254675 1298482 1570357 1853303 1864808 2270981 2354340 2830035 3946820 4733624 5326032 5520076 "
        "5713587 13527315 13589156".split(),
    )
)
"""Cities (GeoNames numbers) whose name, such as "Of" or "Spring", finds other pages before their own."""
PLAIN_NAME = re.compile(r"[^\W\d_]+(?:[ '’.\-]+[^\W\d_]+)*\.?")
ATTRIBUTES = (
    "capital peak anthem tld phone currency independence holiday peak_m area population coast border roads rail life"
).split()
DISSOLVED = {"AN": "dissolved in 2010", "CS": "dissolved in 2006"}
"""Countries in GeoNames' table that do not exist any more."""
ELEMENT_SYMBOLS = {
    "carbon": "C", "deuterium": "H", "iron": "Fe", "cobalt": "Co", "cobolt": "Co", "nickel": "Ni", "zinc": "Zn",
    "lead": "Pb", "bismuth": "Bi", "chromium": "Cr", "calcium": "Ca", "radium": "Ra", "thorium": "Th", "uranium": "U",
    "plutonium": "Pu", "americium": "Am", "curium": "Cm", "berkelium": "Bk", "californium": "Cf", "nitrogen": "N",
    "oxygen": "O",
}  # fmt: skip
"""Symbols of the elements that the texts name with a mass number."""
SPELLING = {
    "Derey": "Perey", "Ramsey": "Ramsay", "Langet": "Langlet", "Fredrich Soddy": "Frederick Soddy",
    "Fredrich": "Friedrich", "Priestly": "Priestley", "Humphrey Davy": "Humphry Davy", "Kirchoff": "Kirchhoff",
    "Gustov": "Gustav", "Hatchet": "Hatchett", "Tenant": "Tennant", "Fourcory": "Fourcroy",
    "Collet-Descoltils": "Collet-Descotils", "Aver von": "Auer von", "Tompson": "Thompson", "Wohl": "Wahl",
    "Émillo": "Emilio", "Welhelm": "Wilhelm", "Gleen": "Glenn", "Sefstron": "Sefström", "Wohler": "Wöhler",
    "platinumpy": "platinum", "lanthanumpy": "lanthanum", "cobolt": "cobalt", "bombardng": "bombarding",
    "homium": "holmium",
}  # fmt: skip
"""Misspelt words of the texts about elements, and the right ones."""
FALSE_SENTENCES = (
    "bismuth-204",  # it was made from bismuth-209
    "Discovered in 1798 by Klaproth and Hope",  # strontium: Crawford in 1790
    "Discovered in 1828 by Friedrich Wohler",  # yttrium: Gadolin in 1789 or 1794
    "The name is temporary IUPAC nomenclature",  # lawrencium has had its name since 1971
    "Alternative name Unnilunium has been proposed",
    "Unnilbium has been proposed",
    "Also known as Hahnium",
)
"""Parts of sentences about elements that are false or outdated."""
WRONG_DISCOVERERS = {"Pt": "Scaliger died in 1558; the description names Antonio de Ulloa"}
"""Elements whose table names the wrong discoverer."""
