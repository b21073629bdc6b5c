"""The protocols of other suites, served beside the native one, so that their clients work unchanged.

Each is a mount for `create_app(..., mounts=[...])`: a function of the `EnvServer` that returns routes.
"""
