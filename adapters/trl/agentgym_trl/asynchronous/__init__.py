"""Asynchronous training: episodes continue while the trainer learns, with a bound on the age of every token.

- `settings.py`: `AsyncSettings`, and the `VirtualTimes` of a run on a virtual clock
- `rollout.py`: `AsyncRollout`, which TRL calls for a batch
- `scheduler.py`: `Scheduler`, which starts groups, keeps their episodes running and hands complete groups over
- `groups.py`: groups, the logs of their episodes, and the choice of a batch
- `stream.py`: the order of the tasks
- `engine.py`: engines that take requests at any time; `virtual.py`, `process.py` and `server.py` are the three kinds
- `loops.py`: the event loop, in a thread or on a virtual clock
- `correction.py`: importance weights for tokens of older policies
"""
