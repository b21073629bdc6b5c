"""Subjects of projects: possible names, the language, things and parts."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Idea:
    """A subject of a project. `things` are nouns with a regular plural, `parts` are names of modules."""

    names: tuple[str, ...]
    language: str
    summary: str
    things: tuple[str, ...]
    parts: tuple[str, ...]
    topics: tuple[str, ...]


def _idea(names: str, language: str, summary: str, things: str, parts: str, topics: str) -> Idea:
    words = (tuple(text.split()) for text in (names, things, parts, topics))
    split_names, split_things, split_parts, split_topics = words
    return Idea(split_names, language, summary, split_things, split_parts, split_topics)


IDEAS = (
    _idea("tidewatch harbour-clock ebbline", "python", "Tide tables and harbour warnings for small boats.",
          "tide harbour gauge warning vessel", "forecast alerts importer chart stations",
          "sailing weather forecasting"),
    _idea("seedbank sproutlog bedplanner", "python", "Plan garden beds, and remember what grew where.",
          "bed seed plant harvest season", "planner rotation calendar inventory reports", "gardening planning home"),
    _idea("larder-ledger pantryline stockpot", "javascript", "Know what is in the pantry before you go shopping.",
          "jar recipe ingredient list drawer", "scanner expiry shopping units storage",
          "cooking household offline-first"),
    _idea("routecast waymark trailfinder", "rust", "Route planning on foot and by bicycle, without a server.",
          "route waypoint path tile segment", "graph elevation routing tiles export", "maps routing outdoors"),
    _idea("inkwell-notes marginalia scribeo", "javascript", "Plain-text notes in a browser, kept on your own disk.",
          "note tag notebook link draft", "editor search sync backlinks export", "notes markdown offline-first"),
    _idea("queuefold jobloom taskmill", "go", "A small job queue that needs nothing but a disk.",
          "job worker queue result attempt", "scheduler journal dispatch limits dashboard",
          "queue background-jobs cli"),
    _idea("birdlist featherlog wingcount", "python", "Count birds with your neighbours, and see who arrives when.",
          "bird sighting observer hide migration", "checklist seasons importer maps reports",
          "nature citizen-science data"),
    _idea("pennytree coinleaf ledgerly", "python", "Household book-keeping in text files, with double entry.",
          "account posting budget receipt transfer", "parser balance reports importer rules",
          "finance accounting plain-text"),
    _idea("lumen-grid lampkeeper glowmesh", "go", "Control the lights of a house from one small box.",
          "lamp room scene sensor button", "bridge schedule discovery rules telemetry", "home-automation iot lighting"),
    _idea("stavewise notewright barline", "javascript", "Write sheet music by typing, hear it at once.",
          "score staff bar chord voice", "engraver playback keyboard layout export", "music notation audio"),
    _idea("chessmate-trainer knightschool pawnshop", "rust", "Chess puzzles made from your own lost games.",
          "game puzzle move opening player", "engine analysis importer rating trainer", "chess games training"),
    _idea("papertrail-ocr scanfold pagesmith", "python", "Turn scanned pages into text that can be searched.",
          "page document scan column glyph", "cleaning layout recognition search export", "ocr documents archives"),
    _idea("tinyfleet caravan-ops dockhand", "go", "Deploy a handful of services to a handful of machines.",
          "service host release secret probe", "rollout health inventory proxy audit", "devops deployment cli"),
    _idea("polite-crawler softspider pageflock", "python", "A crawler that reads the house rules before it enters.",
          "page link host sitemap visit", "fetcher robots frontier extract throttle", "crawler web http"),
    _idea("quartz-db slatestore pebblebase", "rust", "An embedded key-value store with snapshots.",
          "key record snapshot segment page", "storage compaction journal cache cursor", "database storage embedded"),
    _idea("pixelquilt patchwork-ui tessella", "javascript", "A set of components for calm user interfaces.",
          "button dialog theme table icon", "tokens forms overlay grid a11y", "ui components design-system"),
    _idea("stormglass-sim cloudbox rainmodel", "c", "A weather model small enough for one laptop.",
          "cell cloud front grid profile", "advection radiation solver output boundary", "simulation weather science"),
    _idea("clocktower beatkeeper tickwise", "c", "A real-time scheduler for very small boards.",
          "task timer interrupt slot deadline", "kernel queue clock trace port", "embedded real-time rtos"),
    _idea("choirbook setlist-club second-verse", "javascript", "Rehearsals and set lists for choirs and bands.",
          "song rehearsal singer concert set", "calendar roster library messages print", "music community planning"),
    _idea("mapmender roadfix surveykit", "python", "Find mistakes in street data and mend them.",
          "street junction survey parcel border", "checks geometry importer changes review", "maps data-quality geo"),
    _idea("lexitutor wordgarden vocab-dojo", "javascript", "Learn words a little every day, and keep them.",
          "card deck word lesson streak", "review speech decks statistics sync", "learning languages education"),
    _idea("mailsieve postsort letterbox", "go", "Sort mail by rules that you can read.",
          "message rule folder sender header", "matcher parser delivery quarantine digest",
          "email filtering self-hosted"),
    _idea("heliosmeter sunmeter panelwise", "python", "Watch what solar panels make, and what the house takes.",
          "panel inverter reading tariff counter", "collector forecast tariffs dashboard alerts", "energy solar iot"),
    _idea("pocketlang reedscript twigscript", "rust", "A small language to script larger programs with.",
          "token node function closure module", "lexer parser compiler machine library", "language compiler scripting"),
    _idea("openshelf librarium stacks", "python", "Run a lending library of five hundred or fifty thousand books.",
          "book loan reader reservation author", "catalogue loans search fines labels",
          "library catalogue self-hosted"),
    _idea("trainspotter-api railboard platform-nine", "go", "Departures of every station, as one plain interface.",
          "train station platform delay journey", "feeds cache timetable gateway alerts", "transport api open-data"),
    _idea("pulsekeeper striderlog lapbook", "javascript", "Keep your runs and rides to yourself.",
          "run lap route goal split", "tracker charts importer privacy goals", "sport tracking privacy"),
    _idea("gridlock-solver cruciverb clueforge", "rust", "Make crosswords, and check that they can be solved.",
          "clue grid word theme puzzle", "solver filler dictionary print editor", "games words generator"),
    _idea("thermostat-lab warmhouse heatwise", "python", "Heat a home well with little.",
          "room sensor valve setpoint boiler", "control model schedule telemetry safety",
          "heating home-automation control"),
    _idea("framewise shutterfile negative-sorter", "c", "Sort, rate and develop photographs from the shell.",
          "photo frame camera album histogram", "decoder colour catalogue curves thumbs", "photography images cli"),
    _idea("votebox fairpoll ballotry", "javascript", "Polls for clubs, with voting methods that are fair.",
          "poll ballot option voter result", "counting invites tokens results audit", "voting community privacy"),
    _idea("saltcellar vaultlet nestkey", "go", "Share passwords in a small team without a big product.",
          "secret vault member grant session", "crypto sharing audit sync clipboard", "security passwords teams"),
    _idea("compost-stats binwise greenbin", "python", "What a town throws away, street by street.",
          "bin collection street truck weight", "importer collections maps forecast reports",
          "open-data city statistics"),
    _idea("ferryman parcelwise ship-and-see", "go", "Track parcels of many carriers in one place.",
          "parcel carrier stop label claim", "tracking carriers webhooks labels notify", "logistics api shipping"),
    _idea("moodboard-zero pinwall swatchbook", "javascript", "Collect pictures and colours, and arrange them.",
          "board pin colour frame collection", "canvas palette upload sharing history", "design canvas collaboration"),
    _idea("signalbox-emulator relayset points-and-levers", "c", "An old signal box, to be worked from your desk.",
          "signal lever block train route", "interlocking panel timetable sound network",
          "railway simulation emulator"),
    _idea("bibliofix citekit refkeeper", "python", "Mend references, and keep them mended.",
          "reference author journal citation draft", "resolver styles importer duplicates export",
          "science writing citations"),
    _idea("meshtalk hilltop-radio farcall", "rust", "Messages over radio, from hill to hill.",
          "message node channel packet relay", "modem routing crypto mailbox power", "radio networking off-grid"),
    _idea("classroom-bell lessonloom termtime", "javascript", "Timetables for schools that change all the time.",
          "lesson teacher room pupil timetable", "solver calendar absences print rooms",
          "education planning scheduling"),
    _idea("fieldnotes-gis terrasketch plotline", "c", "Draw maps of fields from points walked with a receiver.",
          "field point track layer fence", "receiver projection renderer tracks export", "maps geo agriculture"),
)  # fmt: skip
"""More subjects than one world uses, so that worlds differ."""

GROUPS = (
    ("Quiet Tools", "Software that does one thing and stays out of the way."),
    ("North Quay Labs", "Experiments that turned out to be useful."),
    ("Open Parish", "Free software for towns, schools and clubs."),
    ("Small Machines", "Programs for boards with little memory."),
    ("Paper Lantern", "Tools for people who write, draw and compose."),
    ("Commons Works", "Public data, made usable by the public."),
    ("Hearth Collective", "For the house: warmth, light, food."),
    ("Ninth Bridge", "Infrastructure that a team of five can run."),
    ("Field Day", "Software that goes outdoors."),
    ("Evening Shift", "What we build when the day's work is done."),
)

LICENCES = ("MIT", "MIT", "Apache-2.0", "GPL-3.0-or-later", "BSD-3-Clause", "MPL-2.0")

LABELS = (
    ("bug", "#c0392b", "Something does not work as it should"),
    ("feature", "#2471a3", "Something new"),
    ("documentation", "#1e8449", "Words, not code"),
    ("question", "#8e44ad", "Somebody wants to know"),
    ("performance", "#b9770e", "Works, but too slowly"),
    ("maintenance", "#5d6d7e", "Keeping the house in order"),
)
"""Labels of every project, in the order of the kinds of issues. `RENAMED` has alternative names."""
RENAMED = {
    "bug": ("bug", "bug", "defect", "type::bug"),
    "feature": ("feature", "enhancement", "idea", "type::feature"),
    "documentation": ("documentation", "docs", "documentation"),
    "question": ("question", "support", "question"),
    "performance": ("performance", "speed", "performance"),
    "maintenance": ("maintenance", "chore", "tech debt"),
}
MORE_LABELS = (
    ("good first issue", "#239b56", "Small, and well described"),
    ("help wanted", "#148f77", "We would be glad of a hand"),
    ("regression", "#922b21", "Worked in an earlier release"),
    ("security", "#7b241c", "Handle with care"),
    ("accessibility", "#6c3483", "For everybody who cannot use it yet"),
    ("needs info", "#d4ac0d", "Waiting for an answer"),
    ("blocked", "#424949", "Waiting for something else"),
    ("priority::high", "#cb4335", "Before anything else"),
    ("priority::low", "#7f8c8d", "When there is time"),
    ("discussion", "#2e86c1", "Not decided yet"),
    ("upstream", "#616a6b", "To be mended in a library"),
    ("backport", "#117a65", "Belongs in an older release as well"),
)
PART_COLOURS = ("#1a5276", "#0e6655", "#784212", "#4a235a", "#7d6608", "#1b4f72")

BIOS = (
    "I like programs that start quickly.",
    "Writes {language} by day and documentation by night.",
    "Maintainer of small things. Mostly {topic}.",
    "Interested in {topic}, old bicycles and good coffee.",
    "Learning {language}, one bug at a time.",
    "Reviews are welcome. So are tests.",
    "Once a teacher, now a programmer.",
    "If it can be a text file, it should be one.",
    "I break builds so that you need not.",
    "{topic} and long walks.",
    "Ask me about {topic}.",
    "Here for the {topic}; stayed for the people.",
    "Part-time contributor, full-time parent.",
    "I read error messages aloud.",
    "Free software since before it was comfortable.",
    "",
    "",
    "",
)
JOBS = (
    "Software engineer", "Site reliability engineer", "Student", "Data analyst", "Product designer", "Librarian",
    "Teacher", "Firmware developer", "Technical writer", "Freelancer", "Test engineer", "Researcher", "",
)  # fmt: skip
EMPLOYERS = (
    "Corvane", "Bluefinch Systems", "Municipal Works", "Oakline Software", "Tallis & Roe", "Harrow Institute",
    "Larkfield", "Sunder Labs", "", "", "",
)  # fmt: skip
STATUSES = (
    "On holiday until Monday", "Reviewing things", "Deep in the parser", "At a conference", "Out with a cold",
    "Pairing today", "Slow to answer this week", "Moving house",
)  # fmt: skip
COLOURS = ("#1f6f8b", "#8b3a62", "#4f6d2f", "#9a5b13", "#5b4b8a", "#2f6f5e", "#a33b2f", "#3d5a80")
