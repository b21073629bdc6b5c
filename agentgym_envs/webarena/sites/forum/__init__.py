"""The forum: boards, posts, comments, votes, messages, and what their moderators do."""
