"""The learning-curve study: fixed and growing limits of turns at equal rollout tokens. See `docs/study.md`."""
