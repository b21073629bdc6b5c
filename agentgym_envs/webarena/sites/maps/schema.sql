-- Positions: x kilometres east and y kilometres south of the country's north-west corner; lat and lon follow from them.

CREATE TABLE map_country (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    width REAL NOT NULL,
    height REAL NOT NULL,
    network TEXT NOT NULL  -- a digest of junctions, roads and segments
);

CREATE TABLE map_regions (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    seat INTEGER NOT NULL REFERENCES map_towns
);

CREATE TABLE map_towns (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    region INTEGER NOT NULL REFERENCES map_regions,
    population INTEGER NOT NULL,
    zip TEXT NOT NULL,
    elevation INTEGER NOT NULL,
    x REAL NOT NULL,
    y REAL NOT NULL,
    lat REAL NOT NULL,
    lon REAL NOT NULL,
    about TEXT NOT NULL
);

-- The road network, which never changes. A road without a town connects towns.

CREATE TABLE map_junctions (
    id INTEGER PRIMARY KEY,
    x REAL NOT NULL,
    y REAL NOT NULL,
    town INTEGER REFERENCES map_towns,
    name TEXT
);

CREATE TABLE map_roads (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    kind TEXT NOT NULL,  -- motorway, link, primary, secondary, tertiary, residential, pedestrian, path
    town INTEGER REFERENCES map_towns,
    speed INTEGER NOT NULL,  -- km/h by car; 0 where no cars may go
    walk INTEGER NOT NULL,
    cycle INTEGER NOT NULL,
    surface TEXT NOT NULL,
    lit INTEGER NOT NULL,
    lanes INTEGER NOT NULL
);
CREATE INDEX map_roads_town ON map_roads (town);

CREATE TABLE map_segments (  -- those of a road follow one another, from its first to its last
    id INTEGER PRIMARY KEY,
    road INTEGER NOT NULL REFERENCES map_roads,
    source INTEGER NOT NULL REFERENCES map_junctions,
    target INTEGER NOT NULL REFERENCES map_junctions,
    length INTEGER NOT NULL  -- metres
);
CREATE INDEX map_segments_road ON map_segments (road);

CREATE TABLE map_shapes (
    id INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,  -- region, forest, river, lake, sea (the land's outline), built, park
    name TEXT NOT NULL,
    town INTEGER REFERENCES map_towns,
    points TEXT NOT NULL  -- "x,y x,y ..."
);

CREATE TABLE map_accounts (
    id INTEGER PRIMARY KEY,
    user TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    email TEXT NOT NULL,
    town INTEGER NOT NULL REFERENCES map_towns,
    about TEXT NOT NULL,
    joined TEXT NOT NULL,
    units TEXT NOT NULL,  -- km, miles
    mode TEXT NOT NULL,  -- car, bicycle, foot
    public_traces INTEGER NOT NULL
);

CREATE TABLE map_places (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    category TEXT NOT NULL,
    town INTEGER NOT NULL REFERENCES map_towns,  -- the one it lies in or near
    road INTEGER NOT NULL REFERENCES map_roads,
    house INTEGER,
    segment INTEGER NOT NULL REFERENCES map_segments,
    along REAL NOT NULL,  -- where on its segment, from 0 at the source to 1 at the target
    x REAL NOT NULL,
    y REAL NOT NULL,
    lat REAL NOT NULL,
    lon REAL NOT NULL,
    cuisine TEXT,
    stars INTEGER,
    operator TEXT,
    capacity INTEGER,
    elevation INTEGER,
    fee TEXT,
    wheelchair TEXT,  -- yes, limited, no
    internet TEXT,  -- wlan, no
    outdoor INTEGER,
    hours TEXT,
    phone TEXT,
    website TEXT,
    about TEXT,
    version INTEGER NOT NULL,
    changed TEXT NOT NULL,
    editor INTEGER NOT NULL REFERENCES map_accounts
);
CREATE INDEX map_places_town ON map_places (town, category);
CREATE INDEX map_places_category ON map_places (category);

CREATE TABLE map_changes (  -- edits of places
    id INTEGER PRIMARY KEY,
    place INTEGER NOT NULL REFERENCES map_places,
    account INTEGER NOT NULL REFERENCES map_accounts,
    version INTEGER NOT NULL,
    comment TEXT NOT NULL,
    moment TEXT NOT NULL
);
CREATE INDEX map_changes_place ON map_changes (place);
CREATE INDEX map_changes_account ON map_changes (account);

CREATE TABLE map_notes (
    id INTEGER PRIMARY KEY,
    town INTEGER NOT NULL REFERENCES map_towns,
    place INTEGER REFERENCES map_places,
    x REAL NOT NULL,
    y REAL NOT NULL,
    status TEXT NOT NULL,  -- open, resolved
    opened TEXT NOT NULL,
    closed TEXT
);
CREATE INDEX map_notes_town ON map_notes (town);

CREATE TABLE map_note_comments (
    id INTEGER PRIMARY KEY,
    note INTEGER NOT NULL REFERENCES map_notes,
    account INTEGER REFERENCES map_accounts,  -- NULL: somebody who was not logged in
    action TEXT NOT NULL,  -- opened, commented, resolved, reopened
    text TEXT NOT NULL,
    moment TEXT NOT NULL
);
CREATE INDEX map_note_comments_note ON map_note_comments (note);

CREATE TABLE map_traces (
    id INTEGER PRIMARY KEY,
    account INTEGER NOT NULL REFERENCES map_accounts,
    name TEXT NOT NULL,
    about TEXT NOT NULL,
    mode TEXT NOT NULL,  -- car, bicycle, foot
    source INTEGER NOT NULL REFERENCES map_places,
    target INTEGER NOT NULL REFERENCES map_places,
    length INTEGER NOT NULL,  -- metres
    visibility TEXT NOT NULL,  -- public, private
    moment TEXT NOT NULL
);
CREATE INDEX map_traces_account ON map_traces (account);

CREATE TABLE map_trace_tags (
    trace INTEGER NOT NULL REFERENCES map_traces,
    tag TEXT NOT NULL,
    PRIMARY KEY (trace, tag)
) WITHOUT ROWID;

CREATE TABLE map_addresses (  -- where an account lives and works
    id INTEGER PRIMARY KEY,
    account INTEGER NOT NULL REFERENCES map_accounts,
    label TEXT NOT NULL,  -- Home, Work
    road INTEGER NOT NULL REFERENCES map_roads,
    house INTEGER NOT NULL
);

CREATE TABLE map_lists (
    id INTEGER PRIMARY KEY,
    account INTEGER NOT NULL REFERENCES map_accounts,
    name TEXT NOT NULL,
    about TEXT NOT NULL,
    visibility TEXT NOT NULL,  -- public, private
    created TEXT NOT NULL
);

CREATE TABLE map_saved (
    id INTEGER PRIMARY KEY,
    list INTEGER NOT NULL REFERENCES map_lists,
    place INTEGER NOT NULL REFERENCES map_places,
    note TEXT NOT NULL,
    moment TEXT NOT NULL,
    UNIQUE (list, place)
);
