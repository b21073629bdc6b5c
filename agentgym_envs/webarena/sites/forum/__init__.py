"""The forum: boards, posts, comments, votes, private messages and moderation."""
