"""Tasks that start on the page of a project, an issue or a merge request in code hosting."""

from __future__ import annotations

from agentgym_envs.webarena.tasks.code import (
    account,
    batches,
    building,
    contributors,
    forms,
    managing,
    multi_step,
    navigation,
    parsing,
    queries,
    reading,
    steps,
    tracking,
    working,
)
from agentgym_envs.webarena.tasks.steps import answer, do, given
from agentgym_envs.webarena.tasks.template import starting_on

commits_by = starting_on(
    queries.project_url,
    reading.commits_by,
    "How many commits did {author} make to the default branch of this project in {month}?",
    "Count the commits of {author} on the default branch of the repository on this page in {month}.",
    "On the default branch of this project, how many commits of {month} are by {author}?",
    solution=[do(reading.count_here, "{author}", "{month}"), answer(lambda found: found)],
    mistake=answer(lambda found: found + 1),
)
commit_lines = starting_on(
    queries.project_url,
    reading.commit_lines,
    'How many lines did the commit "{message}" on the default branch of this project add?',
    'Find the commit "{message}" of the repository on this page (default branch). How many lines were added by it?',
    'The commit "{message}" in this project, on its default branch: how many additions does it have?',
    difficulty="easy",
)
release_day = starting_on(
    queries.project_url,
    reading.release_day,
    "On which day was {tag} of this project released?",
    "When did release {tag} of the repository on this page come out? Give the day.",
    "Tell me the day on which {tag} of this project was released.",
)
config_setting = starting_on(
    queries.project_url,
    reading.config_setting,
    "What is {setting} set to in config/default.yaml of this project?",
    "Look into config/default.yaml of the repository on this page: which value does {setting} have?",
    "Which value for {setting} stands in the file config/default.yaml of this project?",
    difficulty="easy",
)
label_count = starting_on(
    queries.project_url,
    tracking.label_count,
    'How many open issues of this project have the label "{label}"?',
    'Count the issues labelled "{label}" that are open in the project on this page.',
    'In this project, how many of the open issues carry the label "{label}"?',
)
oldest_labelled = starting_on(
    queries.project_url,
    tracking.oldest_labelled,
    'What is the title of the oldest open issue of this project with the label "{label}"?',
    'Which of the open issues labelled "{label}" in the project on this page was opened first? Give its title.',
    'Of the open issues in this project that have the label "{label}", tell me the title of the oldest.',
)
assigned_issues = starting_on(
    queries.project_url,
    tracking.assigned_issues,
    "Which open issues of this project are assigned to {person}? Give all titles.",
    "List the titles of the open issues in the project on this page that {person} is assigned to.",
    "Tell me the titles of all open issues of this project whose assignee is {person}.",
    difficulty="easy",
)
open_labelled = starting_on(
    queries.project_url,
    navigation.open_labelled,
    'Show me the open issues of this project that have the label "{label}".',
    'Open the list of those issues in the project on this page that are open and labelled "{label}".',
    'Go to the open issues of this project, filtered by the label "{label}".',
    difficulty="easy",
)
open_file = starting_on(
    queries.project_url,
    navigation.open_file,
    "Open the file {file} of this project as it is on the branch {branch}.",
    "Show me {file} on the branch {branch} of the repository on this page.",
    "I want to see the file {file} of this project, on its branch {branch}.",
)
open_release_commit = starting_on(
    queries.project_url,
    navigation.open_release_commit,
    "Show me the commit from which {tag} of this project was made.",
    "Open the commit of the repository on this page that has the tag {tag}.",
    "Go to the commit that was released as {tag} in this project.",
    difficulty="easy",
)
open_request_changes = starting_on(
    queries.request_url,
    navigation.open_request_changes,
    "Show me the changes that this merge request makes.",
    "Open the changes of the merge request on this page.",
    "I want to see which lines this merge request changes.",
    skip=2,
    difficulty="easy",
)
open_newest = starting_on(
    queries.project_url,
    navigation.open_newest,
    "Show me the most recently opened merge request of this project that is still open.",
    "Open the newest of the open merge requests of the project on this page.",
    "Of the merge requests that are open in this project, go to the one that was opened last.",
    difficulty="easy",
)
open_urgent = starting_on(
    queries.project_url,
    navigation.open_urgent,
    "Show me the open issue of this project that is due first.",
    "Which open issue of the project on this page has the earliest due date? Open it.",
    "Go to the open issue in this project whose due date comes first.",
)
open_commit = starting_on(
    queries.project_url,
    navigation.open_commit,
    "Show me the last commit that {author} made to the default branch of this project.",
    "Open the most recent commit by {author} on the default branch of the repository on this page.",
    "Go to the newest commit of {author} in this project, on the default branch.",
)
open_contributor = starting_on(
    queries.project_url,
    navigation.open_contributor,
    "Show me the profile of the person with the most commits to this project.",
    "Who has made the most commits to the default branch of the repository on this page? Open that person's profile.",
    "Go to the profile page of the top contributor to this project, by the number of commits.",
    difficulty="easy",
)
star_project = starting_on(
    queries.project_url,
    account.star_project,
    "Star this project.",
    "Add the project on this page to those that I have starred.",
    "Give this repository a star.",
)
follow_contributor = starting_on(
    queries.project_url,
    account.follow_contributor,
    "Follow the person who has made the most commits to this project.",
    "Look up who has contributed the most commits to the default branch of the repository on this page, and follow "
    "them.",
    "Follow the contributor to this project with the greatest number of commits.",
    solution=[do(account.follow_here, 0)],
    mistake=do(account.follow_here, 1),
    difficulty="easy",
)
comment_on_issue = starting_on(
    queries.issue_url,
    managing.comment_on_issue,
    'Comment on this issue: "{text}"',
    'Write the comment "{text}" below the issue on this page.',
    'Answer this issue with the comment "{text}"',
    skip=2,
    difficulty="easy",
)
close_issue = starting_on(
    queries.issue_url,
    managing.close_issue,
    "Close this issue.",
    "The issue on this page is settled. Close it.",
    "I have dealt with what this issue is about. Close it.",
    skip=2,
    difficulty="easy",
)
label_issue = starting_on(
    queries.issue_url,
    managing.label_issue,
    'Add the labels "{label}" and "{other}" to this issue.',
    'Give the issue on this page two more labels, besides those that it has: "{label}" and "{other}".',
    'Label this issue with "{label}" and "{other}" as well.',
    skip=2,
    difficulty="medium",
)
assign_issue = starting_on(
    queries.issue_url,
    managing.assign_issue,
    "Assign this issue to {person}.",
    "Let {person} work on the issue on this page: make them its assignee.",
    "{person} is to become the assignee of this issue.",
    skip=2,
    difficulty="easy",
)
assign_issue_to_stranger = starting_on(
    queries.issue_url,
    managing.assign_issue_to_stranger,
    *assign_issue.intents,
    skip=2,
    difficulty="easy",
)
schedule_issue = starting_on(
    queries.issue_url,
    managing.schedule_issue,
    'Put this issue into the milestone "{milestone}", and let it be due on {day}.',
    'Plan the issue on this page for the milestone "{milestone}", with {day} as its due date.',
    'This issue belongs in the milestone "{milestone}" and is due on {day}. Record both.',
    skip=2,
    difficulty="medium",
)
close_all = starting_on(
    queries.project_url,
    managing.close_all,
    "Close all open issues that {author} opened in this project.",
    "Every issue in the project on this page by {author} that is still open is settled now. Close them all.",
    "In this project, close each of the open issues whose author is {author}.",
    difficulty="medium",
)
new_issue = starting_on(
    queries.project_url,
    managing.new_issue,
    'Open an issue in this project with the title "{title}" and the description "{text}"',
    'Report an issue titled "{title}" to the project on this page. As its description, write "{text}"',
    'In this project, create the issue "{title}" with the description "{text}"',
)
new_full_issue = starting_on(
    queries.project_url,
    managing.new_full_issue,
    'In this project, open the issue "{title}", assign it to {person}, and give it the label "{label}" and the '
    'milestone "{milestone}".',
    'Create an issue titled "{title}" in the project on this page. Its assignee is {person}, its label "{label}", its '
    'milestone "{milestone}".',
    'Please open "{title}" as an issue of this project, for {person} to work on, labelled "{label}", for the milestone '
    '"{milestone}".',
    difficulty="medium",
)
new_milestone = starting_on(
    queries.project_url,
    managing.new_milestone,
    'Create the milestone "{milestone}" in this project, due on {day}.',
    'Add a milestone to the project on this page: its title is "{milestone}", and it is due on {day}.',
    'In this project, make a new milestone called "{milestone}" with {day} as its due date.',
)
fork_project = starting_on(
    queries.project_url,
    building.fork_project,
    "Fork this project into my own namespace as a {visibility} project, under the same name.",
    "Make a fork of the repository on this page under my own name. It keeps its name, and is to be {visibility}.",
    "I need my own {visibility} fork of this project, with the same name as the original.",
    difficulty="easy",
)
invite_member = starting_on(
    queries.project_url,
    building.invite_member,
    "Invite {person} to this project as {role}.",
    "Add {person} to the members of the project on this page, with the role {role}.",
    "Make {person} a {role} of this project.",
)
describe_project = starting_on(
    queries.project_url,
    building.describe_project,
    'Change the description of this project to "{text}".',
    'The project on this page is to be described as "{text}". Change its description.',
    'In the settings of this project, make "{text}" the description.',
    difficulty="easy",
)
edit_file = starting_on(
    queries.project_url,
    working.edit_file,
    'Change the default branch of this project: the file {file} is to hold only the line "{line}". The message of the '
    'commit is "{message}".',
    'Replace everything in {file} of the repository on this page, on the default branch, by the one line "{line}", and '
    'commit that with the message "{message}".',
    'On the default branch of this project, edit {file} so that nothing but "{line}" stands in it. As commit message, '
    'write "{message}".',
    difficulty="medium",
)
new_merge_request = starting_on(
    queries.project_url,
    working.new_merge_request,
    'Open a merge request in this project for the branch {branch} into the default branch. Its title is "{title}".',
    'Create the merge request "{title}" in the project on this page: from {branch} into the default branch.',
    'In this project, ask for {branch} to be merged into the default branch, by a merge request titled "{title}".',
    difficulty="medium",
)
approve_request = starting_on(
    queries.request_url,
    working.approve_request,
    "Approve this merge request.",
    "I have looked at the merge request on this page, and it is fine. Approve it.",
    "Give my approval to this merge request.",
    skip=2,
    difficulty="easy",
)
merge_open_request = starting_on(
    queries.request_url,
    working.merge_open_request,
    "Merge this merge request.",
    "The merge request on this page is fine. Merge it.",
    "Please merge the open merge request that I am looking at.",
    skip=2,
    difficulty="easy",
)
invite_two = starting_on(
    queries.project_url,
    multi_step.invite_two,
    "Invite {person} as {role} and {other} as {other_role} to this project.",
    "Add two people to the members of the project on this page: {person}, as {role}, and {other}, as {other_role}.",
    "Two people are to join this project. {person} becomes {role}, {other} becomes {other_role}. Invite them.",
)
reassign_issues = starting_on(
    queries.project_url,
    multi_step.reassign_issues,
    "Assign all open issues of this project that are assigned to {person} to {other} instead.",
    "{person} is leaving the project on this page. Hand their open issues there over to {other}, who becomes the "
    "assignee.",
    "In this project, make {other} the assignee of each open issue that {person} is assigned to now.",
)
close_oldest_issue = starting_on(
    queries.project_url,
    multi_step.close_oldest_issue,
    'Find the oldest open issue of this project with the label "{label}", comment on it "{text}", and close it.',
    'In the project on this page, the open issue labelled "{label}" that was opened first is settled. Leave the '
    'comment "{text}" on it and close it.',
    'Close the oldest of the open issues in this project that have the label "{label}". Also comment on it: "{text}"',
)
most_discussed_issue = starting_on(
    queries.project_url,
    multi_step.most_discussed_issue,
    'Of the issues in this project with the label "{label}", open or closed, one has the most comments. Who wrote the '
    "last of them?",
    'Find the issue of the project on this page, open or closed, that has the label "{label}" and the most comments. '
    "Who was the last to comment on it?",
    'Who has the last word on the most commented of all issues labelled "{label}" in this project, whatever their '
    "state?",
    solution=[
        do(multi_step.find_most_discussed, "{label}"),
        answer(lambda page: parsing.commenters(page)[-1]),
    ],
    difficulty="medium",
)
replace_member = starting_on(
    queries.project_url,
    multi_step.replace_member,
    "Remove {person} from the members of this project, and invite {other} with the role that {person} had.",
    "{other} takes the place of {person} in the project on this page: remove {person} from the members, and add "
    "{other} in the same role.",
    "In this project, replace the member {person} by {other}. The role stays the same.",
    solution=[
        do(multi_step.remove_here, "{person}"),
        do(steps.invite, "{other}", given(lambda found: found)),
    ],
    mistake=[do(multi_step.remove_here, "{person}")],
)
top_contributor = starting_on(
    queries.project_url,
    contributors.top_contributor,
    "Tell me the {fact} of the contributor with the most commits to the default branch of this project.",
    "Who has made the most contributions, in terms of commits, to the project on this page? I need the {fact}.",
    "Look up the person with the largest number of commits here, in this project, and give me the {fact}.",
    solution=contributors.read_top_here,
    mistake=lambda page, fact: contributors.read_top_here(page, fact, 1),
)
change_title = starting_on(
    queries.project_url,
    batches.change_title,
    'Update the title of the guide of this project to "{title}": the first heading of its file, on the default branch. '
    "Leave the rest as it is.",
    'Somewhere in the project on this page there is a guide. Change the heading at its top to "{title}", on the '
    "default branch, and nothing else.",
    'The guide here should begin with the heading "{title}" instead of its present one. Find its file, and commit that '
    "to the default branch.",
    solution=[
        do(batches.edit_here, "docs/guide.md", given(lambda: batches.FIRST_LINE), given(lambda title: f"# {title}"))
    ],
)
request_with_reviewer = starting_on(
    queries.project_url,
    forms.request_with_reviewer,
    "Submit a merge request for the branch {branch} of this project to be merged into the default branch, with "
    "{person} as the reviewer. Any title will do.",
    "Here, ask for {branch} to be merged into the default branch, and let {person} review it.",
    "Open a merge request from {branch} into the default branch of the project on this page; {person} is its only "
    "reviewer.",
)
