CREATE TABLE forum_users (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    email TEXT NOT NULL,
    joined TEXT NOT NULL,
    bio TEXT NOT NULL DEFAULT '',
    location TEXT NOT NULL DEFAULT '',
    website TEXT NOT NULL DEFAULT '',
    avatar TEXT NOT NULL,
    sort TEXT NOT NULL DEFAULT 'hot',
    front TEXT NOT NULL DEFAULT 'subscribed',
    notify_replies INTEGER NOT NULL DEFAULT 1,
    notify_messages INTEGER NOT NULL DEFAULT 1,
    public INTEGER NOT NULL DEFAULT 1
);
CREATE TABLE forum_boards (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE COLLATE NOCASE,
    title TEXT NOT NULL,
    description TEXT NOT NULL,
    sidebar TEXT NOT NULL,
    created TEXT NOT NULL
);
CREATE TABLE forum_rules (
    id INTEGER PRIMARY KEY,
    board INTEGER NOT NULL REFERENCES forum_boards,
    position INTEGER NOT NULL,
    title TEXT NOT NULL,
    text TEXT NOT NULL
);
CREATE TABLE forum_flairs (
    id INTEGER PRIMARY KEY,
    board INTEGER NOT NULL REFERENCES forum_boards,
    name TEXT NOT NULL
);
CREATE TABLE forum_moderators (
    board INTEGER NOT NULL REFERENCES forum_boards,
    user INTEGER NOT NULL REFERENCES forum_users,
    since TEXT NOT NULL,
    PRIMARY KEY (board, user)
);
CREATE TABLE forum_subscriptions (
    account INTEGER NOT NULL REFERENCES forum_users,
    board INTEGER NOT NULL REFERENCES forum_boards,
    PRIMARY KEY (account, board)
);
CREATE TABLE forum_posts (
    id INTEGER PRIMARY KEY,
    board INTEGER NOT NULL REFERENCES forum_boards,
    author INTEGER NOT NULL REFERENCES forum_users,
    flair INTEGER REFERENCES forum_flairs,
    title TEXT NOT NULL,
    body TEXT NOT NULL DEFAULT '',
    url TEXT,
    domain TEXT,
    created TEXT NOT NULL,
    edited TEXT,
    score INTEGER NOT NULL DEFAULT 1,
    locked INTEGER NOT NULL DEFAULT 0,
    pinned INTEGER NOT NULL DEFAULT 0,
    removed INTEGER NOT NULL DEFAULT 0,
    deleted INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE forum_comments (
    id INTEGER PRIMARY KEY,
    post INTEGER NOT NULL REFERENCES forum_posts,
    parent INTEGER REFERENCES forum_comments,
    author INTEGER NOT NULL REFERENCES forum_users,
    body TEXT NOT NULL,
    created TEXT NOT NULL,
    edited TEXT,
    score INTEGER NOT NULL DEFAULT 1,
    removed INTEGER NOT NULL DEFAULT 0,
    deleted INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE forum_votes (
    id INTEGER PRIMARY KEY,
    account INTEGER NOT NULL REFERENCES forum_users,
    post INTEGER REFERENCES forum_posts,
    comment INTEGER REFERENCES forum_comments,
    value INTEGER NOT NULL
);
CREATE TABLE forum_saved (
    id INTEGER PRIMARY KEY,
    account INTEGER NOT NULL REFERENCES forum_users,
    post INTEGER REFERENCES forum_posts,
    comment INTEGER REFERENCES forum_comments,
    created TEXT NOT NULL
);
CREATE TABLE forum_hidden (
    account INTEGER NOT NULL REFERENCES forum_users,
    post INTEGER NOT NULL REFERENCES forum_posts,
    PRIMARY KEY (account, post)
);
CREATE TABLE forum_blocks (
    account INTEGER NOT NULL REFERENCES forum_users,
    user INTEGER NOT NULL REFERENCES forum_users,
    created TEXT NOT NULL,
    note TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (account, user)
);
CREATE TABLE forum_conversations (
    id INTEGER PRIMARY KEY,
    opener INTEGER NOT NULL REFERENCES forum_users,
    partner INTEGER NOT NULL REFERENCES forum_users,
    subject TEXT NOT NULL
);
CREATE TABLE forum_messages (
    id INTEGER PRIMARY KEY,
    conversation INTEGER NOT NULL REFERENCES forum_conversations,
    author INTEGER NOT NULL REFERENCES forum_users,
    body TEXT NOT NULL,
    created TEXT NOT NULL,
    unread INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE forum_notifications (
    id INTEGER PRIMARY KEY,
    account INTEGER NOT NULL REFERENCES forum_users,
    comment INTEGER NOT NULL REFERENCES forum_comments,
    unread INTEGER NOT NULL DEFAULT 1
);
CREATE TABLE forum_reports (
    id INTEGER PRIMARY KEY,
    reporter INTEGER NOT NULL REFERENCES forum_users,
    post INTEGER REFERENCES forum_posts,
    comment INTEGER REFERENCES forum_comments,
    reason TEXT NOT NULL,
    created TEXT NOT NULL,
    resolved INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE forum_bans (
    id INTEGER PRIMARY KEY,
    board INTEGER NOT NULL REFERENCES forum_boards,
    user INTEGER NOT NULL REFERENCES forum_users,
    reason TEXT NOT NULL,
    created TEXT NOT NULL,
    UNIQUE (board, user)
);
CREATE INDEX forum_rules_board ON forum_rules (board);
CREATE INDEX forum_flairs_board ON forum_flairs (board);
CREATE INDEX forum_subscriptions_board ON forum_subscriptions (board);
CREATE INDEX forum_posts_board ON forum_posts (board, created);
CREATE INDEX forum_posts_author ON forum_posts (author);
CREATE INDEX forum_comments_post ON forum_comments (post);
CREATE INDEX forum_comments_author ON forum_comments (author);
CREATE INDEX forum_votes_account ON forum_votes (account, post, comment);
CREATE INDEX forum_saved_account ON forum_saved (account, post, comment);
CREATE INDEX forum_notifications_account ON forum_notifications (account, unread);
CREATE INDEX forum_messages_conversation ON forum_messages (conversation);
