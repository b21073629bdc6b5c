-- Accounts. The agent acts as account 1. `busy` is shown next to the status.
CREATE TABLE code_accounts (
    id INTEGER PRIMARY KEY,
    user TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    email TEXT NOT NULL,
    bio TEXT NOT NULL DEFAULT '',
    job TEXT NOT NULL DEFAULT '',
    organisation TEXT NOT NULL DEFAULT '',
    location TEXT NOT NULL DEFAULT '',
    website TEXT NOT NULL DEFAULT '',
    status TEXT NOT NULL DEFAULT '',
    busy INTEGER NOT NULL DEFAULT 0,
    colour TEXT NOT NULL,
    joined TEXT NOT NULL
);
CREATE TABLE code_follows (
    account INTEGER NOT NULL REFERENCES code_accounts,
    follows INTEGER NOT NULL REFERENCES code_accounts,
    PRIMARY KEY (account, follows)
);
CREATE TABLE code_keys (
    id INTEGER PRIMARY KEY,
    account INTEGER NOT NULL REFERENCES code_accounts,
    title TEXT NOT NULL,
    key TEXT NOT NULL,
    created TEXT NOT NULL,
    expires TEXT
);

-- Namespaces of projects: of an account, or of a group (`account` is NULL). Visibility: public, internal, private.
CREATE TABLE code_namespaces (
    id INTEGER PRIMARY KEY,
    path TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    account INTEGER REFERENCES code_accounts,
    description TEXT NOT NULL DEFAULT '',
    visibility TEXT NOT NULL DEFAULT 'public',
    created TEXT NOT NULL
);
-- Roles, here and below: Guest, Reporter, Developer, Maintainer, Owner.
CREATE TABLE code_group_members (
    namespace INTEGER NOT NULL REFERENCES code_namespaces,
    account INTEGER NOT NULL REFERENCES code_accounts,
    role TEXT NOT NULL,
    since TEXT NOT NULL,
    PRIMARY KEY (namespace, account)
);
CREATE TABLE code_projects (
    id INTEGER PRIMARY KEY,
    namespace INTEGER NOT NULL REFERENCES code_namespaces,
    slug TEXT NOT NULL,
    name TEXT NOT NULL,
    description TEXT NOT NULL DEFAULT '',
    visibility TEXT NOT NULL DEFAULT 'public',
    topics TEXT NOT NULL DEFAULT '', -- separated by ", "
    licence TEXT NOT NULL DEFAULT '',
    default_branch TEXT NOT NULL DEFAULT 'main',
    archived INTEGER NOT NULL DEFAULT 0,
    forked_from INTEGER REFERENCES code_projects,
    created TEXT NOT NULL,
    UNIQUE (namespace, slug)
);
-- Direct members of a project. Members of its group have roles in addition.
CREATE TABLE code_members (
    project INTEGER NOT NULL REFERENCES code_projects,
    account INTEGER NOT NULL REFERENCES code_accounts,
    role TEXT NOT NULL,
    since TEXT NOT NULL,
    PRIMARY KEY (project, account)
);
CREATE INDEX code_members_account ON code_members (account);
CREATE TABLE code_stars (
    account INTEGER NOT NULL REFERENCES code_accounts,
    project INTEGER NOT NULL REFERENCES code_projects,
    since TEXT NOT NULL,
    PRIMARY KEY (account, project)
);
CREATE INDEX code_stars_project ON code_stars (project);

-- A branch's history is its own commits, and those of `origin` (for a fork's: of another project) up to `started`.
CREATE TABLE code_branches (
    id INTEGER PRIMARY KEY,
    project INTEGER NOT NULL REFERENCES code_projects,
    name TEXT NOT NULL,
    origin INTEGER REFERENCES code_branches,
    started TEXT NOT NULL,
    protected INTEGER NOT NULL DEFAULT 0,
    UNIQUE (project, name)
);
-- `changes` is JSON, a list for each file: [path, additions, deletions, blob before or null, blob after or null, line].
-- With a line, and no blob before, the commit wrote so many lines of the blob after, from that line on.
CREATE TABLE code_commits (
    id INTEGER PRIMARY KEY,
    branch INTEGER NOT NULL REFERENCES code_branches,
    sha TEXT NOT NULL,
    author INTEGER NOT NULL REFERENCES code_accounts,
    message TEXT NOT NULL,
    moment TEXT NOT NULL,
    additions INTEGER NOT NULL DEFAULT 0,
    deletions INTEGER NOT NULL DEFAULT 0,
    changes TEXT NOT NULL DEFAULT '[]',
    merge_request INTEGER REFERENCES code_merge_requests -- the one that brought it to its branch
);
CREATE INDEX code_commits_branch ON code_commits (branch, moment);
CREATE INDEX code_commits_sha ON code_commits (sha);
CREATE TABLE code_blobs (id INTEGER PRIMARY KEY, content TEXT NOT NULL);
-- Files at the head of each branch.
CREATE TABLE code_files (
    id INTEGER PRIMARY KEY,
    branch INTEGER NOT NULL REFERENCES code_branches,
    path TEXT NOT NULL,
    blob INTEGER NOT NULL REFERENCES code_blobs,
    UNIQUE (branch, path)
);
CREATE TABLE code_tags (
    id INTEGER PRIMARY KEY,
    project INTEGER NOT NULL REFERENCES code_projects,
    name TEXT NOT NULL,
    sha TEXT NOT NULL,
    message TEXT NOT NULL DEFAULT '',
    created TEXT NOT NULL,
    UNIQUE (project, name)
);
CREATE TABLE code_releases (
    id INTEGER PRIMARY KEY,
    tag INTEGER NOT NULL REFERENCES code_tags,
    title TEXT NOT NULL,
    notes TEXT NOT NULL DEFAULT '',
    author INTEGER NOT NULL REFERENCES code_accounts,
    moment TEXT NOT NULL
);

CREATE TABLE code_labels (
    id INTEGER PRIMARY KEY,
    project INTEGER NOT NULL REFERENCES code_projects,
    name TEXT NOT NULL,
    colour TEXT NOT NULL,
    description TEXT NOT NULL DEFAULT '',
    UNIQUE (project, name)
);
CREATE TABLE code_milestones (
    id INTEGER PRIMARY KEY,
    project INTEGER NOT NULL REFERENCES code_projects,
    title TEXT NOT NULL,
    description TEXT NOT NULL DEFAULT '',
    start TEXT, -- days, "2026-03-16"
    due TEXT,
    state TEXT NOT NULL DEFAULT 'open', -- or closed
    UNIQUE (project, title)
);
-- `number` counts within the project: #12. State: open, closed.
CREATE TABLE code_issues (
    id INTEGER PRIMARY KEY,
    project INTEGER NOT NULL REFERENCES code_projects,
    number INTEGER NOT NULL,
    title TEXT NOT NULL,
    body TEXT NOT NULL DEFAULT '',
    author INTEGER NOT NULL REFERENCES code_accounts,
    assignee INTEGER REFERENCES code_accounts,
    milestone INTEGER REFERENCES code_milestones,
    state TEXT NOT NULL DEFAULT 'open',
    confidential INTEGER NOT NULL DEFAULT 0,
    weight INTEGER,
    due TEXT,
    created TEXT NOT NULL,
    closed TEXT,
    closed_by INTEGER REFERENCES code_accounts,
    UNIQUE (project, number)
);
CREATE INDEX code_issues_assignee ON code_issues (assignee);
CREATE INDEX code_issues_author ON code_issues (author);
CREATE TABLE code_issue_labels (
    issue INTEGER NOT NULL REFERENCES code_issues,
    label INTEGER NOT NULL REFERENCES code_labels,
    PRIMARY KEY (issue, label)
);
CREATE INDEX code_issue_labels_label ON code_issue_labels (label);
-- `number` counts within the project: !12. State: open, merged, closed; `ended` is when it was merged or closed.
-- Branches are stored by name, since a merged one may be deleted.
CREATE TABLE code_merge_requests (
    id INTEGER PRIMARY KEY,
    project INTEGER NOT NULL REFERENCES code_projects,
    number INTEGER NOT NULL,
    title TEXT NOT NULL,
    body TEXT NOT NULL DEFAULT '',
    source TEXT NOT NULL,
    target TEXT NOT NULL,
    author INTEGER NOT NULL REFERENCES code_accounts,
    assignee INTEGER REFERENCES code_accounts,
    milestone INTEGER REFERENCES code_milestones,
    closes INTEGER REFERENCES code_issues,
    state TEXT NOT NULL DEFAULT 'open',
    draft INTEGER NOT NULL DEFAULT 0,
    created TEXT NOT NULL,
    ended TEXT,
    ended_by INTEGER REFERENCES code_accounts,
    UNIQUE (project, number)
);
CREATE INDEX code_merge_requests_author ON code_merge_requests (author);
CREATE TABLE code_merge_request_labels (
    merge_request INTEGER NOT NULL REFERENCES code_merge_requests,
    label INTEGER NOT NULL REFERENCES code_labels,
    PRIMARY KEY (merge_request, label)
);
CREATE TABLE code_reviewers (
    merge_request INTEGER NOT NULL REFERENCES code_merge_requests,
    account INTEGER NOT NULL REFERENCES code_accounts,
    approved INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (merge_request, account)
);
CREATE INDEX code_reviewers_account ON code_reviewers (account);
-- Comments on an issue or a merge request; the other column is NULL.
CREATE TABLE code_comments (
    id INTEGER PRIMARY KEY,
    issue INTEGER REFERENCES code_issues,
    merge_request INTEGER REFERENCES code_merge_requests,
    author INTEGER NOT NULL REFERENCES code_accounts,
    text TEXT NOT NULL,
    moment TEXT NOT NULL
);
CREATE INDEX code_comments_issue ON code_comments (issue);
CREATE INDEX code_comments_merge_request ON code_comments (merge_request);
-- To-dos of account 1. Reason: assigned, mentioned, review (requested).
CREATE TABLE code_todos (
    id INTEGER PRIMARY KEY,
    account INTEGER NOT NULL REFERENCES code_accounts,
    author INTEGER NOT NULL REFERENCES code_accounts,
    reason TEXT NOT NULL,
    issue INTEGER REFERENCES code_issues,
    merge_request INTEGER REFERENCES code_merge_requests,
    done INTEGER NOT NULL DEFAULT 0,
    moment TEXT NOT NULL
);
