"""Other suites' protocols, spoken beside the native one, so that their clients plug in unchanged.

Each is a mount for `create_app(..., mounts=[...])`: a function of the `EnvServer` that returns routes.
"""
