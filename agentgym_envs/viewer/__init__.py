"""The viewer: recorded episodes in the browser. `agentgym view PATH...` serves it, `--export` makes one file of it.

`sources` finds files, `index` reads what a list of episodes needs and follows what is being written, `filters` selects,
`detail` opens one episode, `api` answers, `server` speaks HTTP, and `export` writes a page that needs no server. The
page itself is in `static/`: plain files, without a build step and without anything from elsewhere.
"""
