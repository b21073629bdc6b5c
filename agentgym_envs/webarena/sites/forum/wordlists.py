"""Phrases from which posts and comments of all boards are composed.

`{thing}` is the subject of a post; `texts` explains the other placeholders.
"""

from __future__ import annotations

TITLES = {
    "trouble": (
        "{text}",
        "{text}",
        "{text}. Any ideas?",
        "{text}: what would you do?",
        "Help! {text}",
        "{text}. Is that normal?",
    ),
    "choice": (
        "{text} or {against}?",
        "{text} versus {against}: where do you stand?",
        "Is it worth going from {against} to {text}?",
        "Settle this for us: {text} or {against}?",
    ),
    "wish": (
        "Looking for {text}",
        "Can anybody recommend {text}?",
        "Recommendations wanted: {text}",
        "Does it exist: {text}?",
        "In search of {text}",
    ),
    "show": ("{text}",),
    "tip": ("{text}", "{text} (a short guide)", "Guide: {text}"),
    "news": ("{text}",),
}
"""Titles by kind of post; `{text}` and `{against}` come from the board."""

OPENINGS = {
    "trouble": (
        "It started {time} and gets worse.",
        "This has been going on for {n} weeks.",
        "I am at my wits' end.",
        "I have read everything there is about it, and everybody says something else.",
        "It was fine until {since}.",
        "I have tried {n} things and nothing helped.",
        "First post here, so please be patient with me.",
        "This never happened to me before.",
    ),
    "choice": (
        "So far it has been {text} for me, and now everybody praises {against}.",
        "We talked about this for a whole evening in {town} and did not agree.",
        "I have to decide by the end of the month.",
        "I know it has been asked before, but not since {year}.",
        "Money plays no great part in it, habit does.",
        "My brother says {against}, my sister says {text}, and I am in between.",
    ),
    "wish": (
        "I have looked for it since {since} without luck.",
        "It need not be new and it need not be perfect.",
        "The last one I tried was a disappointment.",
        "It is for my {relative}, who is hard to please.",
        "I would spend up to {big}0, if it has to be.",
        "Everything that I find is either too much or too little.",
    ),
    "show": (
        "It took me {n} weekends and more patience than I have.",
        "I nearly gave up {time}.",
        "Not perfect, but mine.",
        "My {relative} helped, or at any rate held the lamp.",
        "I started from nothing, after reading along here for {n} months.",
        "Ask me anything about it.",
    ),
    "tip": (
        "I get asked about this a lot, so here it is in one place.",
        "Nothing new to the old hands here, but I would have been glad of it {n} years ago.",
        "Short, because nobody reads long ones.",
        "This is what works for me.",
    ),
    "news": (
        "It was on the radio this morning.",
        "The full article is behind the link.",
        "I am curious what you make of it.",
    ),
}
"""First sentences of posts."""

CLOSINGS = {
    "trouble": (
        "What am I doing wrong?",
        "Has anybody had this and got rid of it?",
        "I would rather not start all over.",
        "Thanks in advance!",
        "What would you try first?",
        "Do I wait or do something?",
    ),
    "choice": (
        "What do you use, and why?",
        "What would make you change your mind?",
        "Tell me what I am missing.",
        "Please argue.",
    ),
    "wish": (
        "What has worked for you?",
        "Thanks for every hint!",
        "I will report back.",
        "Nothing from a chain, if possible.",
    ),
    "show": (
        "Thanks to everybody here who answered my questions.",
        "What should I do next?",
        "I am a little proud of it.",
        "On to the next one.",
        "Be honest.",
    ),
    "tip": (
        "What did I forget?",
        "Add yours below.",
        "Questions welcome.",
        "I will keep this up to date.",
    ),
    "news": ("What do you think?", "Who knows more?", "About time, I would say."),
}
"""Last sentences of posts."""

PRODUCT_TITLES = (
    "Is the {thing} worth its money?",
    "Has anybody here bought the {thing}?",
    "{thing}: yes or no?",
    "Thinking about the {thing}. Opinions?",
    "Would you give the {thing} as a present?",
    "Who has had the {thing} for longer than a year?",
)
PRODUCT_ANSWERS = (
    "I have had mine for {n} years and would buy it again.",
    "Too dear. Wait until it is on offer.",
    "Mine broke after {n} months, and they sent me a new one without a word.",
    "It does what it says, and nothing else.",
    "Look at the reviews in the shop. The bad ones are the useful ones.",
    "My {relative} has one, and I have never seen it used.",
)
"""Answers to questions about products of the shop."""

SAYINGS = {
    "same": (
        "Same here since {since}. I will follow this.",
        "I have exactly the same question.",
        "You are not alone. It happened to me {time}.",
        "Glad that somebody asks. I did not dare to.",
        "Same with mine. Tell us if you find out.",
        "We had this in {town} too, and never got to the bottom of it.",
        "I was about to post the very same thing.",
        "I gave up on it in {year}, so I read along with hope.",
    ),
    "thanks": (
        "Thank you, I will try that {day}.",
        "Thanks! I had not thought of that.",
        "That did it. Thank you!",
        "Thank you for taking the time.",
        "Tried it {time}, and it helped. Thanks a lot.",
        "Thanks, that is just what I wanted to know.",
        "Thank you. It sounds so simple when you say it.",
        "Thanks. My {relative} said the same and I did not listen.",
        "Very kind of you, thank you.",
        "Noted, thanks. I will tell you how it went.",
    ),
    "welcome": (
        "You are welcome! Let us know.",
        "Any time.",
        "Happy to help.",
        "Good luck with it!",
        "Do not mention it. I learnt it here myself.",
        "Tell us in {n} weeks whether it lasted.",
    ),
    "agree": (
        "I can only agree.",
        "Quite right.",
        "Could not have put it better.",
        "That is how I see it too.",
        "True. People forget that.",
        "My {relative} says the same.",
        "Exactly.",
        "I thought I was the only one.",
        "It is the same here in {town}.",
        "Yes, and it has been like that since {year}.",
        "Well said.",
        "No argument from me.",
    ),
    "confirm": (
        "This. I wish somebody had told me {n} years ago.",
        "True, and it is cheaper as well.",
        "Same experience here, in {town}.",
        "That is the best answer so far.",
        "I did that {time}, and can confirm it.",
        "Yes! It works.",
        "My {relative} swears by it.",
        "Works for me too, most of the time.",
        "It took me {n} years to find that out.",
        "Upvoted. I did not believe it until I tried.",
    ),
    "disagree": (
        "Not in my experience.",
        "Sorry, but that is wrong.",
        "Only half true, I am afraid.",
        "Maybe in {town}. Not here.",
        "With respect, no.",
        "That may have been right in {year}.",
        "I see it the other way round.",
        "You make it sound simple. It is not.",
        "I would not be so sure.",
        "Everybody says so, and nobody has looked.",
        "That is a matter of taste.",
        "Nonsense, if I may say so.",
    ),
    "doubt": (
        "I have to disagree. It made everything worse for me.",
        "That is an old tale. I tested it in {year}.",
        "Careful with that. It depends a lot on where you live.",
        "I tried that for {n} months. Nothing.",
        "People always say that, and it never worked for anybody I know.",
        "I would not do that to my worst enemy.",
        "Tried it {time}. Never again.",
    ),
    "pleased": (
        "Thank you!",
        "You are too kind.",
        "Thanks, that makes me glad.",
        "Thank you. It was fun to do.",
        "Thanks! More to come.",
        "That means a lot to me.",
        "Thank you. I blush.",
        "Good to hear, thanks.",
    ),
    "hello": (
        "Hello from {town}! I have read along since {since} and finally have an account.",
        "Hello everybody. My {relative} sent me here.",
        "New here, and already wiser.",
        "Good rules. Thank you for keeping this place tidy.",
        "Greetings from {town}. It is the most friendly corner that I know of.",
        "Hello! I know nothing and want to learn.",
        "Here since {year}, and I have only read the rules now. Sorry.",
        "Nice to be here.",
        "Hello all. I am {big} and a beginner.",
    ),
    "greet": (
        "Welcome!",
        "Good to have you here.",
        "Welcome, and do ask.",
        "Hello and welcome. Greetings to {town}.",
    ),
    "praise": (
        "Beautiful work!",
        "That is wonderful. Well done.",
        "I am jealous.",
        "You should be proud of that.",
        "Made my morning, thank you.",
        "Best thing I have seen here since {since}.",
        "And I thought mine was good.",
        "Congratulations! I know how much work that is.",
        "My {relative} would love that.",
        "This makes me want to start again.",
        "More of that, please.",
        "Great! Write down how you did it.",
        "Lovely. It reminds me of {town}.",
        "Hats off.",
    ),
    "grateful": (
        "Saved, thank you for writing it down.",
        "This belongs in the sidebar.",
        "Very useful. I knew half of it and did none of it.",
        "I did the second point {time} and it works.",
        "Finally somebody says it.",
        "I printed it for my {relative}.",
        "Thanks. The last point was new to me.",
        "Read it twice. Good guide.",
        "Short and right. Thank you.",
    ),
    "reaction": (
        "About time.",
        "I did not expect that.",
        "My {relative} works there and knew it {time}.",
        "Sad to read that.",
        "At last some good news.",
        "I passed by {time}, and there was nothing to be seen yet.",
        "They should have done that in {year}.",
        "The headline is better than the article.",
        "Who is going to pay for it?",
        "Somebody should tell {town} about this.",
        "Interesting.",
        "It will take {n} more years, as always.",
        "That explains a lot.",
        "I had heard about it and thought it was a joke.",
        "Let us wait and see.",
        "This changes nothing, believe me.",
    ),
    "seconded": (
        "What {user} said.",
        "I am with {user} here.",
        "{user} is right.",
        "Listen to {user}.",
        "Same as {user}, and for the same reasons.",
        "Another vote for the advice of {user}.",
        "I did what {user} describes, and it was fine.",
    ),
    "both": (
        "Both. It depends on the day.",
        "Neither. Save your money.",
        "You can do both, you know.",
        "I change my mind every year.",
        "Whatever makes you do it more often.",
        "It does not matter nearly as much as people think.",
    ),
}
"""Phrases of comments by role."""

QUERIES = {
    "trouble": {
        "How long has this been going on?": ("About {n} weeks, I think.", "Since {since}, on and off."),
        "Did you change anything else?": ("Nothing that I know of.", "Only the place, {time}."),
        "How often do you do that?": ("Twice a week, more or less.", "Whenever I think of it, so not often."),
        "Is it worse in winter?": ("Now that you say so, yes.", "No, it is the same all year."),
        "Where do you live, roughly?": ("Near {town}.", "In {town}, on the hill."),
    },
    "wish": {
        "What have you tried so far?": (
            "What everybody buys. It lasted {n} weeks.",
            "Nothing yet, which is why I ask.",
        ),
        "How much would you spend?": ("Up to {big}, perhaps a little more.", "As little as I can."),
        "Is it for you?": ("No, for my {relative}.", "For me and for my {relative}."),
        "How soon do you need it?": ("By the end of the month.", "No hurry at all."),
    },
    "choice": {
        "What do you have now?": ("The first of the two, for {n} years.", "Neither. That is the trouble."),
        "Have you tried both?": ("Yes, a year each.", "Only one of them, I admit."),
        "What would it cost you to change?": ("Around {big}.", "Nothing but pride."),
    },
    "show": {
        "How many hours went into it?": ("Around {big}. I stopped counting.", "Every evening since {since}."),
        "What did it cost you, all in all?": ("Roughly {big}, and I would pay it again.", "Next to nothing."),
        "Would you do it again?": ("At once.", "Yes, though I would start earlier."),
        "What does your {relative} say to it?": ("That I am mad. Kindly.", "Wants one too."),
        "Where was that?": ("In {town}, near the river.", "Just outside {town}."),
    },
    "tip": {
        "Does that still hold in winter?": ("Even more so.", "In winter I take twice the time."),
        "How long have you done it like that?": ("For {n} years.", "Since {year}, or so."),
        "And where did you learn it?": ("From my {relative}.", "Here, mostly."),
    },
    "news": {
        "Which paper is that?": ("The one that is linked. It is good.", "A local one."),
        "Since when is that known?": ("Since {since}, I believe.", "They announced it {time}."),
        "Is there another source?": ("It was on the radio too.", "Not yet."),
        "Does anybody here live nearby?": ("I do. It is all true.", "My {relative} does and had not heard of it."),
    },
}
"""Questions below a post by kind of post, with possible answers."""

ASIDES = (
    "I write this from {town}, if it matters.",
    "My {relative} sees it differently.",
    "At least that was so in {year}.",
    "It took me {n} years to get there.",
    "I may be wrong.",
    "Ask me again {day}.",
    "I said so {time} and nobody listened.",
    "But I only have {n} months of experience.",
    "Greetings to {town}!",
    "More {day}, I have to go.",
    "My {relative} told me, so it must be true.",
    "We talked about it {time}, by the way.",
    "It was no different in {town}.",
    "That makes {n} of us.",
    "I learnt that in {year}.",
    "Sorry for being so short, I am on the train to {town}.",
    "There was a thread about it {time}.",
    "Since {since} I think about it every day.",
    "Not that my {relative} would agree.",
    "That is worth {big} to me.",
)
"""Phrases that may follow any comment."""

LEADS = (
    "In short: ",
    "From experience: ",
    "Easy. ",
    "I had that {time}. ",
    "My {relative} taught me this: ",
    "Not what you want to hear, perhaps. ",
    "Two things. ",
    "Been there. ",
)
"""Phrases that may precede an answer."""

TIMES = (
    "last week",
    "last month",
    "last autumn",
    "two weeks ago",
    "in January",
    "over the winter",
    "last summer",
    "at Christmas",
    "a year ago",
    "on Sunday",
)
SINCE = ("last week", "last month", "last autumn", "January", "last summer", "Christmas", "the holidays", "the thaw")
DAYS = ("today", "tonight", "tomorrow", "at the weekend", "on Friday", "next week")
RELATIVES = ("sister", "brother", "father", "mother", "neighbour", "wife", "husband", "uncle", "aunt", "grandmother")
BIOS = (
    "I read more than I write.",
    "Mostly here for {board}. Lives in {town}.",
    "{board}, tea, long walks.",
    "Born in {town}, stranded in {town2}.",
    "Teacher by day, {board} by night.",
    "Ask me about {board}.",
    "Retired, curious, slow to answer.",
    "Two children, one hobby: {board}.",
    "Here since the beginning, still a beginner.",
    "Train driver. No, I cannot change the timetable.",
    "Nurse. I post after night shifts, so forgive me.",
    "Learning {board} one mistake at a time.",
)
COLOURS = ("teal", "crimson", "amber", "indigo", "olive", "plum", "slate", "coral")
REPORTS = ("Spam", "Off topic", "Rude to another user", "Breaks the first rule", "Advertising", "Posted twice before")
BANS = ("Advertising after two warnings", "Insults", "The same link in every thread", "Would not stop arguing")
NOTES = ("Argues about everything.", "Keeps sending me messages.", "Gave away an ending.")
CONVERSATIONS = (
    (
        "Your post about {board}",
        "Hello! I read your post and have a question: would you recommend it for {board} in a small flat?",
        "Hi, I think so. Ours has {big} square metres, and it does.",
        "Great, thank you. I will try it {day}.",
    ),
    (
        "Meeting in {town}",
        "A few of us from the forum meet in {town} on Saturday at {n} in the afternoon. Will you come?",
        "I would love to. Where exactly?",
        "At the café opposite the station. There will be about {big} of us, so look for the noise.",
    ),
    (
        "Still for sale?",
        "Is it still for sale? I could fetch it in {town}.",
        "Yes. I thought of {big} for it.",
        "Would {n} less be all right?",
        "Fine, because you ask so nicely.",
    ),
    (
        "Moderators wanted",
        "We look for another moderator and thought of you. It takes about {n} hours a month.",
    ),
    (
        "Thank you",
        "I only wanted to say thank you for your advice. It worked at the first try.",
        "That makes me glad. Good luck with the next one!",
    ),
    (
        "A mistake in your guide",
        "I believe that the second point in your guide is the wrong way round.",
        "You are right! I have changed it. Thank you.",
        "No harm done. It is a good guide.",
    ),
    (
        "Swap?",
        "I have one too many. Would you swap it against one of yours? I live near {town}.",
        "What do you have?",
        "A nearly new one, used {n} times. I can send pictures.",
    ),
    (
        "Question about the rules",
        "You took my post down. May I ask why?",
        "It had no date in it. Put the date in and post it again, please.",
        "Ah, I see. Done, thanks.",
    ),
    (
        "The book I promised",
        "I have found the book. Shall I send it to you or will you be in {town} soon?",
        "I am in {town} {day}, so I can pick it up.",
        "Good. I am at home from {n} o'clock.",
    ),
    (
        "Birthday present",
        "You know about these things: what would you give somebody who is mad about {board}?",
        "Nothing expensive. A good book about it and an afternoon of your time.",
    ),
    (
        "Lift to {town}",
        "Do you still go to {town} by car every Thursday? I need a lift, just once.",
        "Yes, at {n} in the morning. Be at the bridge, I do not wait.",
        "I will be there. I bring breakfast.",
    ),
)
"""Private conversations: the subject, then the messages in turn, starting with the one who opened it."""
