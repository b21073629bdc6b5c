"""Tasks that start on the page of a post, a board or a user of the forum."""

from __future__ import annotations

from agentgym_envs.webarena.tasks.forum import (
    account,
    counting,
    moderating,
    multi_step,
    navigation,
    queries,
    reading,
    steps,
    voting,
    writing,
)
from agentgym_envs.webarena.tasks.steps import answer, click, do, type_text
from agentgym_envs.webarena.tasks.template import starting_on

top_commenter = starting_on(
    queries.post_url,
    reading.top_commenter,
    "Who wrote the comment with the highest score on this post? Replies count too.",
    "Of all comments on the post that I am looking at, replies included, which has the highest score? Name its author.",
    "Whose comment has the highest score in this thread (replies included)?",
    difficulty="easy",
)
comment_text = starting_on(
    queries.post_url,
    reading.comment_text,
    "What did {user} write in their comment on this post?",
    "Quote the comment of the user {user} on the post that I have open.",
    "In this thread, find the comment by {user} and tell me what it says.",
)
vote_post = starting_on(
    queries.post_url,
    voting.vote_post,
    "{vote} this post.",
    "{vote} the forum post on this page for me.",
    "I am looking at a post of the forum. {vote} it.",
)
vote_comment = starting_on(
    queries.post_url,
    voting.vote_comment,
    "{vote} the comment by {user} on this post.",
    "In this thread there is a comment by {user}. {vote} it.",
    "{vote} what {user} has commented on the post on this page.",
    difficulty="easy",
)
retract_vote = starting_on(
    queries.post_url,
    voting.retract_vote,
    "Take back my vote on this post.",
    "I have voted on the post on this page by mistake. Undo that.",
    "Remove the vote that I gave this post.",
)
save_or_hide_post = starting_on(
    queries.post_url,
    voting.save_or_hide_post,
    "{do} this post.",
    "{do} the post on this page in my forum account.",
    "I am looking at a post of the forum. {do} it.",
)
comment_on_post = starting_on(
    queries.post_url,
    writing.comment_on_post,
    'Comment on this post: "{text}"',
    'Leave the comment "{text}" under the post that I have open.',
    'In this thread, write this as a comment of its own: "{text}"',
    difficulty="easy",
)
reply_to_comment = starting_on(
    queries.post_url,
    writing.reply_to_comment,
    'Reply to the comment by {user} on this post with "{text}"',
    'In this thread, answer the comment of {user}: "{text}"',
    'Write "{text}" as a reply to what {user} has commented on the post on this page.',
    difficulty="easy",
)
report_post = starting_on(
    queries.post_url,
    writing.report_post,
    "Report this post to its moderators. The reason: {reason}.",
    'The post on this page should be looked at by the moderators. Report it as "{reason}".',
    'Tell the moderators that this post is a case of "{reason}".',
    difficulty="easy",
)
moderate_post = starting_on(
    queries.post_url,
    moderating.moderate_post,
    "As its moderator, {do} this post.",
    "Use my rights as a moderator: {do} the post that I am looking at.",
    "I moderate the board of this post. Please {do} it.",
)
set_flair = starting_on(
    queries.post_url,
    moderating.set_flair,
    'Set the flair of this post to "{flair}".',
    'As a moderator, give the post on this page the flair "{flair}".',
    'This post has the wrong flair. It should be "{flair}".',
    difficulty="easy",
)
remove_comment = starting_on(
    queries.post_url,
    moderating.remove_comment,
    "As a moderator, remove the comment by {user} on this post.",
    "The comment of {user} under the post on this page breaks the rules of my board. Remove it.",
    "Use my rights as a moderator to remove what {user} has commented on this post.",
    difficulty="easy",
)
message_top_commenter = starting_on(
    queries.post_url,
    multi_step.message_top_commenter,
    "Send a private message to whoever wrote the comment with the highest score on this post. Subject: "
    '"{subject}". Message: "{text}"',
    "Find the author of the best rated comment or reply under the post on this page and write to that user in private: "
    'subject "{subject}", text "{text}"',
    "In this thread, whose comment has the highest score, replies included? Send that user a message called "
    '"{subject}" that says "{text}"',
    solution=[do(multi_step.write_to_author_here, "{subject}", "{text}", -1)],
    mistake=do(multi_step.write_to_author_here, "{subject}", "{text}", 0),
    difficulty="medium",
)
save_top_comment = starting_on(
    queries.post_url,
    multi_step.save_top_comment,
    "Save the comment with the highest score on this post. Replies count too.",
    "Of everything that was said in this thread, replies included, save the comment with the most points.",
    "Find the best rated comment under the post on this page (it may be a reply) and save it in my account.",
    difficulty="easy",
)
edit_others_post = starting_on(
    queries.post_url,
    multi_step.edit_others_post,
    'Change the text of this post to "{text}"',
    'Edit the post on this page so that it says "{text}"',
    'This post should read "{text}" instead. Please edit it.',
)
edit_post = starting_on(
    queries.post_url,
    account.edit_post,
    'Replace the text of this post of mine with "{text}"',
    'Edit my post on this page so that its text is only: "{text}"',
    'This post of mine should say "{text}" instead of what it says now. Keep the title.',
    lead=[click("link", "Edit")],
    difficulty="easy",
)
retitle_post = starting_on(
    queries.post_url,
    account.retitle_post,
    'Change the title of this post of mine to "{new}".',
    'My post on this page should be called "{new}" from now on.',
    'Give this post, which is mine, the new title "{new}" and leave the text as it is.',
    lead=[click("link", "Edit")],
    difficulty="easy",
)
edit_comment = starting_on(
    queries.post_url,
    account.edit_comment,
    'Change my comment on this post to "{text}"',
    'I commented on the post on this page. Edit that comment; it should read "{text}"',
    'Replace what my comment in this thread says with "{text}"',
)
block_user = starting_on(
    queries.user_url,
    voting.block_user,
    "Block this user.",
    "I do not want to read anything by the user on this page any more. Block that user.",
    "Put the user whose profile I am looking at on my list of blocked users.",
    difficulty="easy",
)
send_message = starting_on(
    queries.user_url,
    writing.send_message,
    'Send this user a private message with the subject "{subject}" that says "{text}"',
    'Write to the user on this page. Subject: "{subject}". Message: "{text}"',
    'Start a private conversation with the user whose profile I have open. Call it "{subject}" and write: "{text}"',
    solution=[
        click("link", "Send a message"),
        type_text("Subject", "{subject}"),
        type_text("Message", "{text}"),
        click("button", "Send"),
    ],
)
negative_comments = starting_on(
    queries.user_url,
    counting.negative_comments,
    "How many comments by this user have a score below zero?",
    "Count the comments of the user on this page that got more downvotes than upvotes, that is, whose score is "
    "negative.",
    "Of everything that this user has commented, how many comments have a negative score?",
    difficulty="medium",
)
open_comments_by_score = starting_on(
    queries.user_url,
    navigation.open_comments_by_score,
    "Show me the comments of this user, sorted by score.",
    "Open the list of everything that the user on this page has commented, the highest scores first.",
    "I want to read the best rated comments by this user. Open the page that lists them.",
    difficulty="easy",
)
top_post = starting_on(
    queries.board_url,
    reading.top_post,
    "What is the title of the post with the highest score in this board, over {period}?",
    "Which post of the board on this page has the highest score ({period})? Tell me its title.",
    "In this board, find the best rated post of {period} and give me its title.",
    solution=[do(reading.open_top_here, "{period}"), answer(lambda page: steps.listed(page)[0].title)],
    difficulty="easy",
)
most_commented = starting_on(
    queries.board_url,
    reading.most_commented,
    "Which post of this board has the most comments? Give me its title.",
    "What is the title of the most discussed post in the board on this page?",
    "Find the post with the longest discussion in this board and tell me what it is called.",
    lead=[do(steps.open_tab, "Most commented")],
    difficulty="easy",
)
posts_in_month = starting_on(
    queries.board_url,
    counting.posts_in_month,
    "How many posts were made in this board in {month}?",
    "Count the posts of {month} in the board on this page.",
    "I need a figure for a report: the number of posts in this board during {month}.",
    lead=[do(counting.months_here, "{month}")],
    difficulty="medium",
)
best_authors = starting_on(
    queries.board_url,
    counting.best_authors,
    "Who wrote the {count} posts with the highest scores in this board? Name all {count} authors.",
    "List the authors of the top {count} posts of all time in the board on this page, by score.",
    "Which {count} users wrote the {count} posts of this board with the highest scores?",
    lead=[do(steps.open_tab, "Top")],
    difficulty="easy",
)
open_top_of = starting_on(
    queries.board_url,
    navigation.open_top_of,
    "Show me the top posts of {period} in this board.",
    "Open the best rated posts of the board on this page, but only those of {period}.",
    "In this board, list the posts of {period}, the highest scores first.",
    lead=[do(steps.open_tab, "Top")],
    difficulty="easy",
)
open_sorted = starting_on(
    queries.board_url,
    navigation.open_sorted,
    "Show me the posts of this board, {order}.",
    "Open the board on this page with its posts sorted: {order}.",
    "I want to see the list of posts in this board ({order}).",
    solution=[do(steps.open_tab, navigation.TAB)],
)
open_leading_post = starting_on(
    queries.board_url,
    navigation.open_leading_post,
    "Open the {which} post of this board.",
    "Take me to the page of the {which} post in the board on this page.",
    "In this board, find the {which} post and show it to me.",
    lead=[do(steps.open_tab, navigation.LEADING_TAB)],
    difficulty="easy",
)
submit_link = starting_on(
    queries.board_url,
    writing.submit_link,
    'Post a link to {url} in this board. Its title is "{title}".',
    'Share {url} in the board on this page under the title "{title}".',
    'Submit a link post to this board: title "{title}", URL {url}, no text.',
)
submit_flair = starting_on(
    queries.board_url,
    writing.submit_flair,
    'Post "{title}" in this board with the text "{text}" and the flair "{flair}".',
    'Start a thread in the board on this page that carries the flair "{flair}". Title: "{title}". Text: "{text}"',
    'Submit to this board: title "{title}", text "{text}". Choose the flair "{flair}" for it.',
    difficulty="medium",
)
answer_newest = starting_on(
    queries.board_url,
    multi_step.answer_newest,
    'Comment on the newest post in this board: "{text}"',
    'Whatever was posted last in the board on this page, write "{text}" under it.',
    'Find the most recent post of this board and leave the comment "{text}"',
    lead=[do(steps.open_tab, "New")],
)
upvote_newest = starting_on(
    queries.board_url,
    multi_step.upvote_newest,
    "Upvote the {count} newest posts in this board.",
    "Give an upvote to each of the {count} most recent posts of the board on this page.",
    "In this board, upvote what was posted last: the {count} newest posts.",
    lead=[do(steps.open_tab, "New")],
    difficulty="medium",
)
latest_poster_negative = starting_on(
    queries.board_url,
    counting.latest_poster_negative,
    "How many comments with a score below zero are by the user who made the latest post in this board?",
    "Take the author of the newest post in the board on this page. How many of that user's comments have a negative "
    "score?",
    "For whoever was the last to post in this board, count the comments whose score is negative.",
    lead=[do(steps.open_tab, "New")],
    difficulty="medium",
)
