"""The viewer: recorded episodes in the browser. `agentgym view PATH...` serves it, `--export` writes it to one file.

The command is its interface; the package exports no names.

`sources` finds files, `index` indexes their episodes and follows files that grow, `filters` selects episodes, `detail`
loads one episode, `api` combines them, `server` serves them over HTTP, and `export` writes a page that needs no server.
The page itself is in `static/`: plain files, without a build step or external resources.
"""
