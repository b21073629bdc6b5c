"""Texts for the agent to write."""

from __future__ import annotations

from agentgym_envs.webarena.sites.words import lines

COMMENTS = lines("""
    I can reproduce this on my machine.
    Thanks for the report, I will have a look tomorrow.
    Does this still happen with the latest release?
    This is the same problem that I saw last week.
    Let us talk about it at the next meeting.
    I would like to work on this.
    Could you attach the output of a verbose run?
    A fix is nearly ready, please be patient.
    We should not forget the documentation.
    Confirmed here as well, on two machines.
    My vote goes to the simplest solution.
    Is there a workaround until it is mended?
""")
STATUSES = lines("""
    Out for lunch
    Writing release notes
    On parental leave until May
    Back on Thursday
    Hunting a memory leak
    Please ask me tomorrow
    In meetings all day
    Reading old tickets
    At the dentist
    Reviews only this week
    Travelling without a laptop
    Working from the garden
    Learning the accordion
    Half asleep
    Cleaning up branches
    Looking for a desk
""")
TITLES = lines("""
    Settings are lost after an update
    The guide should mention proxies
    Show the version number at start
    Crash when the disk is full
    Support for right-to-left texts
    The log is filled with blank lines
    Allow comments in the configuration
    Progress bar jumps backwards
    Installation fails without a compiler
    Colours are hard to tell apart
    Warn before overwriting a file
    Exit code is zero after an error
    Add a list of frequently asked questions
    Temporary files are never removed
    Start-up is slow on old machines
    Undo does not work after a save
""")
BODIES = lines("""
    It began last week.
    See what we said at the last meeting.
    Two users have asked for it.
    I can help to test it.
    This is not urgent.
    It happens every time.
""")
MILESTONES = lines("""
    Summer release
    Road map 2027
    Polish and paint
    Before the conference
    Feature freeze
    Security review
    Long-term support
    Spring cleaning
    Translation sprint
    Beta for everybody
    First public preview
    Test week
""")
DAYS = lines("""
    April 3, 2026
    April 17, 2026
    April 30, 2026
    May 8, 2026
    May 22, 2026
    June 1, 2026
    June 15, 2026
    June 30, 2026
    July 10, 2026
    August 21, 2026
    September 4, 2026
    October 1, 2026
""")
BRANCHES = lines("""
    try-new-parser
    hotfix-login
    docs-overhaul
    release-candidate
    experiment-cache
    spelling
    nightly
    smaller-binary
    fix-flaky-tests
    update-licences
    dark-mode
    retry-logic
""")
PROJECTS = lines("""
    Garden Gate
    Lantern Walk
    Paper Boats
    Rainy Sunday
    Copper Kettle
    Window Seat
    Blue Notebook
    Second Breakfast
    Kitchen Timer
    Attic Finds
    Morning Train
    Pocket Atlas
    Winter Coat
    Silver Spoon
    Long Division
    Corner Shop
""")
DESCRIPTIONS = lines("""
    Small tools for everyday use
    Moved here from an older place
    Looking for a new maintainer
    An experiment that may end at any time
    Made for our reading group
    Stable, and used in production
    Please read the guide before asking
    The successor of a weekend hack
    Runs wherever a toaster runs
    Now with tests
    Written on trains
    Kept simple on purpose
""")
COMPANIES = lines("""
    Harbour Bakery
    Pinecone Studio
    Slow Software
    Moonrise Press
    Two Rivers School
    Tin Roof Theatre
    Open Allotments
    Hilltop Archive
    Copperleaf
    Quiet Street Books
    Old Mill Workshop
    Blue Door Clinic
""")
JOBS = lines("""
    Archivist
    Beekeeper
    Build engineer
    Community manager
    Cartographer
    Database administrator
    Head of testing
    Instrument maker
    Network planner
    Release manager
    Security analyst
    Statistician
""")
MESSAGES = lines("""
    Note how to reach us
    Say who maintains this
    Add a word of thanks
    Link to the meeting notes
    Point to the chat room
    Tell where the tests are
""")
STRANGERS = lines("""
    Agatha Quill
    Barnaby Thistle
    Cordelia Finch
    Desmond Ashworth
    Eudora Pemberton
    Fergus Wickham
    Gwendolyn Marlow
    Horatio Bell
    Imogen Lark
    Jasper Holloway
    Leopold Crane
    Minerva Stone
""")
"""Names that no world uses."""
LINES = lines("""
    This text is being rewritten.
    See the guide.
    Moved to the wiki.
    Nothing here yet.
    Write to the maintainers.
    To be agreed at the next meeting.
    Ask before you change anything.
    Work in progress.
""")
